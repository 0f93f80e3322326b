"""Read-only access to a data directory, whether or not a server is running on it.

Nothing is locked, created, migrated or checkpointed. A database with another schema version is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from deskwire.storage.dialect import SQLITE
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError, no_deskwire, require_whole
from deskwire.storage.sqlite.installation import require_own_database
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from deskwire.storage.sqlite.migrations.records import applying_programs
from deskwire.storage.sqlite.unmodified import connect_unmodified
from deskwire.storage.tables.read_queries import AdminReads
from deskwire.storage.versions import newer_program, outdated, this_program


class SqliteReadQueries(AdminReads):
    """The queries of read-only commands, on one connection."""

    dialect = SQLITE

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.conn = connection


@contextmanager
def open_read_only(directory: Path) -> Iterator[SqliteReadQueries]:
    """Open the database of a directory for reading; all queries see one snapshot.

    Raises DataDirectoryError if the database is missing, foreign, of an older or newer version, or unreadable.
    """
    path = directory / FILE_NAME
    require_whole(directory)
    require_own_database(directory)
    if not path.exists():
        raise DataDirectoryError(no_deskwire(directory))
    try:
        with closing(connect_unmodified(path)) as connection:
            connection.execute("BEGIN")
            _require_present(connection, path)
            yield SqliteReadQueries(connection)
    except sqlite3.Error as error:
        raise DataDirectoryError(f"The database {path} can't be read: {error}") from error


def _require_present(connection: sqlite3.Connection, path: Path) -> None:
    """Require the schema of this program. Raises DataDirectoryError."""
    applied = applying_programs(connection)
    if not applied:
        raise DataDirectoryError(f"{path} is not a Deskwire database, or its first start was interrupted.")
    if unknown := sorted(set(applied) - SCRIPTS.keys()):
        raise DataDirectoryError(
            f"The database {path} was written by {newer_program(unknown, applied)}. {this_program()} "
            "Use that version to read it."
        )
    if words := outdated(applied, list(SCRIPTS)):
        raise DataDirectoryError(
            f"The database {path} {words} Read-only commands don't upgrade it: start `deskwire serve`, which makes a copy and "
            "upgrades the database."
        )
