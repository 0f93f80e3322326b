"""The files from which the image of a release is built."""

from __future__ import annotations

import re
import shlex
import subprocess
import tarfile
from pathlib import Path

import pytest
from release.image import image_context

from tests.support.root import ROOT


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive of a release, made of the files that git knows."""
    folder = tmp_path_factory.mktemp("context")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "tree" / name).symlink_to(ROOT / name)
    image_context(folder / "tree", folder / "context.tar.gz")
    return folder / "context.tar.gz"


def test_the_context_has_every_file_that_the_dockerfile_copies(context: Path) -> None:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "docs/deploy/Dockerfile").read_text())
    copied = [shlex.split(rest)[:-1] for rest in re.findall(r"^COPY (?!--from=)(.*)$", text, re.MULTILINE)]
    with tarfile.open(context) as archive:
        names = archive.getnames()
    assert copied
    for source in (each for sources in copied for each in sources):
        assert source in names or any(name.startswith(f"{source}/") for name in names), source
    assert "Dockerfile" in names


def test_the_context_has_no_tests_and_says_nothing_of_the_machine_that_made_it(context: Path) -> None:
    with tarfile.open(context) as archive:
        entries = archive.getmembers()
    assert [each.name for each in entries] == sorted(each.name for each in entries)
    assert {each.name.split("/")[0] for each in entries}.isdisjoint({"tests", "benchmarks", ".git", "data"})
    assert {(each.mtime, each.uid, each.gid, each.uname) for each in entries} == {(0, 0, 0, "")}
    assert {each.mode for each in entries} <= {0o644, 0o755}


def test_what_a_build_has_left_in_the_folders_is_not_in_the_context(tmp_path: Path) -> None:
    (tmp_path / "tree/docs/deploy").mkdir(parents=True)
    (tmp_path / "tree/docs/deploy/Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "tree/release/__pycache__").mkdir(parents=True)
    (tmp_path / "tree/release/hooks.py").touch()
    (tmp_path / "tree/release/__pycache__/hooks.cpython-311.pyc").write_bytes(b"of this moment")
    image_context(tmp_path / "tree", tmp_path / "context.tar.gz")
    with tarfile.open(tmp_path / "context.tar.gz") as archive:
        assert archive.getnames() == ["Dockerfile", "docs/deploy/Dockerfile", "release/hooks.py"]
