"""The file of the search index, next to the database. It is rebuilt if it does not match the database.

It is derived data only, so backups leave it out and upgrades don't migrate it.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path
from typing import Final

import structlog

from deskwire.storage.sqlite.database import connect_reader
from deskwire.storage.sqlite.directory import DataDirectoryError

log: Final = structlog.get_logger(__name__)

FILE_NAME: Final = "search.sqlite3"

VERSION: Final = f"2, Unicode {unicodedata.unidata_version}"
"""The version of the index format and of its tokenization; an index with another version is rebuilt."""

_SCHEMA: Final = """
-- The conversations that have a word, in blocks. With a length it is the beginning of words.
CREATE TABLE postings (
    project INTEGER NOT NULL, length INTEGER NOT NULL, word TEXT NOT NULL, block INTEGER NOT NULL,
    conversations BLOB NOT NULL, PRIMARY KEY (project, length, word, block)
) STRICT, WITHOUT ROWID;
-- The words of each conversation: those of its messages, which only grow, and those of its title.
CREATE TABLE words (
    conversation INTEGER PRIMARY KEY, project INTEGER NOT NULL, body TEXT NOT NULL, title TEXT NOT NULL
) STRICT;
-- Up to where everything was taken in. `complete` says whether that was once all there was.
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), version TEXT NOT NULL, database TEXT NOT NULL, message INTEGER NOT NULL,
    message_id TEXT, conversation INTEGER NOT NULL, change INTEGER NOT NULL, complete INTEGER NOT NULL,
    scrub_due INTEGER NOT NULL
) STRICT
"""
DAMAGED: Final = "-damaged"
"""Suffix of the name of a marker file that makes the next start rebuild the index."""

_PRAGMAS: Final = (
    "journal_mode = WAL",
    "synchronous = NORMAL",  # rows lost in a power failure are indexed again
    "secure_delete = ON",
    "temp_store = MEMORY",
)


def prepared(database: Path) -> Path:
    """Return the path of a database's index, which is replaced by an empty one if it does not match the database.

    Raises DataDirectoryError if the disk refuses.
    """
    path = database.with_name(FILE_NAME)
    try:
        with closing(connect_reader(database)) as connection:
            reason = _unfit(path, connection) if path.exists() else None
            if reason is not None:
                log.warning("search.index_discarded", reason=reason)
                _remove(path)
            if not path.exists():
                _make(path, _identity(connection))
    except (sqlite3.Error, OSError) as error:
        raise DataDirectoryError(f"The search index {path} can't be made: {error}") from error
    return path


def _remove(path: Path) -> None:
    for side in ("-wal", "-shm", "-journal", "", DAMAGED):
        path.with_name(f"{path.name}{side}").unlink(missing_ok=True)


def _make(path: Path, identity: str) -> None:
    with closing(connect(path)) as connection:
        path.chmod(0o600)
        connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO state VALUES (1, ?, ?, 0, NULL, 0, 0, 0, 0)", (VERSION, identity))
        connection.execute("COMMIT")


def attach(reader: sqlite3.Connection, path: Path) -> None:
    """Attach the index to a read connection, as `search`."""
    reader.execute("ATTACH ? AS search", (str(path),))


def connect(path: Path) -> sqlite3.Connection:
    """Open the index for writing, by one thread at a time."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _identity(database: sqlite3.Connection) -> str:
    identity: str = database.execute("SELECT identity FROM search_source").fetchone()[0]
    return identity


def _unfit(path: Path, database: sqlite3.Connection) -> str | None:
    """Return the reason why the index can't be used with the database; None if it can."""
    if path.with_name(f"{path.name}{DAMAGED}").exists():
        return "it was found damaged"
    try:
        with closing(connect(path)) as connection:
            row = connection.execute(
                "SELECT version, database, message, message_id, change FROM state"
            ).fetchone()
    except sqlite3.DatabaseError as error:
        return f"it can't be read: {error}"
    if row is None:
        return "it was not finished"
    if row[0] != VERSION:
        return f"it is of version {row[0]}, not {VERSION}"
    if row[1] != _identity(database):
        return "it is that of another database"
    return _ahead(database, *row[2:])


def _ahead(database: sqlite3.Connection, message: int, message_id: str | None, change: int) -> str | None:
    """Return the reason if the index is ahead of the database, which then is an older copy."""
    newest = database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'search_changes'").fetchone()
    if change > (0 if newest is None else newest[0]):
        return "it is newer than the database"
    found = database.execute("SELECT id FROM messages WHERE rowid = ?", (message,)).fetchone()
    untold = database.execute("SELECT 1 FROM search_changes WHERE rowid > ? LIMIT 1", (change,)).fetchone()
    if message and untold is None and (None if found is None else found[0]) != message_id:
        return "it is newer than the database"
    return None
