"""The build that a running service reports."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from deskwire.program.build import UNKNOWN, commit, notices

SHA: Final = "0123456789abcdef0123456789abcdef01234567"
NOTHING: Final = Path("/nonexistent")


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_build_reports_the_commit_in_its_file_with_any_checkout(tmp_path: Path) -> None:
    written(tmp_path / ".git/HEAD", f"{'f' * 40}\n")
    assert commit(written(tmp_path / "commit", f"{SHA}-dirty\n"), tmp_path) == f"{SHA}-dirty"


def test_checkout_of_a_branch_reports_the_branchs_commit(tmp_path: Path) -> None:
    written(tmp_path / ".git/HEAD", "ref: refs/heads/main\n")
    written(tmp_path / ".git/refs/heads/main", f"{SHA}\n")
    assert commit(NOTHING, tmp_path) == SHA


def test_a_branch_that_git_has_packed_is_found(tmp_path: Path) -> None:
    written(tmp_path / ".git/HEAD", "ref: refs/heads/main\n")
    written(
        tmp_path / ".git/packed-refs", f"# pack-refs\n{'f' * 40} refs/heads/not/main\n{SHA} refs/heads/main\n"
    )
    assert commit(NOTHING, tmp_path) == SHA


def test_worktree_reads_the_commit_from_its_repository(tmp_path: Path) -> None:
    own = tmp_path / "main/.git/worktrees/w"
    written(own / "HEAD", "ref: refs/heads/w\n")
    written(own / "commondir", "../..\n")
    written(tmp_path / "main/.git/refs/heads/w", f"{SHA}\n")
    written(tmp_path / "w/.git", f"gitdir: {own}\n")
    assert commit(NOTHING, tmp_path / "w") == SHA


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "something else"])
def test_missing_information_is_reported_as_unknown(tmp_path: Path, head: str) -> None:
    assert commit(NOTHING, tmp_path) == UNKNOWN
    written(tmp_path / ".git/HEAD", head)
    assert commit(NOTHING, tmp_path) == UNKNOWN
    assert commit(written(tmp_path / "commit", "$Format:%H$"), tmp_path) == UNKNOWN


def test_executable_prints_its_licences_and_other_builds_say_where_they_are(tmp_path: Path) -> None:
    assert notices(written(tmp_path / "notices.txt", "all of them\n")) == "all of them\n"
    assert "dist-info" in notices(NOTHING)
