"""The disk that forgets, against what POSIX promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.disk import ALL_SPARED, BYTES_SPARED, NAMES_SPARED, NOTHING_SPARED, Disk, Loss
from tests.crash.shim import Op


class Process:
    """Makes the calls that a process would."""

    def __init__(self, root: Path) -> None:
        self.disk = Disk(root)
        self._root = root
        self._losses = 0
        self.root_inode = root.stat().st_ino

    def create(self, name: str, inode: int, kind: str = "C") -> None:
        self.disk.apply(Op(kind, inode, 0, f"{self._root}/{name}".encode()))

    def write(self, inode: int, at: int, data: bytes) -> None:
        self.disk.apply(Op("W", inode, at, data))

    def truncate(self, inode: int, size: int) -> None:
        self.disk.apply(Op("T", inode, size, b""))

    def sync(self, inode: int) -> None:
        self.disk.apply(Op("S", inode, 0, b""))

    def rename(self, old: str, new: str) -> None:
        self.disk.apply(Op("R", 0, 0, f"{self._root}/{old}\0{self._root}/{new}".encode()))

    def left(self, loss: Loss) -> dict[str, bytes]:
        """Return the files after the loss, by path."""
        self._losses += 1
        target = self._root.with_name(f"left-{self._losses}")
        self.disk.survivors(target, loss)
        return {
            str(each.relative_to(target)): each.read_bytes() for each in target.rglob("*") if each.is_file()
        }


@pytest.fixture
def process(tmp_path: Path) -> Process:
    root = tmp_path / "disk"
    root.mkdir()
    (root / "old").write_bytes(b"there before")
    return Process(root)


def test_earlier_files_are_safe(process: Process) -> None:
    assert process.left(NOTHING_SPARED) == {"old": b"there before"}


def test_a_file_needs_its_name_synced_as_well_as_its_bytes(process: Process) -> None:
    process.create("a", 1)
    process.write(1, 0, b"text")
    process.sync(1)
    assert process.left(NOTHING_SPARED).keys() == {"old"}
    assert process.left(NAMES_SPARED)["a"] == b"text"
    process.sync(process.root_inode)
    assert process.left(NOTHING_SPARED)["a"] == b"text"


def test_unsynced_bytes_may_be_lost_although_the_name_survives(process: Process) -> None:
    process.create("a", 1)
    process.sync(process.root_inode)
    process.write(1, 0, b"text")
    assert process.left(NOTHING_SPARED)["a"] == b""
    assert process.left(BYTES_SPARED)["a"] == b"text"


def test_a_rename_that_was_not_synced_leaves_the_old_file(process: Process) -> None:
    process.create("new", 1)
    process.write(1, 0, b"new text")
    process.sync(1)
    process.rename("new", "old")
    assert process.left(NOTHING_SPARED) == {"old": b"there before"}
    assert process.left(ALL_SPARED) == {"old": b"new text"}


def test_rename_between_folders_may_survive_in_only_one_of_them(process: Process) -> None:
    process.create("folder", 9, "D")
    process.create("a", 1)
    process.sync(process.root_inode)
    process.rename("a", "folder/a")
    assert set(process.left(NOTHING_SPARED)) == {"old", "a"}
    process.sync(9)
    assert set(process.left(NOTHING_SPARED)) == {"old", "a", "folder/a"}


def test_a_write_is_torn_at_the_borders_of_sectors(process: Process) -> None:
    process.create("a", 1)
    process.sync(process.root_inode)
    process.write(1, 500, b"x" * 600)
    turns = iter([True, False, True])
    left = process.left(Loss(512, lambda: next(turns), lambda _: 0))["a"]
    assert left == bytes(500) + b"x" * 12 + bytes(512) + b"x" * 76


def test_a_truncation_may_be_lost(process: Process) -> None:
    process.create("a", 1)
    process.sync(process.root_inode)
    process.write(1, 0, b"text")
    process.sync(1)
    process.truncate(1, 0)
    assert process.left(NOTHING_SPARED)["a"] == b"text"
    assert process.left(ALL_SPARED)["a"] == b""
