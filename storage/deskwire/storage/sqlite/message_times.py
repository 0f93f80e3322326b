"""The table that reports count messages in on SQLite, to which messages are added many at a time (ADR 74).

An index by time would cost each message a page of the WAL. Those that are not yet in the table, all behind `message_times_end`, are
read from `messages`. What changes or deletes a message does so in the table as well: triggers see to that.
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

AT_ONCE: Final = 512
"""Messages that are added together: some eight pages and 0.4 ms, and as many a report may have to read one by one."""

_ADD: Final = (
    f"INSERT INTO message_times SELECT project, created_at, rowid, conversation, {AUTHOR}, {AGENT} "
    "FROM messages WHERE rowid > (SELECT message FROM message_times_end) AND internal = 0"
)
_MOVE_END: Final = "UPDATE message_times_end SET message = (SELECT max(rowid) FROM messages)"
_BEHIND: Final = "SELECT coalesce(max(rowid), 0) - (SELECT message FROM message_times_end) FROM messages"


def add_untimed(connection: Connection) -> None:
    """Add all messages that are behind the end of the table."""
    connection.execute(_ADD)
    connection.execute(_MOVE_END)


class MessageTimes(ConversationWrites, ImportWrites):
    """Additions of messages. `_untimed` is how many may be behind the end of the table."""

    _untimed: int

    def start_message_times(self) -> None:
        """Go on behind what is stored; after a rollback it may be less than was counted, or more."""
        (self._untimed,) = self.conn.execute(_BEHIND).fetchone()

    def insert_message(self, conversation: int, message: Message, sequence: int | None) -> None:
        super().insert_message(conversation, message, sequence)
        self._untimed += 1
        if self._untimed >= AT_ONCE:
            self._add_untimed()

    def insert_imported(
        self,
        messages: Sequence[MessageRow],
        marks: Sequence[MessageMark],
        conversations: Sequence[ConversationMark],
    ) -> None:
        super().insert_imported(messages, marks, conversations)
        self._untimed += len(messages)
        if self._untimed >= AT_ONCE:
            self._add_untimed()

    def _add_untimed(self) -> None:
        add_untimed(self.conn)
        self._untimed = 0
