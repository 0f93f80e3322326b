"""The inbox: the objects that the agents' API shows of conversations and threads, and the inbox's counters."""

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
from deskwire.engine.conversations.mentions import NO_MENTIONS, OwnMentions
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.clock import iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.events.log import NO_EVENT_ID
from deskwire.engine.events.ports import EventReader
from deskwire.engine.uploads.links import AttachmentsView


class InboxReader(ConversationReader, EventReader, ContactReader, TeamReader, Protocol):
    """Queries of the inbox."""


def mine_view(
    state: Conversation, seen: SeenMessages | None, mentions: OwnMentions = NO_MENTIONS
) -> dict[str, Any]:
    """Return the agent's own part of the view: the last index seen, the contact's unread messages, and the agent's mentions."""
    seen = seen or NOTHING_SEEN
    return {
        "seenIndex": None if seen.index < 0 else seen.index,
        "unread": max(0, state.contact_messages - seen.contact_messages),
        "mentioned": mentions.all > 0,
        "unseenMentions": mentions.unseen,
    }


def own_state(reader: ConversationReader, project: Project, user: int, state: Conversation) -> dict[str, Any]:
    """Return the agent's own part of the view of a conversation in its stored form. `user` is a storage key."""
    key = state.rowid
    seen = reader.seen(user, [key]).get(key)
    return mine_view(state, seen, reader.own_mentions(user, project.rowid, [key]).get(key, NO_MENTIONS))


def thread_view(sequenced: ThreadMessage, state: Conversation, show: AttachmentsView) -> dict[str, Any]:
    """Return the message object of a thread: with its event's sequence and the time at which the contact saw it."""
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
    """Return the agent's conversation objects for rows of the same read.

    An event changes such an object only if its id is larger than `asOf`.
    """
    keys = [state.rowid for state, _ in found]
    beside, seen = reader.agent_details(keys), reader.seen(user.rowid, keys)
    mentions = reader.own_mentions(user.rowid, project.rowid, keys)
    as_of = reader.newest_event_id(project.rowid) or NO_EVENT_ID
    views = []
    for state, contact in found:
        more = beside.get(state.rowid, NO_AGENT_DETAILS)
        known = replace(state, run=more.run)
        view = agent_view(known, contact, project.id, more.last_message, more.workflow, more.followers)
        mine = mine_view(state, seen.get(state.rowid), mentions.get(state.rowid, NO_MENTIONS))
        views.append({**view, "asOf": as_of, "mine": mine})
    return views


COUNT_MAX: Final = 1_000
"""The bound of each counter."""


def counters(reader: InboxReader, project: Project, user: User) -> dict[str, Any]:
    """Return the number of conversations in each list of a user's inbox, counted up to COUNT_MAX."""

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
        "mentions": reader.unseen_mentions(user.rowid, project.rowid, COUNT_MAX),
        "following": count(following=True, statuses=UNCLOSED, user=user.rowid),
        "teams": {team: count(assignees=(team,), statuses=UNCLOSED) for team in teams},
        "bound": COUNT_MAX,
        "asOf": reader.newest_event_id(project.rowid) or NO_EVENT_ID,
    }
