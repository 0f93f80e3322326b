"""Searches for the conversations that have all words, sorted by activity, with bounded work.

A word is a range of postings, or one row in each block for short prefixes; the intersection is an `and` of integers. Few
matches are sorted. For many, the list of conversations by activity is scanned from its newest end, where matches are
frequent; if the scan limit leaves too few, the newest conversations fill the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from deskwire.engine.conversations.listing import ConversationPageKey
from deskwire.engine.search.ports import ConversationMatch, IndexLag, RowMatches, TextOfMessage
from deskwire.storage.search.blocks import BITS, SIZE, Conversations, common, count, newest, united
from deskwire.storage.search.postings import length_for
from deskwire.storage.tables.conversations.conversations import ConversationReads
from deskwire.storage.tables.conversations.lists import ConversationListReads

SORTED_MAX: Final = 1_000
"""Maximum matches that are sorted, in a few milliseconds."""

WALKED_MAX: Final = 20_000
"""Maximum conversations of the scan, in about ten milliseconds."""

_FIRST_PART: Final = 50
"""Conversations that the scan reads first; the parts grow."""

FIRST_TEXTS: Final = 8
"""Texts of a conversation that are read first; the parts grow."""

_NEWEST: Final = (1 << 63) - 1
"""A key above all messages."""

_LAST: Final = "\U0010ffff"
"""The last code point."""


class SearchReads(ConversationReads, ConversationListReads):
    """Implements `engine.search.ports.SearchReader` on the database and its index.

    Attributes:
        postings: the table of postings.
        state: the table with the position of the index.
        named: the conversation of an id, or of a message's id.
        listed: the conversations of a list in the order of their activity.
        newest_texts: the ids, texts and keys of a conversation's newest messages and notes below a key, up to a number, the
            newest first.
    """

    postings = "search.postings"
    state = "search.state"
    named = (
        "SELECT c.rowid FROM conversations c WHERE +c.project = ? AND c.id = ? UNION SELECT c.rowid FROM messages m "
        "CROSS JOIN conversations c ON c.rowid = m.conversation WHERE m.id = ? AND +c.project = ?"
    )
    listed = (
        "SELECT c.rowid FROM json_each(?) w CROSS JOIN conversations c ON c.rowid = w.value "
        "WHERE c.project = ? ORDER BY c.activity DESC, c.rowid DESC LIMIT ?"
    )

    newest_texts = (
        "SELECT id, text, rowid FROM messages WHERE conversation = ? AND rowid < ? AND deleted_at IS NULL "
        "ORDER BY rowid DESC LIMIT ?"
    )

    def search_lag(self) -> IndexLag:
        *numbers, complete = self.conn.execute(
            "SELECT (SELECT coalesce(max(rowid), 0) FROM messages), s.message, "
            "(SELECT coalesce(max(rowid), 0) FROM conversations), s.conversation, "
            f"(SELECT count(*) FROM search_changes WHERE rowid > s.change), s.complete FROM {self.state} s"
        ).fetchone()
        newest_message, message, newest_begun, begun, changes = numbers
        return IndexLag(
            max(0, newest_message - message), max(0, newest_begun - begun) + changes, not complete
        )

    def found_conversations(self, project: int, words: Sequence[str], limit: int) -> RowMatches:
        found = self._with_all(project, words)
        matching = count(found)
        if matching > SORTED_MAX:
            rows = self._newest_active(project, found, limit)
            if len(rows) >= limit:
                return RowMatches(rows, True)
            last_begun = [row for row in newest(found, SORTED_MAX) if row not in set(rows)]
            return RowMatches([*rows, *self._by_activity(project, last_begun, limit - len(rows))], True)
        rows = self._by_activity(project, newest(found, SORTED_MAX), limit + 1)
        return RowMatches(rows[:limit], len(rows) > limit)

    def conversation_named(self, project: int, name: str) -> int | None:
        row = self.conn.execute(self.named, (project, name, name, project)).fetchone()
        return None if row is None else int(row[0])

    def shown(self, rows: Sequence[int], messages: int, words: Sequence[str]) -> Sequence[ConversationMatch]:
        texts = self.texts_by_conversation(rows, messages, words)
        found = self._listed([ConversationPageKey(0, row) for row in rows])
        return [
            ConversationMatch(each.conversation, each.contact, texts[each.conversation.rowid])
            for each in found
        ]

    def texts_by_conversation(
        self, rows: Sequence[int], messages: int, words: Sequence[str]
    ) -> Mapping[int, Iterable[TextOfMessage]]:
        """Return the texts of `ConversationMatch` by conversation.

        SQLite finds words no faster than Python, and a statement for each conversation costs less than texts that no one reads.
        """

        def parts_of(row: int) -> Iterator[Sequence[TextOfMessage]]:
            # In parts that are read to their end: while a statement is still being read, each other conversation needs
            # a new one, which takes longer to prepare than to carry out.
            before, size, left = _NEWEST, FIRST_TEXTS, messages
            while left > 0:
                values = (row, before, min(size, left))
                part = self.conn.execute(self.newest_texts, values).fetchall()
                yield part
                if len(part) < values[-1]:
                    return
                before, size, left = part[-1][-1], size * 4, left - len(part)

        return {row: chain.from_iterable(parts_of(row)) for row in rows}

    def _with_all(self, project: int, words: Sequence[str]) -> Conversations:
        found: Conversations | None = None
        for word in words:
            having = self._with(project, word)
            found = having if found is None else common(found, having)
            if not found:
                break
        return found or {}

    def _with(self, project: int, word: str) -> Conversations:
        """Return the conversations with a word that has this prefix."""
        sql = (
            f"SELECT block, conversations FROM {self.postings} "
            "WHERE project = ? AND length = ? AND word >= ? AND word < ?"
        )
        return united(self.conn.execute(sql, (project, length_for(word), word, word + _LAST)))

    def _newest_active(self, project: int, found: Conversations, limit: int) -> list[int]:
        """Return the first matches in the list by activity, within the scan limit."""

        def matches(row: int) -> bool:
            return bool(found.get(row >> BITS, 0) >> (row % SIZE) & 1)

        rows = islice(self.newest_active(project, _FIRST_PART, matches), WALKED_MAX)
        return list(islice(filter(matches, rows), limit))

    def _by_activity(self, project: int, conversations: Sequence[int], limit: int) -> list[int]:
        values = (self.dialect.listed(conversations), project, limit)
        return [row[0] for row in self.conn.execute(self.listed, values)]
