"""Write access to the index, in transactions of its own.

The table `words` lists the words of each conversation, so that they can be removed one by one. A word without
conversations has no row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Set as AbstractSet

from deskwire.engine.search.ports import IndexPosition
from deskwire.storage.search.blocks import changed
from deskwire.storage.search.postings import NONE, ConversationWords, Place, PostingChanges, joined, split


class IndexWrites:
    """Implements `engine.search.ports.IndexTransaction`.

    Changes of postings are buffered until `flush`, because the conversations of a batch share many of them. `removed` is
    True if a posting was removed.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.removed = False
        self._connection = connection
        self._changes = PostingChanges()

    def add(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        stored = self._stored(conversation)
        if not words <= stored.body:
            self._put(conversation, project, stored, ConversationWords(stored.body | words, stored.title))

    def set_title(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        stored = self._stored(conversation)
        if words != stored.title:
            self._put(conversation, project, stored, ConversationWords(stored.body, frozenset(words)))

    def replace(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        stored = self._stored(conversation)
        if words != stored.body:
            self._put(conversation, project, stored, ConversationWords(frozenset(words), stored.title))
            self._note_removal()

    def remove(self, conversation: int) -> None:
        row = self._connection.execute(
            "SELECT project FROM words WHERE conversation = ?", (conversation,)
        ).fetchone()
        if row is not None:
            self._put(conversation, row[0], self._stored(conversation), NONE)
            self._note_removal()

    def move_to(self, position: IndexPosition, *, complete: bool) -> None:
        self._connection.execute(
            "UPDATE state SET message = ?, message_id = ?, conversation = ?, change = ?, complete = max(complete, ?)",
            (*position, complete),
        )

    def flush(self) -> None:
        """Write the buffered changes, in the order of the rows."""
        select = (
            "SELECT conversations FROM postings WHERE project = ? AND length = ? AND word = ? AND block = ?"
        )
        for place in self._changes.places():
            row = self._connection.execute(select, place).fetchone()
            before = b"" if row is None else row[0]
            after = changed(before, *self._changes.at(place))
            if after != before:
                self._write(place, after)
        self._changes.clear()

    def _note_removal(self) -> None:
        self._connection.execute("UPDATE state SET scrub_due = 1")
        self.removed = True

    def _write(self, place: Place, conversations: bytes) -> None:
        if conversations:
            self._connection.execute(
                "INSERT INTO postings VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET conversations = excluded.conversations",
                (*place, conversations),
            )
        else:
            self._connection.execute(
                "DELETE FROM postings WHERE project = ? AND length = ? AND word = ? AND block = ?", place
            )

    def _stored(self, conversation: int) -> ConversationWords:
        row = self._connection.execute(
            "SELECT body, title FROM words WHERE conversation = ?", (conversation,)
        ).fetchone()
        return NONE if row is None else ConversationWords(split(row[0]), split(row[1]))

    def _put(
        self, conversation: int, project: int, before: ConversationWords, after: ConversationWords
    ) -> None:
        if after == NONE:
            self._connection.execute("DELETE FROM words WHERE conversation = ?", (conversation,))
        else:
            self._connection.execute(
                "INSERT INTO words VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET body = excluded.body, title = excluded.title",
                (conversation, project, joined(after.body), joined(after.title)),
            )
        self._changes.note(conversation, project, before, after)
