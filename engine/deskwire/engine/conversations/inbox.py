"""The inbox: conversations as one agent finds them, each with the event that it is as new as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from deskwire.engine.accounts.people import Project, User
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.conversation import UNCLOSED, Conversation
from deskwire.engine.conversations.events import agent_view, dashboard_message_view
from deskwire.engine.conversations.listing import (
    NEWEST_FIRST,
    NO_AGENT_DETAILS,
    NOTHING_SEEN,
    ConversationFilter,
    ConversationSort,
    SeenMessages,
    ThreadMessage,
)
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.clock import iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.events.as_of import NO_EVENT
from deskwire.engine.events.ports import EventReader
from deskwire.engine.uploads.links import Shown


class InboxReader(ConversationReader, EventReader, ContactReader, TeamReader, Protocol):
    """Queries on what an inbox shows."""


def mine_view(state: Conversation, seen: SeenMessages | None) -> dict[str, Any]:
    """Return what the conversation is to one agent: the last index seen, and how many of the contact's messages were not."""
    seen = seen or NOTHING_SEEN
    return {
        "seenIndex": None if seen.index < 0 else seen.index,
        "unread": max(0, state.contact_messages - seen.contact_messages),
    }


def thread_view(sequenced: ThreadMessage, state: Conversation, show: Shown) -> dict[str, Any]:
    """Return the message object as a thread shows it: with its event's sequence, and when the contact had seen it."""
    message, newest = sequenced.message, state.contact_seen_index
    seen = newest is not None and message.index is not None and message.index <= newest
    return {
        **dashboard_message_view(message, state.id, show),
        "sequence": sequenced.sequence,
        "seenAt": iso_or_none(state.contact_seen_at) if seen else None,
    }


def inbox_views(
    reader: InboxReader, project: Project, user: User, found: Sequence[tuple[Conversation, Contact]]
) -> list[dict[str, Any]]:
    """Return the agent's conversation objects of what was found in the same read.

    An event changes such an object only if its id is larger than `asOf`.
    """
    keys = [state.rowid for state, _ in found]
    beside, seen = reader.agent_details(keys), reader.seen(user.rowid, keys)
    as_of = reader.newest_event_id(project.rowid) or NO_EVENT
    views = []
    for state, contact in found:
        more = beside.get(state.rowid, NO_AGENT_DETAILS)
        known = replace(state, run=more.run)
        view = agent_view(known, contact, project.id, more.last_message, more.workflow)
        views.append({**view, "asOf": as_of, "mine": mine_view(state, seen.get(state.rowid))})
    return views


COUNT_MAX: Final = 1_000
"""The number up to which conversations are counted."""


def counters(reader: InboxReader, project: Project, user: User) -> dict[str, Any]:
    """Return how many conversations the lists of a user's inbox have, each counted up to BOUND."""

    def count(sort: ConversationSort = NEWEST_FIRST, **wanted: Any) -> int:
        asked = ConversationFilter(**{"archived": False, "snoozed": False, **wanted})
        return reader.count_conversations(project.rowid, asked, sort, COUNT_MAX)

    mine: dict[str, Any] = {"assignees": (user.id,), "statuses": UNCLOSED}
    teams = reader.teams_of(project.rowid, user.rowid)
    return {
        "mine": count(**mine),
        "mineWaiting": count(ConversationSort("waiting"), **mine),
        "unread": count(**mine, unread=True, user=user.rowid),
        "unassigned": count(assignees=(None,), statuses=UNCLOSED),
        "waiting": count(ConversationSort("waiting")),
        "open": count(statuses=("OPEN",)),
        "pending": count(statuses=("PENDING",)),
        "snoozed": count(snoozed=True),
        "teams": {team: count(assignees=(team,), statuses=UNCLOSED) for team in teams},
        "bound": COUNT_MAX,
        "asOf": reader.newest_event_id(project.rowid) or NO_EVENT,
    }
