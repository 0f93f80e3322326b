"""A full disk at every stage causes an error and leaves no file. The limit is the system's limit of file sizes."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deskwire.storage.sqlite.backup.copies import copy_before_upgrade
from deskwire.storage.sqlite.backup.snapshot import CopyError
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError
from tests.storage.backup.conftest import back_up, left, restore


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file grow beyond this many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def whole(data: Path, tmp_path: Path) -> Path:
    """Make a complete backup of the directory."""
    return back_up(data, tmp_path / "whole.tar").path


@pytest.mark.parametrize("part", [0.01, 0.5, 0.99, 0.999])
def test_a_backup_that_does_not_fit_leaves_nothing(
    data: Path, tmp_path: Path, whole: Path, part: float
) -> None:
    with files_up_to(int(whole.stat().st_size * part)), pytest.raises(CopyError):
        back_up(data, tmp_path / "b.tar")
    assert left(tmp_path) == {"data", "whole.tar"}


@pytest.mark.parametrize("size", [50, 4_096, 100_000])
def test_a_restore_that_does_not_fit_leaves_nothing(tmp_path: Path, whole: Path, size: int) -> None:
    with files_up_to(size), pytest.raises(CopyError):
        restore(whole, tmp_path / "new")
    assert left(tmp_path) == {"data", "whole.tar"}


def test_upgrade_without_room_for_its_copy_is_refused_and_leaves_none(data: Path) -> None:
    with files_up_to(100_000), pytest.raises(DataDirectoryError, match="copy before the upgrade failed"):
        copy_before_upgrade(data / FILE_NAME, 1, "m1")
    assert left(data / "backups") == set()
