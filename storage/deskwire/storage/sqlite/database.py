"""Opens the database file: locked for one process, migrated, durable, and with deleted rows overwritten."""

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

from deskwire.storage.files import sync
from deskwire.storage.folded_patterns import folded_text, has_folded
from deskwire.storage.sqlite.directory import LOCK_NAME, DataDirectoryError, DirectoryInUseError, Holder
from deskwire.storage.sqlite.migrations.records import (
    RECORDS,
    applying_programs,
    newer_words,
    pending_migrations,
)
from deskwire.storage.tables.conversations.attributes import has_attribute

log: Final = structlog.get_logger(__name__)

_STEPS: Final = 10_000
"""Steps of SQLite's virtual machine between two calls of the progress handler, some tenths of a millisecond."""

_BUSY_MS: Final = 5_000
_PRAGMAS: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",  # acknowledged changes survive a power failure
    "secure_delete = ON",  # deleted rows are overwritten
    "foreign_keys = ON",
    "temp_store = MEMORY",  # no text in temporary files
    f"cache_size = -{16 * 1024}",  # KiB, for the writer: the pages that a commit of 256 messages changes (ADR 4)
)


COMMAND_TIMEOUT_S: Final = 2.0
"""How long to wait for a directory that a command has locked; most commands end within milliseconds."""
_POLL_INTERVAL_S: Final = 0.05
_HOLDER_BYTES_MAX: Final = 64


class DirectoryLock:
    """An exclusive lock on a data directory, until `release` or the end of the process.

    Args:
        holder: the kind of this process, named in the error of other processes.

    Raises DirectoryInUseError if another process has the lock, DataDirectoryError if the directory can't be used.
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
            pid, _, holder_name = (
                os.pread(self._file, _HOLDER_BYTES_MAX, 0).decode(errors="replace").partition(" ")
            )
            os.close(self._file)
            known = next((each for each in get_args(Holder) if each == holder_name), None)
            raise DirectoryInUseError(directory, known, pid or "unknown") from None
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()} {holder}".encode(), 0)
        except OSError as error:  # a full disk
            os.close(self._file)
            raise DataDirectoryError(f"The data directory {directory} can't be used: {error}") from error

    def hold(self) -> str | None:
        """Renew the lock if its file was removed or replaced; return the reason if that fails, else None."""
        path = self._directory / LOCK_NAME
        try:
            if os.path.samestat(os.stat(path), os.fstat(self._file)):
                return None
        except OSError:
            pass  # the file was removed, and is created again below
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
        """Transfer the ownership of the locked descriptor to the caller."""
        file, self._file = self._file, -1
        return file

    def release(self) -> None:
        """Release the lock."""
        with suppress(OSError):  # if this fails, the file still names this process, which is harmless
            os.ftruncate(self._file, 0)
        os.close(self._file)


def lock_when_free(directory: Path, holder: Holder = "command") -> DirectoryLock:
    """Lock the directory; wait up to COMMAND_TIMEOUT_S for a command that has it, with a log line.

    Blocks the thread. Raises the errors of `DirectoryLock`, immediately if a server has the directory.
    """
    give_up = time.monotonic() + COMMAND_TIMEOUT_S
    before: DirectoryInUseError | None = None
    while True:
        try:
            return DirectoryLock(directory, holder)
        except DirectoryInUseError as error:
            # Compare two readings: a process writes its name after it gets the lock, so the first may name its predecessor.
            stays = before is not None and (before.holder, before.pid) == (error.holder, error.pid)
            if (stays and error.holder != "command") or time.monotonic() >= give_up:
                raise
            if before is None and error.holder == "command":
                log.info("storage.waits_for_command", data=str(directory), pid=error.pid)
            before = error
        time.sleep(_POLL_INTERVAL_S)


def _make(directory: Path) -> None:
    """Create the directory if it is missing, and sync its name to disk."""
    missing = list(takewhile(lambda each: not each.exists(), (directory, *directory.parents)))
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for made in missing:
        sync(made.parent)


def refuse_upgrade(path: Path, migration: str) -> None:
    """Refuse to migrate an older database for a read-only command. Raises DataDirectoryError."""
    raise DataDirectoryError(
        f"The database {path} was written by an older Deskwire (it lacks {migration}), and read-only commands don't "
        "upgrade it. Start the server with `deskwire serve`: it makes a copy and upgrades the database."
    )


def migrate(path: Path, before_upgrade: Callable[[str], None] = lambda _: None) -> None:
    """Create the database, or apply pending migrations.

    Args:
        before_upgrade: called with the first pending migration of an older database; an exception cancels the upgrade.

    Raises DataDirectoryError if the database was written by a newer version or by another program.
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
    if words := newer_words(connection):
        raise DataDirectoryError(
            f"The database {path} was written by {words} Start that version, or restore a backup made before the upgrade."
        )
    applied, pending = applying_programs(connection), pending_migrations(connection)
    if not applied and _has_other_tables(connection):
        raise DataDirectoryError(
            f"{path} is the database of another program: move it away, or name another directory with --data."
        )
    if pending and applied and before_upgrade is not None:
        before_upgrade(pending[0])
    if not pending:
        return
    from sqlite_utils import Database

    from deskwire.storage.sqlite.migrations import apply

    db = Database(connection, execute_plugins=False)
    # A new database is created in one transaction, with one sync in place of forty.
    with db.atomic() if before_upgrade is None else nullcontext():
        apply.apply_pending(db, apply.migrations)


def _has_other_tables(connection: sqlite3.Connection) -> bool:
    """Return whether the database has a table beside the one of migrations."""
    sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name <> ? LIMIT 1"
    return connection.execute(sql, (RECORDS,)).fetchone() is not None


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open the write connection, for use by one thread at a time."""
    return _connect(path)


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a read-only connection, which never waits for the writer."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    # KiB, small because there are several, and the system caches the file.
    connection.execute(f"PRAGMA cache_size = -{2 * 1024}")
    return connection


class QueryTimeout:
    """Interrupts queries of a connection after a timeout. `over` is True if it has interrupted one since `begin`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.over = False
        self._until = inf
        connection.set_progress_handler(self._interrupts, _STEPS)

    def begin(self, seconds: float) -> None:
        """Start the timeout."""
        self.over = False
        self._until = time.monotonic() + seconds

    def end(self) -> None:
        """Cancel the timeout."""
        self._until = inf

    def _interrupts(self) -> bool:
        if time.monotonic() < self._until:
            return False
        self.over = True
        self.end()  # the rollback must not be interrupted
        return True


def define_functions(connection: sqlite3.Connection) -> None:
    """Define the SQL functions that our statements and triggers call."""
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
    except sqlite3.Error:  # not a database
        connection.close()
        raise
    return connection
