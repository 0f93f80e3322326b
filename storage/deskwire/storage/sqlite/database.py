"""Opening the database file: one process at a time, migrated, and set to lose and leave nothing."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Final, get_args

import structlog
from sqlite_utils import Database

from deskwire.storage.files import sync
from deskwire.storage.folded_patterns import folded_text, has_folded
from deskwire.storage.sqlite.directory import LOCK_NAME, DataDirectoryError, DirectoryInUseError, Holder
from deskwire.storage.sqlite.migrations.apply import migrations, newer_than_program
from deskwire.storage.tables.conversations.attributes import has_attribute

log: Final = structlog.get_logger(__name__)

_STEPS: Final = 10_000
"""Steps of SQLite's machine, some tenths of a millisecond, after which it asks whether to go on."""

_BUSY_MS: Final = 5_000
_PRAGMAS: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",  # what was acknowledged survives a power loss
    "secure_delete = ON",  # what was deleted is overwritten
    "foreign_keys = ON",
    "temp_store = MEMORY",  # no text in temporary files
    f"cache_size = -{32 * 1024}",  # KiB, the writer's
)


COMMAND_S: Final = 2.0
"""The time for which a directory that a command has is waited for: most look or change a row, and are gone."""
_LOOK_S: Final = 0.05
_SAID: Final = 64


class DirectoryLock:
    """Holds a data directory for this process; released by `release` or the process's end.

    Args:
        holder: what this process is, for those who are refused.

    Raises DirectoryInUseError if another process has it, DataDirectoryError if it can't be used.
    """

    def __init__(self, directory: Path, holder: Holder = "command") -> None:
        self._directory = directory
        self._holder: Holder = holder
        try:
            _make(directory)
            self._file = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirectoryError(f"The data directory {directory} can't be used: {error}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid, _, said = os.pread(self._file, _SAID, 0).decode(errors="replace").partition(" ")
            os.close(self._file)
            known = next((each for each in get_args(Holder) if each == said), None)
            raise DirectoryInUseError(directory, known, pid or "unknown") from None
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()} {holder}".encode(), 0)
        except OSError as error:  # a full disk
            os.close(self._file)
            raise DataDirectoryError(f"The data directory {directory} can't be used: {error}") from error

    def hold(self) -> str | None:
        """Lock the directory again if the lock's file was removed or replaced; return why it can't be done, else None."""
        path = self._directory / LOCK_NAME
        try:
            if os.path.samestat(os.stat(path), os.fstat(self._file)):
                return None
        except OSError:
            pass  # it was removed, and is made again
        try:
            renewed = DirectoryLock(self._directory, self._holder)
        except DirectoryInUseError as error:
            return f"{path} was removed, and another process (pid {error.pid}) has taken the directory"
        except DataDirectoryError as error:
            return f"{path} was removed, and can't be made again ({error})"
        log.warning("storage.locked_again", data=str(self._directory))
        os.close(self._file)
        self._file = renewed.pass_on()
        return None

    def pass_on(self) -> int:
        """Return the descriptor that holds the lock, which this object releases no longer."""
        file, self._file = self._file, -1
        return file

    def release(self) -> None:
        """Let go of the directory."""
        with suppress(OSError):  # what it says then is of a process that has gone
            os.ftruncate(self._file, 0)
        os.close(self._file)


def lock_when_free(directory: Path, holder: Holder = "command") -> DirectoryLock:
    """Lock the directory; while a command has it, wait for that one for `COMMAND_S`, and log it.

    For that time nothing else goes on in the thread. Raises as `DirectoryLock`: at once if a server has the directory.
    """
    give_up = time.monotonic() + COMMAND_S
    before: DirectoryInUseError | None = None
    while True:
        try:
            return DirectoryLock(directory, holder)
        except DirectoryInUseError as error:
            # Twice the same: whoever has just locked it says so a moment later, and what stands there is of the one before.
            stays = before is not None and (before.holder, before.pid) == (error.holder, error.pid)
            if (stays and error.holder != "command") or time.monotonic() >= give_up:
                raise
            if before is None and error.holder == "command":
                log.info("storage.waits_for_command", data=str(directory), pid=error.pid)
            before = error
        time.sleep(_LOOK_S)


def _make(directory: Path) -> None:
    """Make the directory if it is not there, and have its name on the disk before anything in it counts."""
    missing = list(takewhile(lambda each: not each.exists(), (directory, *directory.parents)))
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for made in missing:
        sync(made.parent)


def refuse_upgrade(path: Path, migration: str) -> None:
    """Leave an older database as it is, for those who only look. Raises DataDirectoryError."""
    raise DataDirectoryError(
        f"The database {path} was written by an older Deskwire (it lacks {migration}), and a command that only looks leaves "
        "it as it is. Start the server with `deskwire serve`: it makes a copy, and brings it up to date."
    )


def migrate(path: Path, before_upgrade: Callable[[str], None] = lambda _: None) -> None:
    """Create the database or bring it up to date.

    Args:
        before_upgrade: called with the first migration that an older database needs, before anything changes; what it
            raises keeps the database as it is.

    Raises DataDirectoryError if it was written by a newer program, or is no database of ours.
    """
    created = not path.exists()
    try:
        with closing(_connect(path)) as connection:
            if created:
                path.chmod(0o600)
            _migrate(connection, path, None if created else before_upgrade)
    except sqlite3.DatabaseError as error:
        raise DataDirectoryError(f"The database {path} can't be used: {error}") from error


def _migrate(
    connection: sqlite3.Connection, path: Path, before_upgrade: Callable[[str], None] | None
) -> None:
    db = Database(connection, execute_plugins=False)
    unknown = newer_than_program(db)
    if unknown:
        raise DataDirectoryError(
            f"The database {path} was written by a newer Deskwire (it has {', '.join(unknown)}). "
            "Start that version, or restore a backup made before the upgrade."
        )
    pending = migrations.pending(db)
    if not migrations.applied(db) and set(db.table_names()) - {"_sqlite_migrations"}:
        raise DataDirectoryError(
            f"{path} is the database of another program: move it away, or name another directory with --data."
        )
    if pending and migrations.applied(db) and before_upgrade is not None:
        before_upgrade(pending[0].name)
    # A new database is made at once or not at all: one wait for the disk in place of forty.
    with db.atomic() if before_upgrade is None else nullcontext():
        migrations.apply(db)


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open the one connection that writes, for one thread at a time."""
    return _connect(path)


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that can only read, and never waits for the writer."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{4 * 1024}")  # KiB; there are several, over the system's cache
    return connection


class Patience:
    """Ends what a connection is asked when that takes too long.

    `over` says whether it has, since `begin`. SQLite asks every so often whether to go on.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.over = False
        self._until = inf
        connection.set_progress_handler(self._ask, _STEPS)

    def begin(self, seconds: float) -> None:
        """Have patience for so long from now on."""
        self.over = False
        self._until = time.monotonic() + seconds

    def end(self) -> None:
        """Let whatever follows take its time."""
        self._until = inf

    def _ask(self) -> bool:
        if time.monotonic() < self._until:
            return False
        self.over = True
        self.end()  # what cleans up behind it is not cut off
        return True


def define_functions(connection: sqlite3.Connection) -> None:
    """Give a connection the functions that statements and triggers of ours call."""
    connection.create_function("fold_text", 1, folded_text, deterministic=True)
    connection.create_function("has_folded", 2, has_folded, deterministic=True)
    connection.create_function("has_attribute", 5, has_attribute, deterministic=True)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=_BUSY_MS / 1000
    )
    define_functions(connection)
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:  # no database: let go of the file
        connection.close()
        raise
    return connection
