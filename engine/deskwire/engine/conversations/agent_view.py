"""The parts of the agent's view of conversations that are not in the conversations' own rows."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.emit import dashboard_message_view
from deskwire.engine.core.clock import iso_or_none
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.engine.workflows.run import Run


class Beside(Struct, frozen=True):
    """The parts of the view that are not in the conversation's own row.

    Args:
        last_message: the newest message or note, with the beginning of its text alone.
        run: the workflow that runs; `workflow` is its name, None once it is deleted.
    """

    last_message: Message | None = None
    run: Run | None = None
    workflow: str | None = None


class Seen(Struct, frozen=True):
    """The messages that an agent has seen: up to `index`, -1 for none; `contact_messages` of them are the contact's."""

    index: int
    contact_messages: int


class Sequenced(Struct, frozen=True):
    """A message with its place in the thread, and the sequence of its event; None if that is not known, or it has none."""

    message: Message
    sequence: int | None
    rowid: int


NOTHING_SEEN: Final = Seen(-1, 0)
NOTHING_BESIDE: Final = Beside()


def mine_view(state: Conversation, seen: Seen | None) -> dict[str, Any]:
    """Return what the conversation is to one agent: the last index seen, and how many of the contact's messages were not."""
    seen = seen or NOTHING_SEEN
    return {
        "seenIndex": None if seen.index < 0 else seen.index,
        "unread": max(0, state.contact_messages - seen.contact_messages),
    }


def thread_view(sequenced: Sequenced, state: Conversation, show: AttachmentsView) -> dict[str, Any]:
    """Return the message object as a thread shows it: with its event's sequence, and when the contact had seen it."""
    message, newest = sequenced.message, state.contact_seen_index
    seen = newest is not None and message.index is not None and message.index <= newest
    return {
        **dashboard_message_view(message, state.id, show),
        "sequence": sequenced.sequence,
        "seenAt": iso_or_none(state.contact_seen_at) if seen else None,
    }
