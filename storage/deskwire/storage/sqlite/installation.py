"""Detects a missing, empty or foreign database next to other files of an installation: secret, uploads, copies.

Without this check a start would silently create a new database or use a foreign one. The start, all commands and
`deskwire check` use it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

from deskwire.storage.sqlite.directory import FILE_NAME, SECRET_FILE, DataDirectoryError
from deskwire.storage.sqlite.unmodified import connect_unmodified

_RECORDS: Final = "_sqlite_migrations"
_TABLES: Final = "SELECT count(*) FROM sqlite_schema WHERE name <> ? AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
_APPLIED: Final = f"SELECT min(applied_at) FROM {_RECORDS} WHERE migration_set = 'deskwire'"


def require_own_database(directory: Path) -> None:
    """Refuse a data directory with files of an installation but without its database. Raises DataDirectoryError."""
    try:
        difference = foreign_database(directory)
    except (OSError, sqlite3.Error):
        return  # the caller opens the database next, and reports the error
    if difference is not None:
        raise DataDirectoryError(
            f"{difference} Put the database back, or restore a backup into an empty directory (`deskwire restore`). For a new "
            "installation, move those away or name another directory with --data."
        )


def foreign_database(directory: Path) -> str | None:
    """Return the reason why the database can't belong to the other files of its directory; None if it may.

    Raises OSError or sqlite3.Error if they can't be read.
    """
    path = directory / FILE_NAME
    state, made_at = _state(path)
    if state is None:
        return None
    found = ", ".join(sorted(_parts(directory, made_at)))
    return f"The database {path} {state}, and {directory} has {found} of an installation." if found else None


def _state(path: Path) -> tuple[str | None, float | None]:
    """Return the reason why the database belongs to no installation, or None, and its creation (seconds since the epoch)."""
    if not path.exists():
        return "is missing", None
    if path.stat().st_size == 0:
        return "is empty", None
    with closing(connect_unmodified(path)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (_RECORDS,)).fetchone():
            (applied_at,) = connection.execute(_APPLIED).fetchone()
        else:
            applied_at = None
        if applied_at is None:
            tables = connection.execute(_TABLES, (_RECORDS,)).fetchone()[0]
            return ("is another program's" if tables else "is empty"), None
        if connection.execute("SELECT 1 FROM organisations").fetchone() or _belongs(connection):
            return None, None
    return "has no organisation and belongs to no secret yet", datetime.fromisoformat(applied_at).timestamp()


def _belongs(connection: sqlite3.Connection) -> bool:
    """Return whether the database has the id of its secret, which the first start writes at its end."""
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(installation)")]
    if "secret_id" not in columns:
        return False
    row = connection.execute("SELECT secret_id FROM installation").fetchone()
    return row is not None and row[0] is not None


def _parts(directory: Path, made_at: float | None) -> Iterator[str]:
    """Yield the other files of an installation, for a database created at `made_at` if it exists.

    A secret newer than its database is left by an interrupted first start.
    """
    # Imported late, because read-only commands must start fast.
    from deskwire.storage.files import FOLDER as UPLOADS
    from deskwire.storage.sqlite.backup.copies import FOLDER as COPIES

    secret = directory / SECRET_FILE
    if secret.exists() and (made_at is None or secret.stat().st_mtime < made_at):
        yield "the secret"
    for folder, name in ((UPLOADS, "uploads"), (COPIES, "copies of a database")):
        if any(each.is_file() for each in (directory / folder).rglob("*")):
            yield name
