"""The inbox: conversations as one agent finds them, each with the event that it is as new as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from deskwire.engine.accounts.people import Project, User
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.agent_view import NO_EVENT, NOTHING_BESIDE, agent_view, mine_view
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.events.ports import EventReader


class InboxReader(ConversationReader, EventReader, Protocol):
    """Queries on what an inbox shows."""


def inbox_views(
    reader: InboxReader, project: Project, user: User, found: Sequence[tuple[Conversation, Contact]]
) -> list[dict[str, Any]]:
    """Return the agent's conversation objects of what was found in the same read.

    An event changes such an object only if its id is larger than `asOf`.
    """
    keys = [state.rowid for state, _ in found]
    beside, seen = reader.beside(keys), reader.seen(user.rowid, keys)
    as_of = reader.newest_event_id(project.rowid) or NO_EVENT
    return [
        {
            **agent_view(state, contact, project.id, beside.get(state.rowid, NOTHING_BESIDE)),
            "asOf": as_of,
            "mine": mine_view(state, seen.get(state.rowid)),
        }
        for state, contact in found
    ]
