"""Reading a data directory without changing it, whether a server has it or none does.

Nothing is locked, created, migrated or folded into the file: a database is read at the schema that it has, or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from deskwire.storage.dialect import SQLITE
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError, no_deskwire, require_whole
from deskwire.storage.sqlite.installation import require_own_database
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from deskwire.storage.sqlite.unchanged import opened_unchanged
from deskwire.storage.tables.looks import LookReads
from deskwire.storage.versions import outdated

_RECORDS: Final = "_sqlite_migrations"
_APPLIED: Final = f"SELECT name FROM {_RECORDS} WHERE migration_set = 'deskwire'"


class Look(LookReads):
    """The queries of commands that only read, on one connection."""

    dialect = SQLITE

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.conn = connection


@contextmanager
def looking(directory: Path) -> Iterator[Look]:
    """Open the database of a directory for reading; all queries see the same state.

    Raises DataDirectoryError if there is none, if it is not that of the installation, if it is of an older or newer program,
    or if it can't be read.
    """
    path = directory / FILE_NAME
    require_whole(directory)
    require_own_database(directory)
    if not path.exists():
        raise DataDirectoryError(no_deskwire(directory))
    try:
        with closing(opened_unchanged(path)) as connection:
            connection.execute("BEGIN")
            _require_present(connection, path)
            yield Look(connection)
    except sqlite3.Error as error:
        raise DataDirectoryError(f"The database {path} can't be read: {error}") from error


def _require_present(connection: sqlite3.Connection, path: Path) -> None:
    """Make sure that the database has this program's schema. Raises DataDirectoryError."""
    recorded = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (_RECORDS,)).fetchone()
    applied = [name for (name,) in connection.execute(_APPLIED)] if recorded else []
    if not applied:
        raise DataDirectoryError(f"{path} is no database of Deskwire, or its first start was cut short.")
    if unknown := sorted(set(applied) - SCRIPTS.keys()):
        raise DataDirectoryError(
            f"The database {path} was written by a newer Deskwire (it has {', '.join(unknown)}). "
            "Use that version to read it."
        )
    if words := outdated(applied, list(SCRIPTS)):
        raise DataDirectoryError(
            f"The database {path} {words} A command that only reads leaves it as it is: start `deskwire serve`, which makes "
            "a copy and brings it up to date."
        )
