"""The message that a command is about, as it is stored: what such a command is decided on besides the conversation."""

from __future__ import annotations

from typing import Final

from deskwire.engine.conversations.commands import DeleteMessage, RedactMessage
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.values import replace

OF_MESSAGE: Final = (RedactMessage, DeleteMessage)
"""The commands that are about one message that there is."""


def with_message(
    command: RedactMessage | DeleteMessage, state: Conversation, reader: ConversationReader
) -> RedactMessage | DeleteMessage:
    """Return the command with its message, if the conversation has it."""
    found = reader.message(state.rowid, command.message_id, internal=command.internal)
    return replace(command, found=found)
