"""An upgrade copies the database first; the number and the age of copies are limited."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio
from sqlite_utils import Database, Migrations

from deskwire.storage.sqlite.backup import copies
from deskwire.storage.sqlite.backup.copies import copy_before_upgrade, run_copies
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError
from deskwire.storage.sqlite.migrations import apply
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from deskwire.storage.sqlite.store import open_store
from tests.storage.backup.conftest import fill
from tests.support.deadlines import HANG_TIMEOUT_S


def add_migration(monkeypatch: pytest.MonkeyPatch, change: Callable[[Database], object]) -> None:
    """Let the program have one more migration."""
    longer = Migrations("deskwire")
    with closing(Database(memory=True)) as empty:
        for known in apply.migrations.pending(empty):
            longer(name=known.name)(known.fn)

    @longer()
    def m9999_next(db: Database) -> None:
        change(db)

    monkeypatch.setattr(apply, "migrations", longer)
    monkeypatch.setitem(SCRIPTS, "m9999_next", "")


async def upgrade(directory: Path, kept: int = 2) -> None:
    """Open a directory, as the service does when it starts."""
    async with open_store(directory, batch=1, readers=1, on_commit=lambda _: None, upgrade_copies=kept):
        pass


def made(directory: Path) -> list[Path]:
    """Return the copies, oldest first."""
    return sorted((directory / "backups").glob("*"))


async def test_an_upgrade_copies_the_database_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path)
    await upgrade(tmp_path)
    assert made(tmp_path) == []
    add_migration(monkeypatch, lambda db: db.execute("DROP TABLE memory"))
    await upgrade(tmp_path)
    (copy,) = made(tmp_path)
    assert copy.name.endswith("-before-m9999_next.sqlite3")
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM memory").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (3,)


async def test_a_new_directory_needs_no_copy(tmp_path: Path) -> None:
    await upgrade(tmp_path)
    assert made(tmp_path) == []


async def test_an_upgrade_that_fails_again_and_again_keeps_one_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path)
    older = tmp_path / "backups" / "20200101T000000Z-before-m0008.sqlite3"
    older.parent.mkdir()
    older.write_text("an older copy")
    add_migration(monkeypatch, lambda db: db.execute("no SQL at all"))
    for _ in range(3):
        with pytest.raises(DataDirectoryError):
            await upgrade(tmp_path)
    assert [copy.name.partition("-")[2] for copy in made(tmp_path)] == [
        "before-m0008.sqlite3",
        "before-m9999_next.sqlite3",
    ]


def test_the_oldest_go_when_there_are_too_many(data: Path) -> None:
    for number in range(5):
        copy_before_upgrade(data / FILE_NAME, 3, f"m{number}")
    assert [copy.name.partition("-")[2] for copy in made(data)] == [f"before-m{n}.sqlite3" for n in (2, 3, 4)]


def test_none_are_made_when_none_are_wanted(data: Path) -> None:
    copy_before_upgrade(data / FILE_NAME, 0, "m1")
    assert made(data) == []


def test_without_room_for_the_copy_nothing_is_migrated(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "database_bytes", lambda _: 1 << 62)
    with pytest.raises(DataDirectoryError, match="DESKWIRE_UPGRADE_COPIES=0"):
        copy_before_upgrade(data / FILE_NAME, 1, "m1")
    assert made(data) == []


def test_remains_of_a_killed_copy_are_removed_by_the_next(data: Path) -> None:
    (data / "backups").mkdir()
    (data / "backups" / "20200101T000000Z-before-m1.sqlite3.part").write_text("half")
    copy_before_upgrade(data / FILE_NAME, 2, "m2")
    assert [copy.name.partition("-")[2] for copy in made(data)] == ["before-m2.sqlite3"]


async def test_copies_go_when_their_time_is_over(tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    for name, age_s in (("a.sqlite3", 150), ("b.sqlite3.part", 150), ("c.sqlite3", 30)):
        (tmp_path / "backups" / name).write_text("erased text")
        os.utime(tmp_path / "backups" / name, (1_000 - age_s, 1_000 - age_s))
    times, found = iter((1_000, 1_040, 1_080, 1_120)), list[list[str]]()
    seen = trio.Event()

    def clock() -> int:
        """Record in each round the copies that the previous round has left."""
        found.append([copy.name for copy in made(tmp_path)])
        now = next(times)
        if now == 1_120:
            seen.set()
        return now * 1_000

    with trio.fail_after(HANG_TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: run_copies(tmp_path, clock, kept_s=100, interval_s=0))
            await seen.wait()
            nursery.cancel_scope.cancel()
    assert found == [["a.sqlite3", "b.sqlite3.part", "c.sqlite3"], ["c.sqlite3"], ["c.sqlite3"], []]
