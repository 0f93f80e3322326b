"""The table `message_times`, in which reports count messages on SQLite; it is filled in batches (ADR 74).

An index by time would cost each message a page of the WAL. Messages after `message_times_end`, which are not in the table
yet, are read from `messages`. Triggers apply changes and deletions of messages to the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.conversations.conversation import Message
from deskwire.engine.importing.ports import ConversationMark, MessageMark, MessageRow
from deskwire.storage.connection import Connection
from deskwire.storage.tables.conversations.conversations import ConversationWrites
from deskwire.storage.tables.conversations.imports import ImportWrites
from deskwire.storage.tables.reports.reports import AGENT, AUTHOR

BATCH_SIZE: Final = 512
"""Messages added together, at about eight pages and 0.4 ms. A report reads up to as many one by one."""

_ADD: Final = (
    f"INSERT INTO message_times SELECT project, created_at, rowid, conversation, {AUTHOR}, {AGENT} "
    "FROM messages WHERE rowid > (SELECT message FROM message_times_end) AND internal = 0"
)
_MOVE_END: Final = "UPDATE message_times_end SET message = (SELECT max(rowid) FROM messages)"
_BEHIND: Final = "SELECT coalesce(max(rowid), 0) - (SELECT message FROM message_times_end) FROM messages"


def add_untimed(connection: Connection) -> None:
    """Add all messages after `message_times_end` to the table."""
    connection.execute(_ADD)
    connection.execute(_MOVE_END)


class MessageTimes(ConversationWrites, ImportWrites):
    """Insertion of messages. `_untimed` is an upper bound of the messages missing in the table."""

    _untimed: int

    def start_message_times(self) -> None:
        """Count the missing messages, at the start and after a rollback."""
        (self._untimed,) = self.conn.execute(_BEHIND).fetchone()

    def insert_message(self, conversation: int, message: Message, sequence: int | None) -> None:
        super().insert_message(conversation, message, sequence)
        self._untimed += 1
        if self._untimed >= BATCH_SIZE:
            self._add_untimed()

    def insert_imported(
        self,
        messages: Sequence[MessageRow],
        marks: Sequence[MessageMark],
        conversations: Sequence[ConversationMark],
    ) -> None:
        super().insert_imported(messages, marks, conversations)
        self._untimed += len(messages)
        if self._untimed >= BATCH_SIZE:
            self._add_untimed()

    def _add_untimed(self) -> None:
        add_untimed(self.conn)
        self._untimed = 0
