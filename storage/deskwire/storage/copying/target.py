"""The empty PostgreSQL database that rows are copied into, all of it in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final

import psycopg

from deskwire.storage.copying.source import Line
from deskwire.storage.postgres.commit.heads import SHIFT
from deskwire.storage.postgres.schema.files import PART_BYTES
from deskwire.storage.postgres.search.tickets import words_of

Columns = Mapping[str, str]
"""Names of columns with their types."""

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
UPDATE project_heads SET position = (project << {SHIFT}) + %s, last_id = %s, delivery = (project << {SHIFT}) + %s, delivery_id = %s,
    pruned_position = CASE WHEN %s = 0 THEN 0 ELSE (project << {SHIFT}) + %s END, pruned_id = %s
"""


class Target:
    """A database in a transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.tables: Final[dict[str, dict[str, str]]] = {}
        for table, column, kind in connection.execute(_COLUMNS).fetchall():
            self.tables.setdefault(table, {})[column] = kind

    def in_order(self, tables: Iterable[str]) -> list[str]:
        """Return the tables, those first that others refer to."""
        wanted = set(tables)
        graph: dict[str, set[str]] = {table: set() for table in sorted(wanted)}
        for table, referred in self._connection.execute(_REFERENCES).fetchall():
            if table in wanted and referred in wanted:
                graph[table].add(referred)
        return [*TopologicalSorter(graph).static_order()]

    def fill(self, table: str, columns: Columns, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows; those that a migration has put there are replaced."""
        self._connection.execute(f'DELETE FROM "{table}"'.encode())
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {_named(table, columns)} FROM STDIN (FORMAT BINARY)".encode()) as copy,
        ):
            copy.set_types([*columns.values()])
            for row in rows:
                copy.write_row(row)

    def rows(self, table: str, columns: Columns) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that are there now."""
        with (
            self._connection.cursor() as cursor,
            cursor.copy(
                f'COPY (SELECT {_list(columns)} FROM "{table}") TO STDOUT (FORMAT BINARY)'.encode()
            ) as copy,
        ):
            copy.set_types([*columns.values()])
            yield from copy.rows()

    def continue_keys(self, table: str, column: str, used: int) -> None:
        """Give new rows of a table keys behind those that were ever used, if it is the database that gives them."""
        if used:
            self._connection.execute(
                "SELECT setval(sequence, %s) FROM pg_get_serial_sequence(%s, %s) AS sequence WHERE sequence IS NOT NULL",
                (used, table, column),
            )

    def continue_lines(self, events: Line, deliveries: Line, pruned: tuple[int, str | None]) -> None:
        """Have each project's events and deliveries go on behind all that was ever given."""
        position, last = pruned
        self._connection.execute(
            _HEADS, (events.position, events.id, deliveries.position, deliveries.id, position, position, last)
        )

    def index_tickets(self) -> None:
        """Write the words of all tickets, by which they are found."""
        rows = self._connection.execute("SELECT rowid, project, title, description FROM tickets").fetchall()
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO ticket_words (rowid, words, lexemes) VALUES (%s, %s, %s::tsvector)",
                [words_of(*row) for row in rows],
            )

    def add_content(self, project: int, sha256: str, at: int) -> int:
        """Make the entry of a content; returns its key."""
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
        """Return the SHA-256 of each file that the database has, by its entry."""
        sql = (
            "SELECT c.rowid, encode(sha256(coalesce((SELECT string_agg(data, ''::bytea ORDER BY number) "
            "FROM upload_parts p WHERE p.content = c.rowid), ''::bytea)), 'hex') FROM contents c"
        )
        return dict(self._connection.execute(sql).fetchall())


def _named(table: str, columns: Columns) -> str:
    return f'"{table}" ({_list(columns)})'


def _list(columns: Columns) -> str:
    return ", ".join(f'"{column}"' for column in columns)
