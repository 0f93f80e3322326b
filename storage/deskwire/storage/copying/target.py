"""The empty PostgreSQL database that receives the rows, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final

import psycopg

from deskwire.storage.copying.source import LogEnd
from deskwire.storage.postgres.commit.positions import PROJECT_SHIFT
from deskwire.storage.postgres.files import PART_BYTES
from deskwire.storage.postgres.search.tickets import words_of

Columns = Mapping[str, str]  # names of columns with their types

_COLUMNS: Final = """
SELECT c.relname, a.attname, t.typname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
AND a.attgenerated = '' ORDER BY a.attnum
"""
_REFERENCES: Final = """
SELECT c.conrelid::regclass::text, c.confrelid::regclass::text FROM pg_constraint c
WHERE c.contype = 'f' AND c.conrelid <> c.confrelid AND c.connamespace = current_schema()::regnamespace
"""
_HEADS: Final = f"""
UPDATE project_heads SET position = (project << {PROJECT_SHIFT}) + %s, last_id = %s, delivery = (project << {PROJECT_SHIFT}) + %s, delivery_id = %s,
    pruned_position = CASE WHEN %s = 0 THEN 0 ELSE (project << {PROJECT_SHIFT}) + %s END, pruned_id = %s
"""


class PostgresTarget:
    """A database with an open transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.tables: Final[dict[str, dict[str, str]]] = {}
        for table, column, kind in connection.execute(_COLUMNS).fetchall():
            self.tables.setdefault(table, {})[column] = kind

    def in_order(self, tables: Iterable[str]) -> list[str]:
        """Return the tables so that each comes after those that it refers to."""
        wanted = set(tables)
        graph: dict[str, set[str]] = {table: set() for table in sorted(wanted)}
        for table, referred in self._connection.execute(_REFERENCES).fetchall():
            if table in wanted and referred in wanted:
                graph[table].add(referred)
        return [*TopologicalSorter(graph).static_order()]

    def fill(self, table: str, columns: Columns, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows, in place of those that a migration has inserted."""
        self._connection.execute(f'DELETE FROM "{table}"'.encode())
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {_table_columns(table, columns)} FROM STDIN (FORMAT BINARY)".encode()) as copy,
        ):
            copy.set_types([*columns.values()])
            for row in rows:
                copy.write_row(row)

    def rows(self, table: str, columns: Columns) -> Iterator[tuple[Any, ...]]:
        """Yield the stored rows."""
        with (
            self._connection.cursor() as cursor,
            cursor.copy(
                f'COPY (SELECT {_column_list(columns)} FROM "{table}") TO STDOUT (FORMAT BINARY)'.encode()
            ) as copy,
        ):
            copy.set_types([*columns.values()])
            yield from copy.rows()

    def continue_keys(self, table: str, column: str, used: int) -> None:
        """Start a table's generated keys after all keys that were ever used."""
        if used:
            self._connection.execute(
                "SELECT setval(sequence, %s) FROM pg_get_serial_sequence(%s, %s) AS sequence WHERE sequence IS NOT NULL",
                (used, table, column),
            )

    def continue_logs(self, events: LogEnd, deliveries: LogEnd, pruned: tuple[int, str | None]) -> None:
        """Start each project's positions after all that were ever assigned."""
        position, last = pruned
        self._connection.execute(
            _HEADS, (events.position, events.id, deliveries.position, deliveries.id, position, position, last)
        )

    def index_tickets(self) -> None:
        """Write the search index of all tickets."""
        rows = self._connection.execute("SELECT rowid, project, title, description FROM tickets").fetchall()
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO ticket_words (rowid, words, lexemes) VALUES (%s, %s, %s::tsvector)",
                [words_of(*row) for row in rows],
            )

    def add_content(self, project: int, sha256: str, at: int) -> int:
        """Insert the entry of a content; return its key."""
        row = self._connection.execute(
            "INSERT INTO contents (project, sha256, made_at, going) VALUES (%s, %s, %s, 0) RETURNING rowid",
            (project, sha256, at),
        ).fetchone()
        assert row is not None
        return int(row[0])

    def store_file(self, entry: int, path: Path) -> None:
        """Write a file's bytes into the database."""
        sql = "COPY upload_parts (content, number, data) FROM STDIN (FORMAT BINARY)"
        with path.open("rb") as file, self._connection.cursor() as cursor, cursor.copy(sql) as copy:
            copy.set_types(["int8", "int4", "bytea"])
            number = 0
            while part := file.read(PART_BYTES):
                copy.write_row((entry, number, part))
                number += 1

    def stored_digests(self) -> dict[int, str]:
        """Return the SHA-256 of each file in the database, by its entry."""
        sql = (
            "SELECT c.rowid, encode(sha256(coalesce((SELECT string_agg(data, ''::bytea ORDER BY number) "
            "FROM upload_parts p WHERE p.content = c.rowid), ''::bytea)), 'hex') FROM contents c"
        )
        return dict(self._connection.execute(sql).fetchall())


def _table_columns(table: str, columns: Columns) -> str:
    return f'"{table}" ({_column_list(columns)})'


def _column_list(columns: Columns) -> str:
    return ", ".join(f'"{column}"' for column in columns)
