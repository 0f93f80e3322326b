"""A consistent copy of the database of a running server, and its verification.

`VACUUM INTO` reads in one transaction and blocks no commit, but the WAL can't be truncated until it ends. It copies rows
instead of pages, so deleted data is not in the copy, and damaged pages are detected.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from deskwire.storage.check.rules import CheckProblem, broken_rules
from deskwire.storage.dialect import SQLITE
from deskwire.storage.files import sync
from deskwire.storage.sqlite.migrations.records import applying_programs, pending_migrations

NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_BUSY_S: Final = 5.0
_STEPS: Final = 100_000
"""SQLite's virtual machine steps between two checks for a signal."""
_SHOWN: Final = 20
"""Maximum problems reported of one kind; a damaged file can have millions."""


class CopyError(Exception):
    """A copy or a backup can't be made or is invalid; the text gives the reason and the remedy."""


def snapshot(source: Path, target: Path) -> None:
    """Copy the database into a new file, which is readable by its owner only and durable on return.

    Raises CopyError if the database or the disk refuses.
    """
    with _explained(source):
        os.close(os.open(target, NEW, 0o600))
        with closing(opened(source)) as connection:
            connection.execute("PRAGMA temp_store = MEMORY")  # no text in temporary files
            connection.execute("VACUUM INTO ?", (str(target),))
        sync(target)


def opened(path: Path, *, writing: bool = True) -> sqlite3.Connection:
    """Open an existing database so that Ctrl-C can interrupt its statements. Raises sqlite3.Error."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_S)
    connection.set_progress_handler(lambda: 0, _STEPS)
    if not writing:
        connection.execute("PRAGMA query_only = ON")
    return connection


def applied(connection: sqlite3.Connection) -> list[str]:
    """Return the applied migrations, oldest first."""
    return list(applying_programs(connection))


def problems(connection: sqlite3.Connection) -> list[CheckProblem]:
    """Return violations of the rules; none before an upgrade, because the rules need the newest tables. Raises sqlite3.Error."""
    return [] if pending_migrations(connection) else list(broken_rules(connection, SQLITE))


def damage(connection: sqlite3.Connection) -> list[str]:
    """Return the faults that SQLite finds in the file, and rows with dangling references."""
    connection.execute("PRAGMA cell_size_check = ON")
    lines = [row[0] for row in connection.execute(f"PRAGMA integrity_check({_SHOWN})")]
    broken = [] if lines == ["ok"] else lines
    strays = connection.execute("PRAGMA foreign_key_check").fetchmany(_SHOWN)
    return broken + [f"{table} row {row} refers to a row of {parent} that is not there"
                     for table, row, parent, _ in strays]  # fmt: skip


def row_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of rows of each table."""
    names = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' "
        "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
    ).fetchall()
    return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in names}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise CopyError(f"The database {path} can't be copied: {error}") from error
    except OSError as error:
        raise CopyError(f"The database {path} can't be copied: {error.strerror or error}") from error


def require_room(folder: Path, needed: int, advice: str) -> None:
    """Require free space on the disk of a folder.

    Args:
        advice: the last sentence of the error.

    Raises CopyError.
    """
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise CopyError(f"The disk of {folder} has {free:,} bytes left, and {needed:,} are needed. {advice}")


def database_bytes(path: Path) -> int:
    """Return the maximum size of a copy of the database, in bytes."""
    wal = path.with_name(f"{path.name}-wal")
    return path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)
