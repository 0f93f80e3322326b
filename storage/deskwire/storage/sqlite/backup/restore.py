"""Puts a backup into an empty data directory: all of it, or nothing.

Everything is first written to `.restoring` in that directory, checked there, and then moved. While that folder exists no server
starts; what a kill leaves is cleared away by the next restore.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from deskwire.engine.conversations.held.held import RESTORED
from deskwire.engine.core.progress import Tell, nobody
from deskwire.engine.core.secret import Secrets
from deskwire.storage.check.rules import CheckProblem
from deskwire.storage.files import FOLDER, sync
from deskwire.storage.sqlite.backup.archive import DATABASE, SECRET
from deskwire.storage.sqlite.backup.manifest import ANY_SECRET, fitting
from deskwire.storage.sqlite.backup.snapshot import (
    NEW,
    CopyError,
    applied,
    damage,
    opened,
    require_room,
    row_counts,
)
from deskwire.storage.sqlite.backup.snapshot import problems as problems_in
from deskwire.storage.sqlite.backup.unpack import Contents, read_archive
from deskwire.storage.sqlite.database import lock_when_free
from deskwire.storage.sqlite.directory import FILE_NAME, LOCK_NAME, RESTORING, DataDirectoryError
from deskwire.storage.tables.conversations.held import problem_as_stored

SKIPPED: Final = "restored from a backup"
"""The reason of deliveries that are not made after a restore."""

_NOT_OURS: Final = frozenset({LOCK_NAME, "lost+found"})
"""What an empty directory may have: the lock that a restore takes, and what a file system makes at its root."""
_MOVED: Final = (FOLDER, SECRET, FILE_NAME)


class Order(Struct, frozen=True):
    """A restore to be done.

    Args:
        source: the backup.
        directory: the data directory, which must be empty or not be there.
        secrets: the installation's, if the operator has them apart from the backup.
        keep_secret: whether those are written into the directory; not if the server gets it as a variable.
        new_secret: go on although the old secret is lost.
        skip_pending: end the pending deliveries instead of making them.
        now: milliseconds.
        tell: takes how far it is.
    """

    source: Path
    directory: Path
    secrets: Secrets | None
    keep_secret: bool
    new_secret: bool
    skip_pending: bool
    now: int
    tell: Tell = nobody


class Restored(Struct, frozen=True):
    """The result of a restore: `skipped` pending deliveries were ended, `problems` came along in the backup."""

    contents: Contents
    skipped: int
    problems: list[CheckProblem]


def restore(order: Order) -> Restored:
    """Restore the backup; it is complete and on disk at the return, and the directory empty if that fails.

    Raises CopyError, and DataDirectoryError if the directory is not empty or in use.
    """
    if not order.source.is_file():
        raise CopyError(f"There is no backup {order.source}.")
    made = not order.directory.exists()
    lock = lock_when_free(order.directory)
    try:
        _require_empty(order.directory)
        with _emptied_on_failure(order.directory, made):
            _clear(order.directory)
            return _restored(order)
    finally:
        lock.release()


def _restored(order: Order) -> Restored:
    stage = order.directory / RESTORING
    try:
        require_room(order.directory, order.source.stat().st_size, "Make room, or restore to another disk.")
        stage.mkdir(mode=0o700)
        sync(order.directory)
        contents = read_archive(order.source, order.secrets, stage, tell=order.tell)
        _write_secret(order, contents, stage)
        order.tell("Checking the database")
        skipped, problems = _finish_database(order, contents, stage / DATABASE)
        _move(stage, order.directory)
    except OSError as error:
        raise CopyError(f"{order.directory} can't be written: {error.strerror or error}") from error
    return Restored(contents, skipped, problems)


def _write_secret(order: Order, contents: Contents, stage: Path) -> None:
    """Write the secret if there is one to write. Raises CopyError if the right one is lacking."""
    wanted = contents.manifest.secret_id
    given = order.secrets or (None if contents.secret is None else Secrets(contents.secret))
    fits = wanted is None or (given is not None and fitting(given.known, wanted) is not None)
    if given is not None and contents.secret is not None and contents.secret not in given.known:
        raise CopyError(
            "The secret that was given is not the one in the backup: leave it out, or unset DESKWIRE_SECRET."
        )
    if not fits and not order.new_secret:
        lacks = "is not in this backup" if given is None else "is not the one that was given"
        raise CopyError(
            f"The installation's secret {lacks}. Without it all webhooks must be registered anew, everybody has to "
            "sign in again, and links to files are void. Give its copy with --secret-file (or DESKWIRE_SECRET), or "
            "go on without it with --new-secret."
        )
    if fits and given is not None and (order.secrets is None or order.keep_secret):
        with os.fdopen(os.open(stage / SECRET, NEW, 0o600), "w") as file:
            file.write(given.written())
            file.flush()
            os.fsync(file.fileno())


def _finish_database(order: Order, contents: Contents, path: Path) -> tuple[int, list[CheckProblem]]:
    """Make sure of the database, and end its pending deliveries if wanted. Raises CopyError."""
    try:
        with closing(opened(path)) as connection:
            if found := damage(connection):
                raise CopyError(f"The database in the backup is damaged: {'; '.join(found[:3])}")
            if (
                row_counts(connection) != contents.manifest.rows
                or applied(connection) != contents.head.migrations
            ):
                raise CopyError("The database in the backup is not the one that its manifest describes.")
            problems = problems_in(connection)
            skipped = _skip_pending(connection, order.now) if order.skip_pending else 0
            _end_sessions(connection)
            if order.new_secret:
                _forget_secret(connection)
    except sqlite3.Error as error:
        raise CopyError(f"The database in the backup can't be used: {error}") from error
    sync(path)
    return skipped, problems


def _skip_pending(connection: sqlite3.Connection, now: int) -> int:
    """Let nothing be sent by itself: neither pending deliveries, nor those that an outage made an endpoint miss, nor held messages."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'held_messages'").fetchone():
        connection.execute(
            "UPDATE held_messages SET problem = ? WHERE problem IS NULL", (problem_as_stored(RESTORED),)
        )
    columns = {row[1] for row in connection.execute("PRAGMA table_info(deliveries)")}
    if "missed" in columns:  # a backup of an older version has none
        connection.execute("UPDATE deliveries SET missed = NULL WHERE missed = 1")
    return connection.execute(
        "UPDATE deliveries SET status = 'skipped', reason = ?, ended_at = ? WHERE status = 'pending'",
        (SKIPPED, now),
    ).rowcount


def _forget_secret(connection: sqlite3.Connection) -> None:
    """Let the next start take whatever secret it has: the endpoints' secrets are known to be lost."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'installation'").fetchone():
        connection.execute("UPDATE installation SET secret_id = ?", (ANY_SECRET,))


def _end_sessions(connection: sqlite3.Connection) -> None:
    """End all sessions of browsers: those that were ended since the backup was made would be good again."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sessions'").fetchone():
        connection.execute("DELETE FROM sessions")


def _move(stage: Path, directory: Path) -> None:
    """Put everything in its place; with the stage's end it is done."""
    sync(stage)
    for name in _MOVED:
        if (stage / name).exists():
            (stage / name).rename(directory / name)
    sync(directory)
    stage.rmdir()
    sync(directory)


def _require_empty(directory: Path) -> None:
    """Raise DataDirectoryError if something is in the way that a restore which was cut short did not leave."""
    found = {each.name for each in directory.iterdir()} - _NOT_OURS
    ours = {RESTORING, *_MOVED} if RESTORING in found else set()
    if strange := sorted(found - ours):
        raise DataDirectoryError(
            f"The directory {directory} is not empty (it has {', '.join(strange[:3])}). Restore into an empty one; "
            "to restore in place, stop the server and move the old directory away."
        )


@contextmanager
def _emptied_on_failure(directory: Path, made: bool) -> Iterator[None]:
    """Leave the directory as it was found if the restore fails."""
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            with suppress(OSError):  # a disk that fails on clearing, too; the next restore does it
                _clear(directory)
                if made:
                    (directory / LOCK_NAME).unlink()
                    directory.rmdir()


def _clear(directory: Path) -> None:
    """Remove what a restore that was cut short has left; its folder last, as that marks the rest."""
    stage = directory / RESTORING
    if not stage.exists():
        return
    for name in _MOVED:
        left = directory / name
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink(missing_ok=True)
    sync(directory)
    shutil.rmtree(stage)
    sync(directory)
