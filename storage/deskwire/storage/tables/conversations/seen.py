"""The place of each agent in conversations: what was seen, row by row of `agent_seen`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deskwire.engine.conversations.agent_view import Seen
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Changes, Queries

SEEN: Final = either(
    "SELECT s.conversation, s.number, s.contact_messages FROM {numbers} k "
    "{and_then} agent_seen s ON s.user = ? AND s.conversation = k.value"
)
_BEHIND: Final = "SELECT number, author_type FROM messages WHERE conversation = ? ORDER BY rowid DESC"


class SeenReads(Queries):
    """Queries on what agents have seen; the methods are those of `conversations.ports.ConversationReader`."""

    def seen(self, user: int, conversations: Sequence[int]) -> Mapping[int, Seen]:
        rows = self.conn.execute(SEEN[self.dialect], (self.dialect.listed(conversations), user))
        return {conversation: Seen(*seen) for conversation, *seen in rows}

    def unseen_behind(self, conversation: int, index: int) -> int:
        unseen = 0
        for number, author in self.conn.execute(_BEHIND, (conversation,)):
            if number is not None and number <= index:
                break
            unseen += number is not None and author == "contact"
        return unseen


class SeenWrites(Changes):
    """Changes of what agents have seen; the methods are those of `conversations.ports.ConversationTransaction`."""

    def put_seen(self, user: int, conversation: int, seen: Seen, at: int) -> bool:
        stored = self.conn.execute(
            "INSERT INTO agent_seen SELECT ?, rowid, ?, ?, ? FROM conversations WHERE rowid = ? "
            'ON CONFLICT ("user", conversation) DO UPDATE SET number = excluded.number, '
            "contact_messages = excluded.contact_messages, at = excluded.at",
            (user, seen.index, seen.contact_messages, at, conversation),
        )
        return stored.rowcount == 1
