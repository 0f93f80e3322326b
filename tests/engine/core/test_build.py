"""The build that a running service reports."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Final

import pytest

from deskwire.engine.core.build import UNKNOWN, commit, notices, version

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


def test_checkout_reports_its_version_with_the_commit_at_run_time(tmp_path: Path) -> None:
    """An editable installation has the version of the day it was installed in its metadata."""
    written(tmp_path / "pyproject.toml", '[tool.deskwire]\nversion = "7.1.0.dev0"\n')
    written(tmp_path / ".git/HEAD", f"{SHA}\n")
    assert version(NOTHING, tmp_path) == f"7.1.0.dev0+g{SHA[:12]}"


def test_checkout_of_a_release_reports_the_release(tmp_path: Path) -> None:
    written(tmp_path / "pyproject.toml", '[tool.deskwire]\nversion = "7.1.0"\n')
    written(tmp_path / ".git/HEAD", f"{SHA}\n")
    assert version(NOTHING, tmp_path) == "7.1.0"


def test_sources_without_history_report_the_version_alone(tmp_path: Path) -> None:
    written(tmp_path / "pyproject.toml", '[tool.deskwire]\nversion = "7.1.0.dev0"\n')
    assert version(NOTHING, tmp_path) == "7.1.0.dev0"


def test_build_reports_the_version_of_its_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "pyproject.toml", '[tool.deskwire]\nversion = "7.1.0.dev0"\n')
    monkeypatch.setattr(importlib.metadata, "version", {"deskwire": "1.2.3"}.__getitem__)
    assert version(written(tmp_path / "commit", SHA), tmp_path) == "1.2.3"
