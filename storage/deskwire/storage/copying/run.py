"""The copy of an installation into an empty database, in one transaction (ADR 22).

Rows are written with COPY and read back; their numbers and keyed digests must be the same on both sides. The
last statement before the commit marks the installation as complete; a database without this mark is refused.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from msgspec import Struct, field

from deskwire.engine.uploads.ports import FileContent
from deskwire.storage.check.rules import CheckProblem, broken_rules
from deskwire.storage.copying.source import LEFT_OUT, RowDigest, SqliteSource
from deskwire.storage.copying.target import PostgresTarget
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.files import DiskFiles
from deskwire.storage.postgres.admin.check import CheckConnection
from deskwire.storage.postgres.admin.installation import InstallationIdentity
from deskwire.storage.postgres.admin.preflight import connected, examine
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.schema.days import date_pending
from deskwire.storage.sqlite.backup.snapshot import CopyError, opened


class Copied(Struct):
    """The result of a copy: the number of rows by table, and of files and their bytes.

    `missing` files were not on the disk, and `problems` are in the source as well.
    """

    rows: dict[str, int] = field(default_factory=dict)
    files: int = 0
    file_bytes: int = 0
    missing: list[str] = field(default_factory=list)
    problems: list[CheckProblem] = field(default_factory=list)


class CopyRequest(Struct, frozen=True):
    """The parameters of a copy.

    Args:
        database: the SQLite file, up to date and not in use.
        folder: the folder that contains the uploads' folder.
        url: the URL of the PostgreSQL database.
        identity: the installation's settings.
        put: stores an upload's file; None to store it in the database.
        on_table: called with the name of each table before it is copied.
    """

    database: Path
    folder: Path
    url: str
    identity: InstallationIdentity
    put: Callable[[FileContent, Path], None] | None
    on_table: Callable[[str], None]


def copy(request: CopyRequest) -> Copied:
    """Copy everything; return after the commit.

    Raises CopyError and DatabaseUnusableError; the target is unchanged then.
    """
    examine(request.url)
    migrate(request.url)
    try:
        with (
            closing(opened(request.database, writing=False)) as sqlite_connection,
            connected(request.url, "copy") as connection,
        ):
            sqlite_connection.execute("BEGIN")
            with connection.transaction():
                done = _copied(request, SqliteSource(sqlite_connection), connection)
            connection.execute("ANALYZE")
            return done
    except psycopg.Error as error:
        raise CopyError(
            f"The database has refused the copy, and is as it was: {' '.join(str(error).split())}"
        ) from error
    except sqlite3.Error as error:
        raise CopyError(f"The database {request.database} can't be read: {error}") from error


def _copied(request: CopyRequest, source: SqliteSource, connection: psycopg.Connection[Any]) -> Copied:
    _require_empty(connection)
    target, done = PostgresTarget(connection), Copied()
    key = secrets.token_bytes(32)
    shared = (source.tables.keys() & target.tables.keys()) - LEFT_OUT
    for table in target.in_order(shared):
        request.on_table(table)
        columns = _columns(source, table, target.tables[table])
        done.rows[table] = _copy_table(source, target, table, columns, key)
        key_column = next((each for each in ("rowid", "position") if each in columns), None)
        if key_column is not None:
            target.continue_keys(table, key_column, source.used_key(table))
    target.continue_logs(*source.log_ends(), source.window())
    date_pending(connection)
    request.on_table("words of tickets")
    target.index_tickets()
    request.on_table("uploads' files")
    _copy_files(request, source, target, done)
    request.on_table("and checking it")
    done.problems += broken_rules(CheckConnection(connection), POSTGRES)
    connection.execute(
        "UPDATE installation SET secret_id = %s, files = %s",
        (request.identity.secret_ids[0], request.identity.files),
    )
    return done


def _require_empty(connection: psycopg.Connection[Any]) -> None:
    """Lock the record of the installation, so that no node starts on an incomplete copy.

    Raises DatabaseUnusableError.
    """
    connection.execute("SET LOCAL lock_timeout = '1s'")
    try:
        row = connection.execute("SELECT secret_id FROM installation FOR UPDATE").fetchone()
    except psycopg.errors.LockNotAvailable as error:
        raise DatabaseUnusableError("Another copy into this database, or a node, is running.") from error
    connection.execute("SET LOCAL lock_timeout = 0")
    if row != (None,) or connection.execute("SELECT 1 FROM organisations LIMIT 1").fetchone() is not None:
        raise DatabaseUnusableError(
            "The database has an installation already: name an empty one (`CREATE DATABASE …`), or drop and create this one."
        )


def _columns(source: SqliteSource, table: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns to fill. Raises CopyError if a column of the source would be lost."""
    lost = set(source.tables[table]) - columns.keys()
    if lost:
        raise CopyError(f"{table} has columns that the database does not have: {', '.join(sorted(lost))}.")
    return {name: kind for name, kind in columns.items() if source.has(table, name)}


def _copy_table(
    source: SqliteSource, target: PostgresTarget, table: str, columns: dict[str, str], key: bytes
) -> int:
    """Copy a table and compare both sides; return the number of rows. Raises CopyError."""
    sent, found = RowDigest(key), RowDigest(key)
    target.fill(table, columns, sent.over(source.rows(table, [*columns])))
    for _ in found.over(target.rows(table, columns)):
        pass
    if sent.rows != source.count(table) or sent != found:
        raise CopyError(
            f"{table} is not the same on both sides ({source.count(table):,} rows, {sent.rows:,} sent, {found.rows:,} stored). "
            "Look at the source with `deskwire check`; the target is as it was."
        )
    return sent.rows


def _copy_files(request: CopyRequest, source: SqliteSource, target: PostgresTarget, done: Copied) -> None:
    """Copy the contents of uploads and compare their SHA-256. Raises CopyError."""
    disk = DiskFiles(request.folder)
    entries: dict[int, str] = {}
    for project, sha256, size, at in source.contents():
        entry = target.add_content(project, sha256, at)
        path = disk.place(FileContent(project, sha256))
        if not path.exists():
            done.missing.append(sha256)
            continue
        if request.put is None:
            target.store_file(entry, path)
            entries[entry] = sha256
        else:
            request.put(FileContent(project, sha256, entry), path)
        done.files += 1
        done.file_bytes += size
    if request.put is None:
        stored = target.stored_digests()
        for entry, sha256 in entries.items():
            if stored[entry] != sha256:
                raise CopyError(
                    f"The file of the upload with SHA-256 {sha256} has other bytes than were uploaded."
                )
