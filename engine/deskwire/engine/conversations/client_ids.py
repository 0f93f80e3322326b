"""Ids that a contact's client gives to its messages and conversations, so that a repeated request changes nothing.

The id of a message is unique in its conversation for as long as the conversation lives: also after the message was redacted
or deleted, and after the conversation moved to another contact. The id of a conversation is unique for its contact.
"""

from __future__ import annotations

from typing import Final

from deskwire.engine.conversations.commands import PostMessage
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.errors import AnswerErased, Conflict, IdempotencyMismatch, StaleState

CLIENT_ID_PATTERN: Final = "^[0-9A-Za-z._~-]{1,64}$"
"""Client ids have only characters that stand in a path as they are (RFC 3986, 2.3)."""


class MessageAlreadyStored(StaleState):
    """A commit found the message that it was about to store. The command is decided again, with that message."""


class ConversationAlreadyStored(Conflict):
    """The contact has a conversation with this client id; the caller answers with it."""

    code = "conversation_exists"

    def __init__(self, conversation_id: str) -> None:
        super().__init__("The contact has a conversation with this client id.")
        self.conversation_id = conversation_id


def require_same_message(command: PostMessage, found: Message) -> None:
    """Check that a repeated message has the content that was stored under its client id.

    The content of a redacted message can't be compared, so the stored message is the answer.

    Raises IdempotencyMismatch for another content, and AnswerErased if the message was deleted.
    """
    if found.deleted:
        raise AnswerErased("The message with this clientId was stored, and has been deleted since.")
    if found.redacted_at is not None:
        return
    attachments = [each.id for each in command.attachments]
    if command.text != found.text or attachments != [each.id for each in found.attachments]:
        raise IdempotencyMismatch("This clientId was used before, for another message.")


def stored_message(
    reader: ConversationReader, state: Conversation, command: PostMessage
) -> tuple[Message | None, str | None]:
    """Return the message that is stored under a command's client id, and the id of the conversation that has it if that is another one.

    The client ids of the conversation through which the command came count, too: of its own messages, and of those that it
    passed on.
    """
    assert command.client_id is not None, "only a message with a client id may be stored already"
    found = reader.message_by_client_id(state.rowid, command.client_id)
    if found is not None or state.merged_at is None:
        return found, None
    passed_on = reader.message_passed_on(state.project, command.via or state.id, command.client_id)
    return (None, None) if passed_on is None else passed_on
