"""Searches in the index tables of the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from deskwire.engine.conversations.conversation import Message
from deskwire.engine.search.ports import ConversationMatch
from deskwire.storage.search.lookup import SearchReads
from deskwire.storage.tables.conversations.conversations import (
    MESSAGE,
    WITH_CONTACT,
    conversation_with_contact,
    message_of,
)
from deskwire.storage.tables.search import SearchSourceReads

_CONVERSATIONS: Final = f"{WITH_CONTACT} WHERE c.rowid = ANY(CAST(? AS bigint[]))"
_NEWEST: Final = (
    f"SELECT w.value, {MESSAGE} FROM (SELECT unnest(CAST(? AS bigint[])) AS value) w CROSS JOIN LATERAL "
    "(SELECT * FROM messages m WHERE m.conversation = w.value AND m.deleted_at IS NULL ORDER BY m.rowid DESC LIMIT ?) n "
    "ORDER BY w.value, n.rowid DESC"
)


class PostgresSearchReads(SearchReads, SearchSourceReads):
    """`SearchReads` with PostgreSQL's table names, and without SQLite's planner hints."""

    postings = "search_postings"
    state = "search_state"
    named = (
        "SELECT c.rowid FROM conversations c WHERE c.project = ? AND c.id = ? UNION SELECT c.rowid FROM messages m "
        "JOIN conversations c ON c.rowid = m.conversation WHERE m.id = ? AND c.project = ?"
    )
    listed = (
        "SELECT c.rowid FROM conversations c WHERE c.rowid = ANY(CAST(? AS bigint[])) AND c.project = ? "
        "ORDER BY c.activity DESC, c.rowid DESC LIMIT ?"
    )

    def shown(self, rows: Sequence[int], messages: int) -> Sequence[ConversationMatch]:
        """See `SearchReader.shown`. Two statements for all rows, because each is a round trip."""
        keys = tuple(rows)
        found = [conversation_with_contact(row) for row in self.conn.execute(_CONVERSATIONS, (keys,))]
        texts: defaultdict[int, list[Message]] = defaultdict(list)
        for row in self.conn.execute(_NEWEST, (keys, messages)):
            texts[row[0]].append(message_of(row[1:]))
        known = {conversation.rowid: (conversation, contact) for conversation, contact in found}
        return [ConversationMatch(*known[row], texts[row][::-1]) for row in rows]
