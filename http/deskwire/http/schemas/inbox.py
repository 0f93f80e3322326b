"""The inbox: counters, read positions, and the context of a conversation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.http.schemas.base import Count, EventId, Moment, Shape, TeamId, UserId
from deskwire.http.schemas.content import MemoryEntry
from deskwire.http.schemas.conversations import (
    AgentConversation,
    Contact,
    ConversationActivity,
    NoAnswerNeededSince,
    OwnConversationState,
    RunningWorkflow,
)
from deskwire.http.schemas.tickets import Ticket

Counter = Annotated[int, Field(ge=0, le=1_000, examples=[4])]


class InboxCounters(Shape):
    """Numbers of conversations, each counted up to `bound`, which means "this many or more".

    Archived and snoozed conversations are not counted, except in `snoozed`. `mine` are open or pending and assigned to you;
    `mineWaiting` are those of them whose contact waits for an answer, and `unread` those with messages of the contact
    that you have not seen. `unassigned`, `following` (those that you follow) and `teams`, for each of your teams, also count open
    or pending ones. `mentions` counts the notes that mention you and that you have not seen, of all conversations.
    """

    mine: Counter
    mine_waiting: Counter
    unread: Counter
    unassigned: Counter
    waiting: Counter
    open: Counter
    pending: Counter
    snoozed: Counter
    mentions: Counter
    following: Counter
    teams: Annotated[dict[TeamId, Counter], Field(examples=[{"team_01KZ0000000000000000TEAM01": 31}])]
    bound: Literal[1_000]
    as_of: Annotated[EventId, Field(description="The project's newest event at the time of this read.")]


class Followers(Shape):
    """The followers of the conversation, the longest follower first, and whether you are one."""

    following: bool
    followers: list[UserId]


class Waiting(Shape):
    """Since when the contact waits for an answer, or would wait had no agent marked that none is needed."""

    waiting_since: Moment | None
    no_answer_needed_since: NoAnswerNeededSince | None


class SeenMark(Shape):
    """Your current read position in the conversation."""

    mine: OwnConversationState


class AllSeenMarks(Shape):
    """The time up to which you have seen everything of the project, and the previous one; null for none."""

    until: Moment | None
    before: Moment | None


class LoggedRequests(Shape):
    """The network logs of a conversation: their time, and the number of requests."""

    at: Moment
    requests: Count


class ConversationContext(Shape):
    """The context of a conversation at the time of `asOf`. A part that your role may not read is null.

    `conversations` are others of the contact, newest activity first, `tickets` the contact's newest, five each. `memory`
    has the 20 newest entries, and is also null if the project has disabled it. `activity` has the 20 newest entries.
    """

    contact: Contact | None
    conversations: list[AgentConversation]
    tickets: list[Ticket] | None
    memory: list[MemoryEntry] | None
    network_logs: LoggedRequests | None
    workflow: RunningWorkflow | None
    activity: list[ConversationActivity]
    as_of: Annotated[EventId, Field(description="The project's newest event at the time of this read.")]
