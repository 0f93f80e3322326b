"""The inbox: conversations as one agent finds them, each with the event that it is as new as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from deskwire.engine.accounts.people import Project, User
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.agent_view import NOTHING_BESIDE, mine_view
from deskwire.engine.conversations.conversation import UNCLOSED, Conversation
from deskwire.engine.conversations.emit import agent_view
from deskwire.engine.conversations.listing import NEWEST_FIRST, ConversationFilter, Sort
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.values import replace
from deskwire.engine.events.log import NO_EVENT_ID
from deskwire.engine.events.ports import EventReader


class InboxReader(ConversationReader, EventReader, ContactReader, TeamReader, Protocol):
    """Queries on what an inbox shows."""


def inbox_views(
    reader: InboxReader, project: Project, user: User, found: Sequence[tuple[Conversation, Contact]]
) -> list[dict[str, Any]]:
    """Return the agent's conversation objects of what was found in the same read.

    An event changes such an object only if its id is larger than `asOf`.
    """
    keys = [state.rowid for state, _ in found]
    beside, seen = reader.beside(keys), reader.seen(user.rowid, keys)
    as_of = reader.newest_event_id(project.rowid) or NO_EVENT_ID
    views = []
    for state, contact in found:
        more = beside.get(state.rowid, NOTHING_BESIDE)
        known = replace(state, run=more.run)
        view = agent_view(known, contact, project.id, more.last_message, more.workflow)
        views.append({**view, "asOf": as_of, "mine": mine_view(state, seen.get(state.rowid))})
    return views


BOUND: Final = 1_000
"""The number up to which conversations are counted."""


def counters(reader: InboxReader, project: Project, user: User) -> dict[str, Any]:
    """Return how many conversations the lists of a user's inbox have, each counted up to BOUND."""

    def count(sort: Sort = NEWEST_FIRST, **wanted: Any) -> int:
        asked = ConversationFilter(**{"archived": False, "snoozed": False, **wanted})
        return reader.count_conversations(project.rowid, asked, sort, BOUND)

    mine: dict[str, Any] = {"assignees": (user.id,), "statuses": UNCLOSED}
    teams = reader.teams_of(project.rowid, user.rowid)
    return {
        "mine": count(**mine),
        "mineWaiting": count(Sort("waiting"), **mine),
        "unread": count(**mine, unread=True, user=user.rowid),
        "unassigned": count(assignees=(None,), statuses=UNCLOSED),
        "waiting": count(Sort("waiting")),
        "open": count(statuses=("OPEN",)),
        "pending": count(statuses=("PENDING",)),
        "snoozed": count(snoozed=True),
        "teams": {team: count(assignees=(team,), statuses=UNCLOSED) for team in teams},
        "bound": BOUND,
        "asOf": reader.newest_event_id(project.rowid) or NO_EVENT_ID,
    }
