"""The texts that the search index is made of, in the order in which it takes them in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from deskwire.engine.search.ports import Change, Position, Text, Title

_TITLE: Final = "SELECT rowid, project, title FROM conversations"


class SearchSourceReads:
    """Queries; the methods are those of `engine.search.ports.SourceReader`."""

    conn: sqlite3.Connection

    def search_changes(self, after: int, limit: int) -> Sequence[Change]:
        rows = self.conn.execute(
            "SELECT rowid, conversation, message FROM search_changes WHERE rowid > ? ORDER BY rowid LIMIT ?",
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

    def titles(self, after: int, limit: int) -> Sequence[Title]:
        rows = self.conn.execute(f"{_TITLE} WHERE rowid > ? ORDER BY rowid LIMIT ?", (after, limit))
        return [Title(*row) for row in rows]

    def title(self, conversation: int) -> Title | None:
        row = self.conn.execute(f"{_TITLE} WHERE rowid = ?", (conversation,)).fetchone()
        return None if row is None else Title(*row)

    def newest(self) -> Position:
        row = self.conn.execute(
            "SELECT (SELECT coalesce(max(rowid), 0) FROM messages), (SELECT coalesce(max(rowid), 0) FROM conversations), "
            "(SELECT coalesce(max(rowid), 0) FROM search_changes)"
        ).fetchone()
        return Position(row[0], None, row[1], row[2])


class SearchSourceWrites:
    """Changes; the methods are those of `engine.search.ports.SourceTransaction`."""

    conn: sqlite3.Connection

    def forget_search_changes(self, upto: int) -> None:
        self.conn.execute("DELETE FROM search_changes WHERE rowid <= ?", (upto,))
