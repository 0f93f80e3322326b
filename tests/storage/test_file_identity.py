"""The database file under an open store: deleted, replaced, cut and overwritten (issue 39, finding 6)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import Reader, Transaction
from deskwire.storage.sqlite.database import DirectoryLock
from deskwire.storage.sqlite.directory import (
    FILE_NAME,
    LOCK_NAME,
    RESCUED,
    DataDirectoryError,
    DirectoryInUseError,
)
from deskwire.storage.sqlite.store import SqliteStore, open_store
from tests.support.builders import NOON
from tests.support.deadlines import HANG_TIMEOUT_S

SIDES = ("-wal", "-shm")


class Opened:
    """A store and the organisations that it has acknowledged."""

    def __init__(self, store: SqliteStore, path: Path) -> None:
        self.store = store
        self.path = path
        self.acknowledged: list[str] = []

    async def add(self, count: int = 1) -> None:
        """Store organisations; raises Unavailable if one is refused."""
        for _ in range(count):
            name = f"organisation {len(self.acknowledged):04}"
            await self.store.write(partial(_insert, name))
            self.acknowledged.append(name)

    async def refused(self) -> str:
        """Return why a write is refused. Fails if it is stored."""
        with pytest.raises(Unavailable) as refusal:
            await self.add()
        assert refusal.value.reason == "wrong_database", refusal.value
        reason = self.store.identity.refusal
        assert reason is not None
        assert reason.detail == str(refusal.value)
        return reason.reason

    async def saved(self) -> str:
        """Wait for the copy of the content; return the detail of the refusal then."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                refusal = self.store.identity.refusal
                if refusal is not None and RESCUED in refusal.detail:
                    return refusal.detail
                await trio.sleep(0.01)  # poll: there is no notification


def _insert(name: str, tx: Transaction) -> None:
    tx.insert_organisation(f"org_{name}", name, NOON)


@asynccontextmanager
async def opened(directory: Path, *, count: int = 20) -> AsyncIterator[Opened]:
    async with open_store(directory, batch=8, readers=1, on_commit=lambda _: None) as store:
        here = Opened(store, directory / FILE_NAME)
        await here.add(count)
        yield here


def stored(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [name for (name,) in connection.execute("SELECT name FROM organisations ORDER BY name")]


def folded(path: Path) -> None:
    """Fold the WAL into the database from another process's point of view."""
    apart(path, "PRAGMA wal_checkpoint(PASSIVE)")


def apart(path: Path, *statements: str) -> None:
    """Run statements in a process of its own, as another program does."""
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); [c.execute(s).fetchall() for s in sys.argv[2:]]"
    subprocess.run([sys.executable, "-c", code, str(path), *statements], check=True)


def header_of(path: Path) -> bytes:
    """Return the header, read by another process because closing the file would release this one's locks on it."""
    return subprocess.run(["head", "-c", "100", path], check=True, capture_output=True).stdout


@contextmanager
def snapshot(path: Path) -> Iterator[None]:
    """Read in a transaction of another process until the end of the block."""
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN'); print(c.execute('SELECT count(*) FROM organisations').fetchone()); sys.stdout.flush(); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline()
        yield


def consistent_copy(path: Path, target: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


async def test_writes_go_on_over_checkpoints_of_this_and_other_processes(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        for _ in range(5):
            await here.add(10)
            folded(here.path)
        assert here.store.identity.refusal is None
    assert stored(here.path) == here.acknowledged


async def test_writes_go_on_after_a_checkpoint_that_a_reader_has_stopped(tmp_path: Path) -> None:
    """Such a checkpoint writes the new number of pages, but not a last page that has changed after the reader's snapshot."""
    async with opened(tmp_path) as here:
        await here.store.write(lambda tx: tx.conn.execute("CREATE TABLE grown (x)"))  # type: ignore[attr-defined]
        folded(here.path)
        await here.store.write(_fill)
        with snapshot(here.path):
            await here.store.write(_change_last)
            folded(here.path)
            header = header_of(here.path)
            size = int.from_bytes(header[28:32]) * int.from_bytes(header[16:18])
            assert here.path.stat().st_size < size
            await here.add(5)
            assert here.store.identity.refusal is None
        folded(here.path)
        await here.add()
        assert here.path.stat().st_size >= size
    assert stored(here.path) == here.acknowledged


def _fill(tx: Transaction) -> None:
    for _ in range(50):
        tx.conn.execute("INSERT INTO grown VALUES (zeroblob(1000))")  # type: ignore[attr-defined]


def _change_last(tx: Transaction) -> None:
    tx.conn.execute("UPDATE grown SET x = randomblob(1000) WHERE rowid = 50")  # type: ignore[attr-defined]


async def test_deleted_database_refuses_writes_and_is_saved(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.path.unlink()
        assert await here.refused() == "file_gone"
        detail = await here.saved()
        assert str(tmp_path / RESCUED) in detail
        assert "move" in detail
    assert stored(tmp_path / RESCUED) == here.acknowledged
    assert (tmp_path / RESCUED).stat().st_mode & 0o777 == 0o600
    assert not any((tmp_path / f"{FILE_NAME}{side}").exists() for side in SIDES)


async def test_start_beside_a_saved_database_is_refused_until_it_is_put_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.path.unlink()
        await here.refused()
        await here.saved()
    with pytest.raises(DataDirectoryError, match=f"{RESCUED}.*is missing.*move it to"):
        async with opened(tmp_path):
            pass
    (tmp_path / RESCUED).rename(here.path)
    async with opened(tmp_path, count=0) as again:
        rows: list[str] = await again.store.read(_names)
    assert sorted(rows) == here.acknowledged


def _names(reader: Reader) -> list[str]:
    return [each.name for each in reader.organisations()]


async def test_database_deleted_without_a_write_since_is_saved_at_the_stop(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.path.unlink()
    assert stored(tmp_path / RESCUED) == here.acknowledged


async def test_look_of_readiness_finds_a_deleted_database_before_any_write(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.path.unlink()
        here.store.identity.check()
        await here.saved()


def remove_all_three(path: Path) -> None:
    """Remove the database with its WAL and index."""
    for side in ("", *SIDES):
        path.with_name(f"{FILE_NAME}{side}").unlink()


def remove_directory(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("remove", [Path.unlink, remove_all_three, remove_directory])
async def test_database_is_saved_however_much_beside_it_is_deleted(
    tmp_path: Path, remove: Callable[[Path], None]
) -> None:
    data = tmp_path / "data"
    async with opened(data) as here:
        remove(here.path)
        assert await here.refused() == "file_gone"
        await here.saved()
    assert stored(data / RESCUED) == here.acknowledged


async def test_moved_directory_keeps_its_database_and_nothing_is_copied(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with opened(data) as here:
        data.rename(tmp_path / "elsewhere")
        assert await here.refused() == "file_gone"
    assert not data.exists()
    assert stored(tmp_path / "elsewhere" / FILE_NAME) == here.acknowledged


async def test_database_moved_back_is_accepted_and_its_copy_removed(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.path.rename(tmp_path / "away")
        assert await here.refused() == "file_gone"
        await here.saved()
        (tmp_path / "away").rename(here.path)
        await here.add(5)
        assert here.store.identity.refusal is None
        assert not (tmp_path / RESCUED).exists()
    assert stored(here.path) == here.acknowledged


async def test_database_moved_back_before_the_stop_leaves_no_copy(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.path.rename(tmp_path / "away")
        await here.refused()
        await here.saved()
        (tmp_path / "away").rename(here.path)
    assert not (tmp_path / RESCUED).exists()
    assert stored(here.path) == here.acknowledged


async def test_database_written_to_under_another_name_is_not_accepted_again(tmp_path: Path) -> None:
    away = tmp_path / "away"
    async with opened(tmp_path) as here:
        here.path.rename(away)
        await here.refused()
        await here.saved()
        apart(away, "CREATE TABLE planted (x)", "PRAGMA wal_checkpoint(PASSIVE)")
        away.rename(here.path)
        assert await here.refused() == "file_damaged"
    assert stored(tmp_path / RESCUED) == here.acknowledged


def older(here: Opened, copy: Path) -> None:
    consistent_copy(here.path, copy)


def foreign(here: Opened, copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as other:
        other.execute("CREATE TABLE t (x)")


def malformed(here: Opened, copy: Path) -> None:
    consistent_copy(here.path, copy)
    with copy.open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(65_536))


def empty(here: Opened, copy: Path) -> None:
    copy.touch()


COPIES = [older, foreign, malformed, empty]


@pytest.mark.parametrize("made", COPIES)
async def test_replaced_database_is_left_alone_and_the_open_one_is_saved(
    tmp_path: Path, made: Callable[[Opened, Path], None]
) -> None:
    copy = tmp_path / "copy"
    async with opened(tmp_path) as here:
        made(here, copy)
        await here.add(5)
        content = copy.read_bytes()
        copy.replace(here.path)
        assert await here.refused() == "file_replaced"
        detail = await here.saved()
        assert "move it away" in detail
    assert stored(tmp_path / RESCUED) == here.acknowledged
    assert here.path.read_bytes() == content
    assert not any((tmp_path / f"{FILE_NAME}{side}").exists() for side in SIDES)


def replace_with_the_times_of_before(path: Path, copy: Path) -> None:
    """Replace a file and set the times of its directory back, as rsync does."""
    times = path.parent.stat()
    copy.replace(path)
    os.utime(path.parent, ns=(times.st_atime_ns, times.st_mtime_ns))


async def test_database_replaced_by_a_program_that_keeps_the_times_of_directories_is_noticed(
    tmp_path: Path,
) -> None:
    copy = tmp_path / "copy"
    async with opened(tmp_path) as here:
        older(here, copy)
        await here.add()  # compares the names
        replace_with_the_times_of_before(here.path, copy)
        assert await here.refused() == "file_replaced"


@pytest.mark.parametrize("made", COPIES)
@pytest.mark.parametrize("in_wal", [False, True], ids=["folded", "in the WAL"])
async def test_copy_written_over_the_database_refuses_writes(
    tmp_path: Path, made: Callable[[Opened, Path], None], *, in_wal: bool
) -> None:
    copy = tmp_path / "copy"
    async with opened(tmp_path, count=200) as here:
        made(here, copy)
        await here.add(200)
        if not in_wal:
            folded(here.path)
            await here.add()
        shutil.copyfile(copy, here.path)  # as cp does: the same file with other content
        assert await here.refused() in ("file_damaged", "file_truncated")
        assert await here.refused() in ("file_damaged", "file_truncated")
    assert not (tmp_path / RESCUED).exists()


@pytest.mark.parametrize("size", [0, 50, 4096, 100_000])
async def test_cut_database_refuses_writes(tmp_path: Path, size: int) -> None:
    async with opened(tmp_path) as here:
        os.truncate(here.path, size)
        assert await here.refused() == "file_truncated"


async def test_database_overwritten_in_the_middle_refuses_writes(tmp_path: Path) -> None:
    async with opened(tmp_path, count=300) as here:
        folded(here.path)
        await here.add()
        with here.path.open("r+b") as file:
            file.seek(200_000)
            file.write(os.urandom(100_000))
        assert await here.refused() == "file_damaged"


async def test_damage_that_a_read_meets_refuses_writes(tmp_path: Path) -> None:
    async with opened(tmp_path, count=300) as here:
        folded(here.path)
        await here.add()
        status = here.path.stat()
        with here.path.open("r+b") as file:
            file.seek(4096)
            file.write(os.urandom(status.st_size - 4096))
        os.utime(here.path, ns=(status.st_atime_ns, status.st_mtime_ns))  # only the content shows the change
        with pytest.raises(Unavailable) as refusal:
            await here.store.read(_everything)
        assert refusal.value.reason == "wrong_database"
        assert await here.refused() == "file_damaged"


@pytest.mark.parametrize("size", [50, 4096, 100_000])
async def test_cut_that_a_read_meets_first_is_called_a_cut(tmp_path: Path, size: int) -> None:
    async with opened(tmp_path, count=300) as here:
        folded(here.path)
        await here.add()
        os.truncate(here.path, size)
        with pytest.raises(Unavailable) as refusal:
            await here.store.read(_everything)
        assert refusal.value.reason == "wrong_database"
        assert f"was cut to {size:,} bytes" in str(here.store.identity.refusal)
        assert await here.refused() == "file_truncated"


def _everything(reader: Reader) -> object:
    return reader.conn.execute("SELECT count(*) FROM events, contacts, messages").fetchone()  # type: ignore[attr-defined]


async def test_time_set_by_another_program_refuses_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.path.touch()
        await here.add(5)
        assert here.store.identity.refusal is None


@pytest.mark.parametrize("side", SIDES)
async def test_deleted_side_file_refuses_writes_and_loses_nothing(tmp_path: Path, side: str) -> None:
    async with opened(tmp_path) as here:
        here.path.with_name(f"{FILE_NAME}{side}").unlink()
        assert await here.refused() == "file_gone"
        assert "estart the service" in str(here.store.identity.refusal)
    assert stored(here.path) == here.acknowledged


@pytest.mark.parametrize("side", SIDES)
async def test_deleted_side_file_loses_nothing_by_a_kill_after_the_refusal(tmp_path: Path, side: str) -> None:
    async with opened(tmp_path) as here:
        here.path.with_name(f"{FILE_NAME}{side}").unlink()
        await here.refused()
        copy = tmp_path / "as a kill leaves it"
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                shutil.copyfile(here.path, copy)
                if stored(copy) == here.acknowledged:
                    break
                await trio.sleep(0.01)  # poll: there is no notification


async def test_cut_wal_refuses_writes(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        os.truncate(here.path.with_name(f"{FILE_NAME}-wal"), 5000)
        assert await here.refused() == "file_truncated"


async def test_wal_emptied_by_another_process_refuses_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        apart(here.path, "PRAGMA wal_checkpoint(TRUNCATE)")
        await here.add(5)
    assert stored(here.path) == here.acknowledged


async def test_removed_lock_is_taken_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        (tmp_path / LOCK_NAME).unlink()
        await here.add()
        with pytest.raises(DirectoryInUseError):
            DirectoryLock(tmp_path)


async def test_process_whose_lock_another_has_taken_refuses_writes(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        (tmp_path / LOCK_NAME).unlink()
        other = DirectoryLock(tmp_path, "server")
        assert await here.refused() == "file_replaced"
        assert "another process" in str(here.store.identity.refusal)
        other.release()
    assert not (tmp_path / RESCUED).exists()


async def test_full_disk_delays_the_saved_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskwire.storage.sqlite.rescue.RETRY_DELAY_S", 0.01)
    async with opened(tmp_path) as here:
        (tmp_path / RESCUED).mkdir()  # blocks the copy; permissions would not stop root
        here.path.unlink()
        assert await here.refused() == "file_gone"
        await trio.sleep(0.1)  # a few tries
        assert await here.refused() == "file_gone"
        (tmp_path / RESCUED).rmdir()
        await here.saved()
    assert stored(tmp_path / RESCUED) == here.acknowledged
