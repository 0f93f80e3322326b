"""The agent's view: the conversation object with what only agents see of it, and the messages as a thread shows them."""

from __future__ import annotations

from typing import Any, Final

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.emit import conversation_view, dashboard_message_view
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.record import value
from deskwire.engine.uploads.links import Shown

NO_EVENT: Final = f"evt_{'0' * 26}"
"""An id that is smaller than that of any event."""

BEGINNING: Final = 160
"""Characters of the last message's text that the view shows."""


@value
class Running:
    """The workflow that runs in a conversation; `name` is None once it is deleted, `waiting` says that a step is pending."""

    id: str
    name: str | None
    waiting: bool


@value
class Beside:
    """What the view shows besides the conversation's own row.

    Args:
        last_message: the newest message or note, with the beginning of its text alone.
        network_logs_at: when (ms) the network logs were replaced last; None if there are none.
    """

    last_message: Message | None = None
    network_logs_at: int | None = None
    workflow: Running | None = None


@value
class Seen:
    """What an agent has seen of a conversation: messages up to `index`, -1 for none, `contact_messages` of the contact's."""

    index: int
    contact_messages: int


@value
class Sequenced:
    """A message with its place in the thread, and the sequence of its event; None if that is not known, or it has none."""

    message: Message
    sequence: int | None
    rowid: int


NOTHING_SEEN: Final = Seen(-1, 0)
NOTHING_BESIDE: Final = Beside()


def agent_view(state: Conversation, contact: Contact, project_id: str, beside: Beside) -> dict[str, Any]:
    """Return the agent's conversation object as events have it: without what is one agent's own, or of one moment."""
    last, workflow = beside.last_message, beside.workflow
    return {
        **conversation_view(state, contact, project_id),
        "visible": state.visible,
        "tags": [],
        "snoozedUntil": None,
        "waitingSince": None,
        "messages": state.messages,
        "lastMessage": last and _last_message(last),
        "contactSeenIndex": None,
        "contactSeenAt": None,
        "networkLogsAt": iso_or_none(beside.network_logs_at),
        "workflow": workflow and {"id": workflow.id, "name": workflow.name, "waiting": workflow.waiting},
    }


def mine_view(state: Conversation, seen: Seen | None) -> dict[str, Any]:
    """Return what the conversation is to one agent: the last index seen, and how many of the contact's messages were not."""
    seen = seen or NOTHING_SEEN
    return {
        "seenIndex": None if seen.index < 0 else seen.index,
        "unread": max(0, state.contact_messages - seen.contact_messages),
    }


def thread_view(sequenced: Sequenced, state: Conversation, show: Shown) -> dict[str, Any]:
    """Return the message object as a thread shows it: with its event's sequence, and when the contact had seen it."""
    return {
        **dashboard_message_view(sequenced.message, state.id, show),
        "sequence": sequenced.sequence,
        "seenAt": None,
    }


def _last_message(message: Message) -> dict[str, Any]:
    author = message.author
    return {
        "id": message.id,
        "author": {"type": author.type, "id": author.id, "name": author.name},
        "text": message.text[:BEGINNING],
        "internal": message.internal,
        "createdAt": iso(message.created_at),
    }
