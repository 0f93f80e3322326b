"""The rows of an SQLite database in the form that they have in PostgreSQL.

SQLite numbers positions across all projects, PostgreSQL within each project. The copy adds `project << 40` to each
position, which keeps the order within a project. Columns that only PostgreSQL has are computed by the query.
"""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct

from deskwire.storage.postgres.commit.positions import PROJECT_SHIFT
from deskwire.storage.postgres.driver.codec import encode_text

_BATCH_SIZE: Final = 1_000


class _TableQuery(Struct, frozen=True):
    """Expressions for some columns of a table, whose alias is `t`, and the joins for them."""

    columns: Mapping[str, str]
    joined: str = ""


def _shifted(column: str, project: str) -> str:
    return f"t.{column} + ({project} << {PROJECT_SHIFT})"


_DATA: Final = "json_extract(CAST(t.body AS TEXT), '$.data."
_OUTLIVES: Final = "CASE WHEN t.conversation IS NULL AND t.project > 0 THEN "
_OF_EVENT: Final = (
    "(CASE WHEN t.project > 0 THEN t.project "
    "ELSE (SELECT p.rowid FROM projects p WHERE p.id = json_extract(CAST(t.body AS TEXT), '$.projectId')) END)"
)
# The tables of which some columns are computed.
_TABLE_QUERIES: Final[Mapping[str, _TableQuery]] = {
    "messages": _TableQuery(
        {"project": "c.project"}, "LEFT JOIN conversations c ON c.rowid = t.conversation"
    ),
    "events": _TableQuery(
        {
            "position": _shifted("position", _OF_EVENT),
            "about_conversation": f"{_OUTLIVES}{_DATA}conversation.id') END",
            "about_user": f"{_OUTLIVES}coalesce({_DATA}conversation.contact.userId'), {_DATA}contact.userId')) END",
        }
    ),
    "deliveries": _TableQuery(
        {
            each: _shifted(each, "e.project")
            for each in ("position", "event", "previous", "redelivery_of", "redelivered_as")
        },
        "LEFT JOIN endpoints e ON e.rowid = t.endpoint",
    ),
    "attempts": _TableQuery(
        {"delivery": _shifted("delivery", "e.project")},
        "LEFT JOIN deliveries d ON d.position = t.delivery LEFT JOIN endpoints e ON e.rowid = d.endpoint",
    ),
    "consumers": _TableQuery(
        {
            "position": _shifted("position", "t.project"),
            **dict.fromkeys(("connected", "incarnation", "dropped_at"), "0"),
            "takeovers": "'[]'",
            "node": "''",
            "wanted": "NULL",
        }
    ),
    "endpoints": _TableQuery({"held_upto": _shifted("held_upto", "t.project")}),
}

# Columns that serve a lookup in SQLite only.
_SQLITE_ONLY_COLUMNS: Final = frozenset({("kept_answers", "near")})

# Tables of both databases that are not copied: they describe the database itself or its nodes, or are filled
# by triggers.
LEFT_OUT: Final = frozenset(
    {
        *("event_window", "contents", "search_changes", "installation", "nodes", "duties", "couriers"),
        "conversation_attributes",
    }
)


class LogEnd(Struct, frozen=True):
    """The newest position and id of all events, or of all deliveries."""

    position: int
    id: str | None


class SqliteSource:
    """An SQLite database that is not in use.

    Args:
        connection: used for reading only.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.tables: Final = {
            name: [
                column[1]
                for column in connection.execute(f'PRAGMA table_info("{name}")')
                if (name, column[1]) not in _SQLITE_ONLY_COLUMNS
            ]
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        number: int = self._connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
        return number

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table with the columns that PostgreSQL has."""
        changed = _TABLE_QUERIES.get(table, _TableQuery({}))
        chosen = ", ".join(changed.columns.get(column, f't."{column}"') for column in columns)
        cursor = self._connection.execute(f'SELECT {chosen} FROM "{table}" t {changed.joined}')
        while rows := cursor.fetchmany(_BATCH_SIZE):
            yield from map(escaped, rows)

    def has(self, table: str, column: str) -> bool:
        """Return whether a column of PostgreSQL can be filled from this database."""
        known = column in self.tables[table]
        return known or (table in _TABLE_QUERIES and column in _TABLE_QUERIES[table].columns)

    def used_key(self, table: str) -> int:
        """Return the largest key that a table has ever given."""
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        newest: int = self._connection.execute(f'SELECT coalesce(max(rowid), 0) FROM "{table}"').fetchone()[0]
        return max(newest, row[0] if row else 0)

    def log_ends(self) -> tuple[LogEnd, LogEnd]:
        """Return the ends of the logs of events and of deliveries, including erased ones."""
        events = self._connection.execute(
            "SELECT max(p), max(id) FROM (SELECT max(position) AS p, max(id) AS id FROM events "
            "UNION ALL SELECT spent_position, spent_id FROM event_window)"
        ).fetchone()
        deliveries = self._connection.execute("SELECT max(position), max(id) FROM deliveries").fetchone()
        return LogEnd(events[0] or 0, events[1]), LogEnd(deliveries[0] or 0, deliveries[1])

    def window(self) -> tuple[int, str | None]:
        """Return the position up to which the log was pruned, and the id of that event."""
        query = "SELECT pruned_position, pruned_id FROM event_window"
        found: tuple[int, str | None] = self._connection.execute(query).fetchone()
        return found

    def contents(self) -> list[tuple[int, str, int, int]]:
        """Return the contents of uploads: project, SHA-256, bytes, and time of the first upload."""
        return self._connection.execute(
            "SELECT project, sha256, size, min(created_at) FROM uploads GROUP BY project, sha256, size ORDER BY 1, 2"
        ).fetchall()


_ESCAPED_CHARACTERS: Final = ("\0", "\ue000")
_DIGEST_BYTES: Final = 16
# The version of marshal that writes equal values as equal bytes, whatever objects they are.
_MARSHAL_VERSION: Final = 0


def escaped(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with its texts in their stored form."""
    if any(isinstance(value, str) and any(mark in value for mark in _ESCAPED_CHARACTERS) for value in row):
        return tuple(encode_text(value).decode() if isinstance(value, str) else value for value in row)
    return row


class RowDigest:
    """The number and the keyed digest of rows, independent of their order.

    Args:
        key: up to 64 bytes that authors of the rows can't know.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sum = 0
        self.rows = 0

    def over(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, and add each to the digest."""
        for row in rows:
            hashed = blake2b(
                marshal.dumps(row, _MARSHAL_VERSION), digest_size=_DIGEST_BYTES, key=self._key
            ).digest()
            self._sum += int.from_bytes(hashed)
            self.rows += 1
            yield row

    def __eq__(self, other: object) -> bool:
        """Return whether the other digest has the same rows."""
        return isinstance(other, RowDigest) and (self.rows, self._value) == (other.rows, other._value)

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def _value(self) -> int:
        return self._sum % (1 << 8 * _DIGEST_BYTES)
