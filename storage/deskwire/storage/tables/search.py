"""The texts for the search index, in the order of indexing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from deskwire.engine.search.ports import ConversationTitle, IndexedChange, MessageText
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Changes, Queries

_TEXTS: Final = either(
    "SELECT m.rowid, m.id, m.conversation, c.project, m.text FROM messages m "
    "{and_then} conversations c ON c.rowid = m.conversation WHERE m.rowid > ? ORDER BY m.rowid LIMIT ?"
)
_TEXTS_OF: Final = (
    "SELECT m.rowid, m.id, m.conversation, c.project, m.text FROM messages m "
    "JOIN conversations c ON c.rowid = m.conversation WHERE m.conversation = ? ORDER BY m.rowid"
)
_TITLE: Final = "SELECT rowid, project, title FROM conversations"


class SearchSourceReads(Queries):
    """Queries; the methods are those of `engine.search.ports.SourceReader`."""

    def search_changes(self, after: int, limit: int) -> Sequence[IndexedChange]:
        rows = self.conn.execute(
            "SELECT rowid, conversation, message, reworded FROM search_changes WHERE rowid > ? ORDER BY rowid LIMIT ?",
            (after, limit),
        )
        return [IndexedChange(row[0], row[1], row[2], bool(row[3])) for row in rows]

    def texts(self, after: int, limit: int) -> Iterator[MessageText]:
        rows = self.conn.execute(_TEXTS[self.dialect], (after, limit))
        return (MessageText(*row) for row in rows)

    def texts_of(self, conversation: int) -> Iterator[MessageText]:
        rows = self.conn.execute(_TEXTS_OF, (conversation,))
        return (MessageText(*row) for row in rows)

    def titles(self, after: int, limit: int) -> Sequence[ConversationTitle]:
        rows = self.conn.execute(f"{_TITLE} WHERE rowid > ? ORDER BY rowid LIMIT ?", (after, limit))
        return [ConversationTitle(*row) for row in rows]

    def title(self, conversation: int) -> ConversationTitle | None:
        row = self.conn.execute(f"{_TITLE} WHERE rowid = ?", (conversation,)).fetchone()
        return None if row is None else ConversationTitle(*row)


class SearchSourceWrites(Changes):
    """Changes; the methods are those of `engine.search.ports.SourceTransaction`."""

    def forget_search_changes(self, upto: int) -> None:
        self.conn.execute("DELETE FROM search_changes WHERE rowid <= ?", (upto,))
