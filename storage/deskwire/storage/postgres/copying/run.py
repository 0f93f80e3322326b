"""The copy of an installation into an empty database: all of it in one transaction, or nothing (ADR 22).

Rows are written with COPY and read back; their numbers and keyed digests have to be the same on both sides. That the
installation is whole says the last statement before the commit, so a database without it is not one.
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
from deskwire.storage.check.rules import Problem, broken_rules
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.files import DiskFiles
from deskwire.storage.postgres.copying.source import LEFT_OUT, Source
from deskwire.storage.postgres.copying.target import Target
from deskwire.storage.postgres.copying.text import Digest
from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.operating.asked import Asked
from deskwire.storage.postgres.operating.installation import Identity
from deskwire.storage.postgres.operating.preflight import connected, examine
from deskwire.storage.postgres.schema.delivery_days import date_pending
from deskwire.storage.sqlite.backup.snapshot import CopyError, opened


class Copied(Struct):
    """The result of a copy: rows by table, and the files of uploads with their bytes.

    `missing` files were not on the disk, and `problems` are those that the copy has as the source had them.
    """

    rows: dict[str, int] = field(default_factory=dict)
    files: int = 0
    file_bytes: int = 0
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class Order(Struct, frozen=True):
    """A copy to be made.

    Args:
        database: the SQLite file, up to date, which nobody changes meanwhile.
        folder: where the uploads' folder is.
        url: of the PostgreSQL database.
        identity: the installation's settings.
        put: stores an upload's file where it is kept; None for the database itself.
        told: is told the name of each table that begins.
    """

    database: Path
    folder: Path
    url: str
    identity: Identity
    put: Callable[[FileContent, Path], None] | None
    told: Callable[[str], None]


def copy(order: Order) -> Copied:
    """Copy everything; returns once it is committed.

    Raises CopyError and DatabaseUnusableError; then the target is as it was.
    """
    examine(order.url)
    migrate(order.url)
    try:
        with (
            closing(opened(order.database, writing=False)) as lite,
            connected(order.url, "copy") as connection,
        ):
            lite.execute("BEGIN")
            with connection.transaction():
                done = _copied(order, Source(lite), connection)
            connection.execute("ANALYZE")
            return done
    except psycopg.Error as error:
        raise CopyError(
            f"The database has refused the copy, and is as it was: {' '.join(str(error).split())}"
        ) from error
    except sqlite3.Error as error:
        raise CopyError(f"The database {order.database} can't be read: {error}") from error


def _copied(order: Order, source: Source, connection: psycopg.Connection[Any]) -> Copied:
    _require_empty(connection)
    target, done = Target(connection), Copied()
    key = secrets.token_bytes(32)
    shared = (source.tables.keys() & target.tables.keys()) - LEFT_OUT
    for table in target.in_order(shared):
        order.told(table)
        columns = _columns(source, table, target.tables[table])
        done.rows[table] = _copy_table(source, target, table, columns, key)
        key_column = next((each for each in ("rowid", "position") if each in columns), None)
        if key_column is not None:
            target.continue_keys(table, key_column, source.used_key(table))
    target.continue_lines(*source.lines(), source.window())
    date_pending(connection)
    order.told("words of tickets")
    target.index_tickets()
    order.told("uploads' files")
    _copy_files(order, source, target, done)
    order.told("and checking it")
    done.problems += broken_rules(Asked(connection), POSTGRES)
    connection.execute(
        "UPDATE installation SET secret_id = %s, files = %s",
        (order.identity.secret_ids[0], order.identity.files),
    )
    return done


def _require_empty(connection: psycopg.Connection[Any]) -> None:
    """Lock the installation until the end, so that no node starts on half of it. Raises DatabaseUnusableError."""
    connection.execute("SET LOCAL lock_timeout = '1s'")
    try:
        row = connection.execute("SELECT secret_id FROM installation FOR UPDATE").fetchone()
    except psycopg.errors.LockNotAvailable as error:
        raise DatabaseUnusableError("Another copy into this database, or a node, is under way.") from error
    connection.execute("SET LOCAL lock_timeout = 0")
    if row != (None,) or connection.execute("SELECT 1 FROM organisations LIMIT 1").fetchone() is not None:
        raise DatabaseUnusableError(
            "The database has an installation already: name an empty one (`CREATE DATABASE …`), or drop and create this one."
        )


def _columns(source: Source, table: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that can be filled. Raises CopyError if one of the source would be lost."""
    lost = set(source.tables[table]) - columns.keys()
    if lost:
        raise CopyError(f"{table} has columns that the database has not: {', '.join(sorted(lost))}.")
    return {name: kind for name, kind in columns.items() if source.has(table, name)}


def _copy_table(source: Source, target: Target, table: str, columns: dict[str, str], key: bytes) -> int:
    """Copy a table and compare both sides; returns the number of rows. Raises CopyError."""
    sent, found = Digest(key), Digest(key)
    target.fill(table, columns, sent.over(source.rows(table, [*columns])))
    for _ in found.over(target.rows(table, columns)):
        pass
    if sent.rows != source.count(table) or sent != found:
        raise CopyError(
            f"{table} is not the same on both sides ({source.count(table):,} rows, {sent.rows:,} sent, {found.rows:,} stored). "
            "Look at the source with `deskwire check`; the target is as it was."
        )
    return sent.rows


def _copy_files(order: Order, source: Source, target: Target, done: Copied) -> None:
    """Copy the contents of uploads, each under an entry of its own, and compare them by their SHA-256. Raises CopyError."""
    disk = DiskFiles(order.folder)
    entries: dict[int, str] = {}
    for project, sha256, size, at in source.contents():
        entry = target.add_content(project, sha256, at)
        path = disk.place(FileContent(project, sha256))
        if not path.exists():
            done.missing.append(sha256)
            continue
        if order.put is None:
            target.store_file(entry, path)
            entries[entry] = sha256
        else:
            order.put(FileContent(project, sha256, entry), path)
        done.files += 1
        done.file_bytes += size
    if order.put is None:
        stored = target.stored_digests()
        for entry, sha256 in entries.items():
            if stored[entry] != sha256:
                raise CopyError(
                    f"The file of the upload with SHA-256 {sha256} has other bytes than were uploaded."
                )
