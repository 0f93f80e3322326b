"""The milestones of a conversation, which reports count: an agent's first answer, closings, reopenings and the rating.

Each is written in the commit of the fact that it tells, with the agent and the team who had the conversation then: the agent
that it was assigned to, else the one who had written last; the team that it was last assigned to. An ordinary message is
no milestone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from deskwire.engine.conversations.conversation import Author, Conversation
from deskwire.engine.conversations.facts import Closed, Fact, MessagePosted, Reopened, Updated

Kind = Literal["answered", "closed", "reopened", "rated"]


class Milestone(Struct, frozen=True):
    """A milestone at a time (ms).

    Args:
        since: when the contact asked what was answered, or since when the conversation that was closed had been open.
        score: the rating, None for one that was withdrawn.
        agent_id: the agent who answered, or who had the conversation; None for nobody, and for one without an id.
        team_id: the team who had it.
    """

    kind: Kind
    at: int
    since: int | None = None
    score: int | None = None
    agent_id: str | None = None
    team_id: str | None = None


def noted(state: Conversation, author: Author, at: int) -> dict[str, Any]:
    """Return the fields that reports need and a message of this author changes; no note. Few messages change any."""
    if author.type == "contact":
        return {"asked_at": at} if state.asked_at is None else {}
    if author.type != "agent":
        return {}
    changes: dict[str, Any] = {}
    if state.answered_at is None and state.asked_at is not None:
        changes["answered_at"] = at
    if author.id != state.replier_id:
        changes["replier_id"] = author.id
    return changes


def milestones_of(
    before: Conversation | None, fact: Fact, after: Conversation, at: int
) -> Iterator[Milestone]:
    """Yield the milestone that a fact is, if it is one.

    Args:
        before, after: the states around the fact.
        at: when it happened, in milliseconds.
    """
    match fact:
        case MessagePosted(message):
            if after.answered_at is not None and (before is None or before.answered_at is None):
                yield answered(after, message.author.id, message.created_at)
        case Closed(_, closed_at):
            yield closed(after, closed_at)
        case Reopened():
            yield _of("reopened", after, at)
        case Updated(changes) if "rating" in changes:
            yield rated(after, at)
        case _:
            pass


def answered(state: Conversation, agent_id: str | None, at: int) -> Milestone:
    """Return the milestone of the first answer, by this agent."""
    return Milestone("answered", at, state.asked_at, None, agent_id, state.team_id)


def closed(state: Conversation, at: int) -> Milestone:
    """Return the milestone of a closing."""
    return _of("closed", state, at, since=state.created_at if state.opened_at is None else state.opened_at)


def rated(state: Conversation, at: int) -> Milestone:
    """Return the milestone of the rating that the conversation has now."""
    return _of("rated", state, at, score=state.rating)


def _of(
    kind: Kind, state: Conversation, at: int, since: int | None = None, score: int | None = None
) -> Milestone:
    assignee = state.assignee
    if assignee is not None and assignee.type == "user":
        return Milestone(kind, at, since, score, assignee.id, state.team_id)
    return Milestone(kind, at, since, score, state.replier_id, state.team_id)
