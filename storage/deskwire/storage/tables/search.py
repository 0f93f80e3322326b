"""The texts that the search index is made of, in the order in which it takes them in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from deskwire.engine.search.ports import Change, Fields, Kind, Position, Text

_FIELDS: Final[dict[Kind, str]] = {
    "conversation": "SELECT c.rowid, c.project, c.title FROM conversations c",
    "contact": "SELECT c.rowid, c.project, c.name, c.email, c.phone, c.user_id FROM contacts c",
}


class SearchSourceReads:
    """Queries; the methods are those of `engine.search.ports.SourceReader`."""

    conn: sqlite3.Connection

    def search_changes(self, after: int, limit: int) -> Sequence[Change]:
        rows = self.conn.execute(
            "SELECT rowid, kind, row, message FROM search_changes WHERE rowid > ? ORDER BY rowid LIMIT ?",
            (after, limit),
        )
        return [Change(*row) for row in rows]

    def texts(self, after: int) -> Iterator[Text]:
        rows = self.conn.execute(
            "SELECT m.rowid, m.id, m.conversation, c.project, m.text FROM messages m "
            "CROSS JOIN conversations c ON c.rowid = m.conversation WHERE m.rowid > ? ORDER BY m.rowid",
            (after,),
        )
        return (Text(*row) for row in rows)

    def fields_after(self, kind: Kind, after: int, limit: int) -> Sequence[Fields]:
        sql = f"{_FIELDS[kind]} WHERE c.rowid > ? ORDER BY c.rowid LIMIT ?"
        return [Fields(row[0], row[1], row[2:]) for row in self.conn.execute(sql, (after, limit))]

    def fields_of(self, kind: Kind, row: int) -> Fields | None:
        found = self.conn.execute(f"{_FIELDS[kind]} WHERE c.rowid = ?", (row,)).fetchone()
        return None if found is None else Fields(found[0], found[1], found[2:])

    def ends(self) -> Position:
        row = self.conn.execute(
            "SELECT (SELECT coalesce(max(rowid), 0) FROM messages), (SELECT coalesce(max(rowid), 0) FROM conversations), "
            "(SELECT coalesce(max(rowid), 0) FROM contacts), (SELECT coalesce(max(rowid), 0) FROM search_changes)"
        ).fetchone()
        return Position(row[0], None, *row[1:])


class SearchSourceWrites:
    """Changes; the methods are those of `engine.search.ports.SourceTransaction`."""

    conn: sqlite3.Connection

    def forget_search_changes(self, upto: int) -> None:
        self.conn.execute("DELETE FROM search_changes WHERE rowid <= ?", (upto,))
