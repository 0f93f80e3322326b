"""The parts of the agent's view that are not in the conversations' own rows, and messages as a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deskwire.engine.conversations.agent_view import Beside, Sequenced
from deskwire.engine.conversations.conversation import Author, Message
from deskwire.engine.conversations.redaction import FIRST_WORDS
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.conversations.conversations import MESSAGE, message_of
from deskwire.storage.tables.workflows import run_of

BESIDE: Final = either(
    "SELECT k.value, r.state, f.name, m.id, m.author_type, m.author_id, m.author_name, "
    f"substr(m.text, 1, {FIRST_WORDS}), m.created_at, m.internal "
    "FROM {numbers} k LEFT JOIN messages m ON m.rowid = "
    "(SELECT rowid FROM messages WHERE conversation = k.value AND deleted_at IS NULL ORDER BY rowid DESC LIMIT 1) "
    "LEFT JOIN workflow_runs r ON r.conversation = k.value "
    "LEFT JOIN workflow_versions v ON v.rowid = r.version LEFT JOIN workflows f ON f.id = v.workflow_id"
)
THREAD: Final = (
    f"SELECT {MESSAGE}, sequence, rowid FROM messages WHERE conversation = ? AND rowid > ? AND rowid < ? AND deleted_at IS NULL "
    "ORDER BY rowid {} LIMIT ?"
)
_NO_ROW: Final = (1 << 63) - 1


class AgentViewReads(Queries):
    """Queries of the agent's view; the methods are those of `conversations.ports.ConversationReader`."""

    def beside(self, conversations: Sequence[int]) -> Mapping[int, Beside]:
        found: dict[int, Beside] = {}
        for row in self.conn.execute(BESIDE[self.dialect], (self.dialect.listed(conversations),)):
            key, state, workflow, message, *rest = row
            last = None if message is None else _beginning(message, *rest)
            found[key] = Beside(last, run_of(state), workflow)
        return found

    def message_before(self, conversation: int, sequence: int) -> int | None:
        sql = (
            "SELECT max(rowid) FROM messages WHERE conversation = ?1 AND rowid < coalesce("
            "(SELECT min(rowid) FROM messages WHERE conversation = ?1 AND sequence > ?2), ?3)"
        )
        found: int | None = self.conn.execute(sql, (conversation, sequence, _NO_ROW)).fetchone()[0]
        return found

    def thread(
        self, conversation: int, *, after: int | None, before: int | None, newest_first: bool, limit: int
    ) -> Sequence[Sequenced]:
        sql = THREAD.format("DESC" if newest_first else "ASC")
        rows = self.conn.execute(sql, (conversation, after or 0, before or _NO_ROW, limit))
        return [Sequenced(message_of(row), row[-2], row[-1]) for row in rows]


def _beginning(
    message_id: str,
    author_type: str,
    author_id: str | None,
    name: str | None,
    text: str,
    at: int,
    internal: int,
) -> Message:
    author = Author(author_type, author_id, name)  # type: ignore[arg-type]  # as it was stored
    return Message(message_id, author, text, at, bool(internal))
