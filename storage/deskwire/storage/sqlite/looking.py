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
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from deskwire.storage.tables.looks import LookReads
from deskwire.storage.versions import outdated

_BUSY_S: Final = 5.0
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

    Raises DataDirectoryError if there is none, if it is of an older or newer program, or if it can't be read.
    """
    path = directory / FILE_NAME
    if not path.exists():
        raise DataDirectoryError(no_deskwire(directory))
    require_whole(directory)
    try:
        with closing(_opened(path)) as connection:
            connection.execute("BEGIN")
            _require_present(connection, path)
            yield Look(connection)
    except sqlite3.Error as error:
        raise DataDirectoryError(f"The database {path} can't be read: {error}") from error


def _opened(path: Path) -> sqlite3.Connection:
    """Open the file so that it stays as it is, byte by byte.

    With a WAL beside it, a connection that can only read leaves both alone at its end. Without one such a connection
    would leave an empty one; one that could write makes and removes it, and has nothing to fold into the file. On a disk that is
    read-only nobody writes.
    """
    wal = path.with_name(f"{path.name}-wal")
    modes = ("mode=ro",) if wal.exists() else ("mode=rw", "mode=ro&immutable=1")
    for mode in modes:
        uri = f"{path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_S)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA temp_store = MEMORY")  # no text in temporary files
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            if mode == modes[-1]:
                raise
        except sqlite3.Error:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("the last mode is returned or raised")


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
