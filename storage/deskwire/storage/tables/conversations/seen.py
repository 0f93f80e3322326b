"""The place of each agent in conversations: what was seen, row by row of `agent_seen`."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from deskwire.engine.conversations.agent_view import Seen

SEEN: Final = (
    "SELECT s.conversation, s.number, s.contact_messages FROM json_each(?) k "
    "CROSS JOIN agent_seen s ON s.user = ? AND s.conversation = k.value"
)
_BEHIND: Final = "SELECT number, author_type FROM messages WHERE conversation = ? ORDER BY rowid DESC"


class SeenReads:
    """Queries on what agents have seen; the methods are those of `conversations.ports.ConversationReader`."""

    conn: sqlite3.Connection

    def seen(self, user: int, conversations: Sequence[int]) -> Mapping[int, Seen]:
        rows = self.conn.execute(SEEN, (orjson.dumps(list(conversations)).decode(), user))
        return {conversation: Seen(*seen) for conversation, *seen in rows}

    def unseen_behind(self, conversation: int, index: int) -> int:
        unseen = 0
        for number, author in self.conn.execute(_BEHIND, (conversation,)):
            if number is not None and number <= index:
                break
            unseen += number is not None and author == "contact"
        return unseen


class SeenWrites:
    """Changes of what agents have seen; the methods are those of `conversations.ports.ConversationTransaction`."""

    conn: sqlite3.Connection

    def put_seen(self, user: int, conversation: int, seen: Seen, at: int) -> bool:
        stored = self.conn.execute(
            "INSERT INTO agent_seen SELECT ?, rowid, ?, ?, ? FROM conversations WHERE rowid = ? "
            "ON CONFLICT (user, conversation) DO UPDATE SET number = excluded.number, "
            "contact_messages = excluded.contact_messages, at = excluded.at",
            (user, seen.index, seen.contact_messages, at, conversation),
        )
        return stored.rowcount == 1
