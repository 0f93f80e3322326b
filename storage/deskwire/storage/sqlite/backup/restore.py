"""Restores a backup into an empty data directory, completely or not at all.

The backup is unpacked into `.restoring` in that directory, verified there, and then moved. No server starts while that
folder exists; the next restore clears it after a crash.
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

from deskwire.engine.conversations.held_messages import RESTORED
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import ProgressReporter, no_progress
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
from deskwire.storage.tables.conversations.held_messages import problem_as_stored

SKIPPED: Final = "restored from a backup"
"""The reason of deliveries that a restore ends."""

_NOT_OURS: Final = frozenset({LOCK_NAME, "lost+found"})
"""Names allowed in an empty directory: the lock of the restore, and the folder at the root of ext file systems."""
_MOVED: Final = (FOLDER, SECRET, FILE_NAME)


class RestoreRequest(Struct, frozen=True):
    """The options of a restore.

    Args:
        source: the backup.
        directory: the data directory, which must be empty or missing.
        secrets: the installation's, if the operator has them apart from the backup.
        keep_secret: whether those are written into the directory; not if the server gets it as a variable.
        new_secret: go on although the old secret is lost.
        skip_pending: end the pending deliveries instead of making them.
        now: milliseconds.
        tell: called with the progress.
    """

    source: Path
    directory: Path
    secrets: Secrets | None
    keep_secret: bool
    new_secret: bool
    skip_pending: bool
    now: int
    tell: ProgressReporter = no_progress


class Restored(Struct, frozen=True):
    """The result of a restore: the number of ended deliveries, and the problems of the backup's database."""

    contents: Contents
    skipped: int
    problems: list[CheckProblem]


def restore(order: RestoreRequest) -> Restored:
    """Restore the backup. It is complete and durable on return; on failure the directory is empty.

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


def _restored(order: RestoreRequest) -> Restored:
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


def _write_secret(order: RestoreRequest, contents: Contents, stage: Path) -> None:
    """Write the secret of the backup, if any. Raises CopyError if the database needs another secret."""
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
            f"The installation's secret {lacks}. Without it, all webhooks must be registered again, all users have "
            "to sign in again, and links to files are void. Give a copy of the secret with --secret-file (or "
            "DESKWIRE_SECRET), or continue without it with --new-secret."
        )
    if fits and given is not None and (order.secrets is None or order.keep_secret):
        with os.fdopen(os.open(stage / SECRET, NEW, 0o600), "w") as file:
            file.write(given.written())
            file.flush()
            os.fsync(file.fileno())


def _finish_database(order: RestoreRequest, contents: Contents, path: Path) -> tuple[int, list[CheckProblem]]:
    """Verify the database, and end its pending deliveries if requested. Raises CopyError."""
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
    """Stop everything that the next start would send: pending deliveries, missed deliveries and held messages."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'held_messages'").fetchone():
        connection.execute(
            "UPDATE held_messages SET problem = ? WHERE problem IS NULL", (problem_as_stored(RESTORED),)
        )
    columns = {row[1] for row in connection.execute("PRAGMA table_info(deliveries)")}
    if "missed" in columns:  # backups of older versions lack the column
        connection.execute("UPDATE deliveries SET missed = NULL WHERE missed = 1")
    return connection.execute(
        "UPDATE deliveries SET status = 'skipped', reason = ?, ended_at = ? WHERE status = 'pending'",
        (SKIPPED, now),
    ).rowcount


def _forget_secret(connection: sqlite3.Connection) -> None:
    """Have the next start accept its own secret; the endpoints' secrets are lost."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'installation'").fetchone():
        connection.execute("UPDATE installation SET secret_id = ?", (ANY_SECRET,))


def _end_sessions(connection: sqlite3.Connection) -> None:
    """End all browser sessions, waiting sign-ins and one-time links, because those that ended after the backup would be valid again.

    Waiting mails have such links, or were sent since.
    """
    for table in (
        "sessions",
        "challenges",
        "one_time_links",
        "mails",
        "oidc_requests",
        "push_subscriptions",
        "push_cursors",
        "pushes",
    ):  # backups of older versions lack some of them
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone():
            connection.execute(f"DELETE FROM {table}")


def _move(stage: Path, directory: Path) -> None:
    """Move everything to its place; the removal of the folder completes the restore."""
    sync(stage)
    for name in _MOVED:
        if (stage / name).exists():
            (stage / name).rename(directory / name)
    sync(directory)
    stage.rmdir()
    sync(directory)


def _require_empty(directory: Path) -> None:
    """Raise DataDirectoryError if the directory has files other than those of an interrupted restore."""
    found = {each.name for each in directory.iterdir()} - _NOT_OURS
    ours = {RESTORING, *_MOVED} if RESTORING in found else set()
    if strange := sorted(found - ours):
        raise DataDirectoryError(
            f"The directory {directory} is not empty (it has {', '.join(strange[:3])}). Restore into an empty one; "
            "to restore in place, stop the server and move the old directory away."
        )


@contextmanager
def _emptied_on_failure(directory: Path, made: bool) -> Iterator[None]:
    """Clean up the directory if the restore fails."""
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            with suppress(OSError):  # if the disk fails here as well, the next restore cleans up
                _clear(directory)
                if made:
                    (directory / LOCK_NAME).unlink()
                    directory.rmdir()


def _clear(directory: Path) -> None:
    """Remove the files of an interrupted restore; its folder last, because it marks the others."""
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
