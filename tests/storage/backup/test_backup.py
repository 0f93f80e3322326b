"""A backup is a consistent snapshot, is complete or absent, and does not disturb the service."""

from __future__ import annotations

import fcntl
import sqlite3
import stat
import tarfile
from contextlib import closing, suppress
from pathlib import Path

import pytest
import trio

from deskwire.engine.core.secret import Secrets
from deskwire.storage.files import DiskFiles
from deskwire.storage.sqlite.backup import make as backups
from deskwire.storage.sqlite.backup.snapshot import CopyError
from deskwire.storage.sqlite.backup.unpack import read_archive
from deskwire.storage.sqlite.database import DirectoryLock
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.storage.backup.conftest import CONTENT, FILE, SECRET, back_up, fill, left, restore
from tests.support.builders import PROJECT, post, running


def test_backup_is_a_private_tar_file_with_database_uploads_and_manifest(data: Path, tmp_path: Path) -> None:
    made = back_up(data, tmp_path / "b.tar", with_secret=False)
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    with tarfile.open(made.path) as archive:
        assert archive.getnames() == [
            "backup.json",
            "deskwire.sqlite3",
            f"uploads/1/{CONTENT.sha256[:2]}/{CONTENT.sha256}",
            "manifest.json",
            "manifest.hmac",
        ]
    assert left(tmp_path) == {"data", "b.tar"}
    assert (made.manifest.rows["messages"], made.manifest.files, made.manifest.missing_files) == (3, 1, 0)


def test_the_secret_is_in_it_only_when_it_is_asked_for(data: Path, tmp_path: Path) -> None:
    with_it, without = back_up(data, tmp_path / "a.tar"), back_up(data, tmp_path / "b.tar", with_secret=False)
    assert SECRET.encode() in with_it.path.read_bytes()
    assert SECRET.encode() not in without.path.read_bytes()


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.tar"
    target.write_text("something else")
    with pytest.raises(CopyError, match="--force"):
        back_up(data, target)
    assert target.read_text() == "something else"
    back_up(data, target, force=True)
    assert read_archive(target, Secrets(SECRET)).sealed
    with pytest.raises(CopyError, match="is a directory"):
        back_up(data, tmp_path, force=True)


async def test_backup_of_a_running_service_is_consistent_and_blocks_no_commit(
    tmp_path: Path,
) -> None:
    conversation_id = await fill(tmp_path / "data")
    made = trio.Event()
    posted, said = trio.open_memory_channel[None](0)

    async with running(tmp_path / "data") as engine, trio.open_nursery() as nursery:

        async def talk() -> None:
            while not made.is_set():
                await engine.directory.ask(PROJECT, conversation_id, post())
                with suppress(trio.WouldBlock):
                    posted.send_nowait(None)

        nursery.start_soon(talk)
        for number in range(3):
            await said.receive()
            await trio.to_thread.run_sync(back_up, tmp_path / "data", tmp_path / f"{number}.tar")
        made.set()
    counts = []
    for number in range(3):
        assert restore(tmp_path / f"{number}.tar", tmp_path / str(number)).problems == []
        with closing(sqlite3.connect(tmp_path / str(number) / FILE_NAME)) as connection:
            counts.append(connection.execute("SELECT sequence FROM conversations").fetchone()[0])
    assert counts == sorted(set(counts))


def test_backup_has_no_deleted_data_even_before_scrubbing(data: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(data / FILE_NAME)) as connection, connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("INSERT INTO network_logs VALUES (1, ?, 0)", (b"marker-of-an-erased-text" * 100,))
        connection.commit()
        connection.execute("DELETE FROM network_logs")
    assert b"marker-of-an-erased-text" in (data / FILE_NAME).read_bytes()
    assert b"marker-of-an-erased-text" not in back_up(data, tmp_path / "b.tar").path.read_bytes()


@pytest.mark.parametrize("damage", ["missing", "shorter", "altered"])
def test_vanishing_or_damaged_file_is_named_and_left_out(data: Path, tmp_path: Path, damage: str) -> None:
    path = DiskFiles(data).place(CONTENT)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(FILE[:-1] if damage == "shorter" else bytes(len(FILE)))
    made = back_up(data, tmp_path / "b.tar")
    assert (made.manifest.files, made.manifest.missing_files) == (0, 1)
    assert made.manifest.missing == [f"uploads/1/{CONTENT.sha256[:2]}/{CONTENT.sha256}"]
    assert restore(made.path, tmp_path / "new").contents.manifest.files == 0


def test_a_damaged_database_makes_no_backup_and_leaves_nothing(data: Path, tmp_path: Path) -> None:
    with (data / FILE_NAME).open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096)
    with pytest.raises(CopyError, match=r"damaged|malformed"):
        back_up(data, tmp_path / "b.tar")
    assert left(tmp_path) == {"data"}


def test_a_disk_that_is_too_small_is_said_before_anything_is_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "_SPARE", 1 << 62)
    with pytest.raises(CopyError, match="are needed"):
        back_up(data, tmp_path / "b.tar")
    assert left(tmp_path) == {"data"}


def test_two_backups_to_the_same_file_do_not_mix(data: Path, tmp_path: Path) -> None:
    with (tmp_path / ".b.tar.part").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(CopyError, match="under way"):
            back_up(data, tmp_path / "b.tar")
    back_up(data, tmp_path / "b.tar")
    assert left(tmp_path) == {"data", "b.tar"}


def test_a_directory_without_database_or_with_one_of_the_future_is_refused(
    data: Path, tmp_path: Path
) -> None:
    with pytest.raises(CopyError, match="no Deskwire"):
        back_up(tmp_path / "elsewhere", tmp_path / "b.tar")
    with closing(sqlite3.connect(data / FILE_NAME)) as connection, connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations VALUES (99, 'deskwire', 'm9999_future', '', '9.9.0')"
        )
    with pytest.raises(CopyError, match="m9999_future"):
        back_up(data, tmp_path / "b.tar")


def test_a_backup_needs_no_lock_of_the_directory(data: Path, tmp_path: Path) -> None:
    lock = DirectoryLock(data)
    try:
        assert back_up(data, tmp_path / "b.tar").problems == []
    finally:
        lock.release()
