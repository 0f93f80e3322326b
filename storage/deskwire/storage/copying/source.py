"""The rows of an SQLite database as they stand in PostgreSQL: the same, but for positions and what only nodes need.

Positions count through all projects there, and within a project here: `project << 40` is added, which keeps their order. What
PostgreSQL keeps in columns of its own is computed by SQLite as it is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from deskwire.storage.copying.text import escaped
from deskwire.storage.postgres.commit.heads import SHIFT

_BATCH: Final = 1_000


class _Changed(Struct, frozen=True):
    """A table that is read in another way: further tables, and expressions in the place of columns; `t` is the table."""

    columns: Mapping[str, str]
    joined: str = ""


def _shifted(column: str, project: str) -> str:
    return f"t.{column} + ({project} << {SHIFT})"


_DATA: Final = "json_extract(CAST(t.body AS TEXT), '$.data."
_OUTLIVES: Final = "CASE WHEN t.conversation IS NULL AND t.project > 0 THEN "
_OF_EVENT: Final = (
    "(CASE WHEN t.project > 0 THEN t.project "
    "ELSE (SELECT p.rowid FROM projects p WHERE p.id = json_extract(CAST(t.body AS TEXT), '$.projectId')) END)"
)
_CHANGED: Final[Mapping[str, _Changed]] = {
    "messages": _Changed({"project": "c.project"}, "LEFT JOIN conversations c ON c.rowid = t.conversation"),
    "events": _Changed(
        {
            "position": _shifted("position", _OF_EVENT),
            "about_conversation": f"{_OUTLIVES}{_DATA}conversation.id') END",
            "about_user": f"{_OUTLIVES}coalesce({_DATA}conversation.contact.userId'), {_DATA}contact.userId')) END",
        }
    ),
    "deliveries": _Changed(
        {
            each: _shifted(each, "e.project")
            for each in ("position", "event", "previous", "redelivery_of", "redelivered_as")
        },
        "LEFT JOIN endpoints e ON e.rowid = t.endpoint",
    ),
    "attempts": _Changed(
        {"delivery": _shifted("delivery", "e.project")},
        "LEFT JOIN deliveries d ON d.position = t.delivery LEFT JOIN endpoints e ON e.rowid = d.endpoint",
    ),
    "consumers": _Changed(
        {
            "position": _shifted("position", "t.project"),
            **dict.fromkeys(("connected", "incarnation", "dropped_at"), "0"),
            "takeovers": "'[]'",
            "node": "''",
            "wanted": "NULL",
        }
    ),
    "endpoints": _Changed({"held_upto": _shifted("held_upto", "t.project")}),
}
"""The tables that are not taken as they are."""

_SQLITE_ALONE: Final = frozenset({("kept_answers", "near")})
"""Columns that only say where a row is found in SQLite."""

LEFT_OUT: Final = frozenset(
    {
        *("event_window", "contents", "search_changes", "installation", "nodes", "duties", "couriers"),
        "conversation_attributes",
    }
)
"""Tables of both that say something of the database itself, or of who runs on it, and one that triggers fill."""


class Line(Struct, frozen=True):
    """The line of all events, or of all deliveries, as it ends: the newest position, and its id."""

    position: int
    id: str | None


class Source:
    """An SQLite database that nobody changes.

    Args:
        connection: to be read only.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.tables: Final = {
            name: [
                column[1]
                for column in connection.execute(f'PRAGMA table_info("{name}")')
                if (name, column[1]) not in _SQLITE_ALONE
            ]
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        number: int = self._connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
        return number

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table with the columns that PostgreSQL has."""
        changed = _CHANGED.get(table, _Changed({}))
        chosen = ", ".join(changed.columns.get(column, f't."{column}"') for column in columns)
        cursor = self._connection.execute(f'SELECT {chosen} FROM "{table}" t {changed.joined}')
        while rows := cursor.fetchmany(_BATCH):
            yield from map(escaped, rows)

    def has(self, table: str, column: str) -> bool:
        """Tell whether a column of PostgreSQL can be filled from here."""
        known = column in self.tables[table]
        return known or (table in _CHANGED and column in _CHANGED[table].columns)

    def used_key(self, table: str) -> int:
        """Return the largest key that a table has ever given."""
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        newest: int = self._connection.execute(f'SELECT coalesce(max(rowid), 0) FROM "{table}"').fetchone()[0]
        return max(newest, row[0] if row else 0)

    def lines(self) -> tuple[Line, Line]:
        """Return the ends of the lines of events and of deliveries, what was erased at them included."""
        events = self._connection.execute(
            "SELECT max(p), max(id) FROM (SELECT max(position) AS p, max(id) AS id FROM events "
            "UNION ALL SELECT spent_position, spent_id FROM event_window)"
        ).fetchone()
        deliveries = self._connection.execute("SELECT max(position), max(id) FROM deliveries").fetchone()
        return Line(events[0] or 0, events[1]), Line(deliveries[0] or 0, deliveries[1])

    def window(self) -> tuple[int, str | None]:
        """Return up to which position the log was cut off, and the id of the last event that was cut."""
        query = "SELECT pruned_position, pruned_id FROM event_window"
        found: tuple[int, str | None] = self._connection.execute(query).fetchone()
        return found

    def contents(self) -> list[tuple[int, str, int, int]]:
        """Return the contents of uploads: project, SHA-256, bytes, and when the first of them was made."""
        return self._connection.execute(
            "SELECT project, sha256, size, min(created_at) FROM uploads GROUP BY project, sha256, size ORDER BY 1, 2"
        ).fetchall()
