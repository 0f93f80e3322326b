"""The package of the Python SDK has the server's version and licence, and is the same wherever it is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from tests.support.root import ROOT

SDK = ROOT / "sdk/python"


def shared(folder: Path) -> dict[str, Any]:
    """Return the metadata that the package shares with the server."""
    found: dict[str, Any] = run_path(str(SDK / "hooks.py"))["shared"](folder)
    return found


def tree(folder: Path) -> Path:
    """Return a tree with a copy of the SDK, and of the files that its build reads."""
    (folder / "release").mkdir(parents=True)
    for name in ("pyproject.toml", "release/hooks.py"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(SDK, folder / "sdk/python", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_package_has_the_licence_of_the_repository() -> None:
    assert (SDK / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_package_has_the_version_and_the_addresses_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_COMMIT", raising=False)
    server = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found = shared(tree(tmp_path / "tree") / "sdk/python")  # without a history
    assert found["urls"] == server["project"]["urls"]
    assert found["version"] == server["tool"]["deskwire"]["version"]


def test_a_version_that_the_hook_of_the_server_makes_is_used(tmp_path: Path) -> None:
    made = tree(tmp_path / "tree")
    (made / "pyproject.toml").write_text("[project]\nurls = {}\n")
    (made / "release/hooks.py").write_text("def build_version(tree):\n    return '9.0.0.dev0+gabc'\n")
    assert shared(made / "sdk/python")["version"] == "9.0.0.dev0+gabc"


@pytest.mark.long
def test_two_builds_in_different_folders_are_the_same_bytes(tmp_path: Path) -> None:
    files: list[dict[str, bytes]] = []
    for name in ("first", "the second one, elsewhere"):
        made, out = tree(tmp_path / name), tmp_path / f"out of {name}"
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), "."]
        subprocess.run(command, cwd=made / "sdk/python", check=True, capture_output=True)
        files.append({each.name: each.read_bytes() for each in out.iterdir()})
    assert files[0] == files[1]
    (wheel,) = (each for each in (tmp_path / "out of first").iterdir() if each.suffix == ".whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {"deskwire_sdk/py.typed", "deskwire_sdk/types.py", "deskwire_sdk/_sync/client.py"} <= {
            *archive.namelist()
        }
