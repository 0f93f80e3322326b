"""The dependencies that a user installs without the locks: bounds that admit the tested versions, and `make newest-dependencies`."""

from __future__ import annotations

import ast
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.newest_dependencies.__main__ import main
from tests.newest_dependencies.versions import LOCKS, changes, newest, pinned, tools
from tests.support.root import ROOT

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: Final = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
ASKED: Final = {each.name: each for each in map(Requirement, [*PROJECT["dependencies"], *EXTRAS])}
LOCKED: Final = pinned(ROOT, LOCKS)
DATA: Final = {"tzdata"}
"""The rules of time zones change at short notice, and nothing of them can break a call."""
BREAK_IN_MINOR: Final = {"click", "werkzeug"}
"""Their policy lets a minor version remove what an earlier one deprecated."""
EXACT_IN_ANOTHER: Final = {"pydantic-core"}
"""Each version of pydantic requires one version of it."""
NO_INDEX: Final = ("--", "--default-index", "http://127.0.0.1:9/simple", "--no-cache")


def next_breaking(name: str, version: Version) -> Version:
    """The first version after this one that may break its callers, by the project's practice."""
    if version.major == 0 or name in BREAK_IN_MINOR:
        return Version(f"{version.major}.{version.minor + 1}")
    return Version(str(version.major + 1))


@pytest.mark.parametrize("name", sorted(ASKED))
def test_bounds_admit_the_locked_version_and_stop_before_the_next_breaking_one(name: str) -> None:
    bounds, locked = ASKED[name].specifier, Version(LOCKED[name])
    assert bounds.contains(locked)
    assert {each.operator for each in bounds} == ({">="} if name in DATA else {">=", "<"})
    if name not in DATA:
        assert not bounds.contains(next_breaking(name, locked))
        assert [each.version for each in bounds if each.operator == "<"] == [str(next_breaking(name, locked))]


def test_every_library_that_is_imported_has_bounds() -> None:
    files = [file for layer in ("engine", "http", "storage") for file in (ROOT / layer).rglob("*.py")]
    trees = [ast.parse(file.read_text()) for file in files]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    named = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    named |= {
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }
    tops = {each.partition(".")[0] for each in named} - set(sys.stdlib_module_names) - {"deskwire"}
    known = packages_distributions()
    used = {canonicalize_name(known[top][0]) for top in tops}
    assert used - ASKED.keys() - EXACT_IN_ANOTHER == set()


def wheel(folder: Path, name: str, version: str) -> None:
    """Put an empty wheel into a folder."""
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as made:
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A project with a bound, its locks, and a folder of wheels: the pin, a newer version, and one above the bound."""
    (tmp_path / "requirements").mkdir()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "planted"\nversion = "1"\ndependencies = ["lamp>=1.0,<2"]\n'
        '[project.optional-dependencies]\nmore = ["bulb<3"]\n'
    )
    for lock, text in {
        LOCKS[0]: "lamp==1.0 \\\n",
        LOCKS[1]: "bulb==2.0 \\\n",
        LOCKS[2]: "",
        "dev.txt": "",
    }.items():
        (tmp_path / "requirements" / lock).write_text(text)
    for name, version in (("lamp", "1.0"), ("lamp", "1.7"), ("lamp", "2.0"), ("bulb", "2.0")):
        wheel(tmp_path / "wheels", name, version)
    return tmp_path


def test_newest_version_below_the_bound_is_found_and_named(repository: Path) -> None:
    found = newest(repository, ["--no-index", "--find-links", str(repository / "wheels")])
    assert found == {"lamp": "1.7", "bulb": "2.0"}
    assert changes(pinned(repository, LOCKS), found) == ["lamp 1.7 (locked: 1.0)"]


def test_locked_versions_are_not_tested_again(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "wheels/lamp-1.7-py3-none-any.whl").unlink()
    offered = ["--no-index", "--find-links", str(repository / "wheels")]
    assert main(["--root", str(repository), "--", *offered]) == 0
    assert capsys.readouterr().out == "the newest dependencies that are allowed are the locked ones\n"


def test_bounds_that_nothing_fits_fail(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for planted in ("lamp-1.0", "lamp-1.7"):
        (repository / f"wheels/{planted}-py3-none-any.whl").unlink()
    offered = ["--no-index", "--find-links", str(repository / "wheels")]
    assert main(["--where-reached", "--root", str(repository), "--", *offered]) == 1
    assert "lamp>=1.0,<2" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "status"), [([], 1), (["--where-reached"], 0)])
def test_index_that_cannot_be_reached_is_reported_as_the_reason(
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    status: int,
) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    assert main([*options, "--root", str(repository), *NO_INDEX]) == status
    out = capsys.readouterr().out
    assert out.startswith("skipped: the package index could not be reached: ")
    assert "refused" in out


def test_tools_of_the_tests_keep_their_versions_and_dependencies_do_not() -> None:
    names = {line.partition("==")[0] for line in tools(ROOT).splitlines()}
    assert {"pytest", "hypothesis"} <= names
    assert not names & LOCKED.keys()
