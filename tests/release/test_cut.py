"""The changes of a release's commit, and of the one after it, on a copy of the files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import pytest
from release.cut import PLACES, NotCut, begin_next, cut, named_releases
from release.hooks import base_version

from tests.support.root import ROOT

DAY: Final = "2027-01-31"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files that name a version, with a development version of 7.1.0."""
    for path in (
        ROOT / "pyproject.toml",
        ROOT / "CHANGELOG.md",
        *(ROOT / name for name in named_releases(ROOT)),
    ):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    pyproject = tmp_path / "pyproject.toml"
    present = base_version(pyproject.read_text())
    pyproject.write_text(pyproject.read_text().replace(f'version = "{present}"', 'version = "7.1.0.dev0"'))
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text().replace("## [Unreleased]\n", "## [Unreleased]\n\n- A change.\n")
    )
    return tmp_path


def version_of(tree: Path) -> str:
    return base_version((tree / "pyproject.toml").read_text())


def test_a_release_has_its_version_everywhere_and_its_day_in_the_changelog(tree: Path) -> None:
    cut(tree, "7.1.0", DAY)
    assert version_of(tree) == "7.1.0"
    assert f"## [Unreleased]\n\n## [7.1.0] - {DAY}\n\n- A change.\n" in (tree / "CHANGELOG.md").read_text()
    assert all(named == {"7.1.0"} for named in named_releases(tree).values())


def test_the_commit_after_a_release_has_the_next_development_version(tree: Path) -> None:
    cut(tree, "7.1.0", DAY)
    begin_next(tree, "7.2.0")
    assert version_of(tree) == "7.2.0.dev0"
    assert all(named == {"7.1.0"} for named in named_releases(tree).values())


@pytest.mark.parametrize("version", ["7.0.9", "7.2.0", "7.1", "v7.1.0", "7.1.0.dev0", ""])
def test_another_version_than_the_developed_one_is_not_cut(tree: Path, version: str) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    with pytest.raises(NotCut):
        cut(tree, version, DAY)
    assert {path: path.read_bytes() for path in before} == before


def test_a_release_without_changes_is_not_cut(tree: Path) -> None:
    changelog = tree / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## [Unreleased]\n\n## [7.0.0] - 2026-12-01\n\n- Old.\n")
    with pytest.raises(NotCut, match="no entries under Unreleased"):
        cut(tree, "7.1.0", DAY)


@pytest.mark.parametrize("version", ["7.1.0", "7.0.0", "8", "7.2.0.dev0"])
def test_the_next_version_comes_after_the_release(tree: Path, version: str) -> None:
    cut(tree, "7.1.0", DAY)
    with pytest.raises(NotCut):
        begin_next(tree, version)


def test_nothing_begins_after_a_development_version(tree: Path) -> None:
    with pytest.raises(NotCut, match="no release"):
        begin_next(tree, "7.2.0")


def test_files_for_operators_name_the_newest_release() -> None:
    newest = re.findall(r"^## \[(\d[^]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    named = named_releases(ROOT)
    assert len(named) >= len(PLACES)
    assert set().union(*named.values()) == {newest}
