"""The inbox as the API shows it: counters, an agent's place, and what is around a conversation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.http.schemas.base import Count, EventId, Moment, Shape, TeamId
from deskwire.http.schemas.content import MemoryEntry
from deskwire.http.schemas.conversations import (
    AgentConversation,
    Contact,
    ConversationActivity,
    Mine,
    RunningWorkflow,
)
from deskwire.http.schemas.tickets import Ticket

Counter = Annotated[int, Field(ge=0, le=1_000, examples=[4])]


class InboxCounters(Shape):
    """Numbers of conversations, each counted up to `bound`: that value means "so many or more".

    Archived and snoozed conversations are not counted, but for `snoozed`. `mine` are those that are assigned to you, open or
    pending; `mineWaiting` of them those whose contact waits for an answer, and `unread` those with messages of the contact
    that you have not seen. `unassigned` and `teams`, which has your teams, are open or pending ones as well.
    """

    mine: Counter
    mine_waiting: Counter
    unread: Counter
    unassigned: Counter
    waiting: Counter
    open: Counter
    pending: Counter
    snoozed: Counter
    teams: Annotated[dict[TeamId, Counter], Field(examples=[{"team_01KZ0000000000000000TEAM01": 31}])]
    bound: Literal[1_000]
    as_of: Annotated[EventId, Field(description="The project's newest event at the time of this read.")]


class SeenAnswer(Shape):
    """Your place in the conversation as it is now."""

    mine: Mine


class AllSeen(Shape):
    """The time up to which you have seen everything of the project, and the one that it was before; null for none."""

    until: Moment | None
    before: Moment | None


class LoggedRequests(Shape):
    """The network logs of a conversation: when they came, and how many requests they have."""

    at: Moment
    requests: Count


class ConversationContext(Shape):
    """The surroundings of a conversation, all of them at the moment of `asOf`. A part that your role may not read is null.

    `conversations` are other ones of the contact, newest activity first, `tickets` the contact's newest, five each. `memory`
    has the 20 newest entries, and is null, too, if the project has switched it off. `activity` has the 20 newest entries.
    """

    contact: Contact | None
    conversations: list[AgentConversation]
    tickets: list[Ticket] | None
    memory: list[MemoryEntry] | None
    network_logs: LoggedRequests | None
    workflow: RunningWorkflow | None
    activity: list[ConversationActivity]
    as_of: Annotated[EventId, Field(description="The project's newest event at the time of this read.")]
