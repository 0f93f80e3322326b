"""The activity of a conversation, and its milestones.

The activity lists the actor of each change that agents may ask about. The change's own commit writes the entry. The effects of a
message have no entry, because the message names its author: reopening the conversation, ending its snooze. Attributes, ratings
and the contact's reading have none either; they come from outside and are in the events.

Reports count milestones: an agent's first answer, closings, reopenings and the rating. The commit of the fact writes each
with the agent and the team of the conversation at that time: the assigned agent, else the agent who wrote last, and the team
that the conversation was last assigned to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Assigned,
    Closed,
    Created,
    Fact,
    MessagePosted,
    MessageRewritten,
    Reopened,
    Revealed,
    Updated,
    WorkflowStep,
    step_of,
)
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.events.project_events import actor_view

Action = Literal[
    "started", "assigned", "closed", "reopened", "shown", "changed", "message_redacted", "message_deleted"
]

ACTIONS: Final[Mapping[type[Fact], Action]] = {
    Created: "started",
    Assigned: "assigned",
    Closed: "closed",
    Reopened: "reopened",
    Revealed: "shown",
    Updated: "changed",
    AgentFieldsUpdated: "changed",
    MessageRewritten: "message_redacted",
}
"""The facts that have entries."""

_NAMES: Final[Mapping[str, str]] = {
    "title": "title",
    "status": "status",
    "archived": "archived",
    "assignee": "assignee",
    "tags": "tags",
    "snoozed_until": "snoozedUntil",
    "no_answer_needed_since": "noAnswerNeededSince",
    "visible": "visible",
    "ticket_id": "ticketId",
    "merged_into": "mergedInto",
    "merged": "merged",
    "split_from": "splitFrom",
    "split_into": "splitInto",
}
"""The fields that entries show, with their names in the API."""


class FieldChange(Struct, frozen=True):
    """A changed field by its name in the API, with its values there.

    For a redacted message both values are its id; for a deleted one `after` is None.
    """

    field: str
    before: Any
    after: Any


class ActivityEntry(Struct, frozen=True):
    """The changes of one fact, and their actor. A new conversation has no changes, but the one it was split off from.

    `step` is the workflow step that made the changes; None for other actors, and in entries stored before steps were recorded.
    """

    by: Actor
    action: Action
    changes: tuple[FieldChange, ...]
    step: WorkflowStep | None = None


class ConversationActivity(Struct, frozen=True):
    """A stored entry. `rowid` grows with time.

    Args:
        at: milliseconds.
        event_id: the id of its event, if any.
    """

    id: str
    at: int
    entry: ActivityEntry
    event_id: str | None
    rowid: int = 0


def entry_of(
    before: Conversation | None, fact: Fact, after: Conversation, by: Actor | None
) -> ActivityEntry | None:
    """Return the entry of a fact; None without an actor, and for facts without entries."""
    action = ACTIONS.get(type(fact))
    if action is None or by is None:
        return None
    if isinstance(fact, MessageRewritten):
        return _of_message(fact, by)
    if before is None:
        origin = () if after.split_from is None else (FieldChange("splitFrom", None, after.split_from),)
        return ActivityEntry(by, action, origin) if origin or by.type == "user" else None
    changes = changes_between(before, after)
    return ActivityEntry(by, action, changes, step_of(fact)) if changes else None


def _of_message(fact: MessageRewritten, by: Actor) -> ActivityEntry:
    identifier = fact.message.id
    if fact.message.deleted:
        return ActivityEntry(by, "message_deleted", (FieldChange("message", identifier, None),))
    return ActivityEntry(by, "message_redacted", (FieldChange("message", identifier, identifier),))


def changes_between(before: Conversation, after: Conversation) -> tuple[FieldChange, ...]:
    """Return the fields that differ, in the order of `_NAMES`."""
    return tuple(
        FieldChange(public, _shown(name, getattr(before, name)), _shown(name, getattr(after, name)))
        for name, public in _NAMES.items()
        if getattr(before, name) != getattr(after, name)
    )


def _shown(name: str, stored: Any) -> Any:
    if name in {"snoozed_until", "no_answer_needed_since"}:
        return iso_or_none(stored)
    if name == "assignee":
        return stored and {"type": stored.type, "id": stored.id, "name": stored.name}
    return list(stored) if isinstance(stored, tuple) else stored


def activity_view(activity: ConversationActivity) -> dict[str, Any]:
    """Return the entry's object in the API."""
    entry = activity.entry
    shown = {
        "id": activity.id,
        "at": iso(activity.at),
        "actor": actor_view(entry.by),
        "action": entry.action,
        "changes": changes_view(entry.changes),
        "eventId": activity.event_id,
    }
    return shown if entry.step is None else {**shown, "step": _step_view(entry.step)}


def _step_view(step: WorkflowStep) -> dict[str, Any]:
    return {
        "workflowId": step.workflow_id,
        "version": step.version,
        "actionFlowId": step.flow_id,
        "actionId": step.action_id,
    }


def changes_view(changes: Sequence[FieldChange]) -> list[dict[str, Any]]:
    """Return the objects of changes in the API."""
    return [{"field": each.field, "from": each.before, "to": each.after} for each in changes]


MilestoneKind = Literal["answered", "closed", "reopened", "rated"]


class Milestone(Struct, frozen=True):
    """A milestone at a time (ms).

    Args:
        since: the time of the contact's question, for an answer; the time of the opening, for a closing.
        score: the rating; None if it was withdrawn.
        agent_id: the agent who answered, or the conversation's agent; None without one, and for an agent without an id.
        team_id: the conversation's team.
    """

    kind: MilestoneKind
    at: int
    since: int | None = None
    score: int | None = None
    agent_id: str | None = None
    team_id: str | None = None


def milestones_of(
    before: Conversation | None, fact: Fact, after: Conversation, at: int
) -> Iterator[Milestone]:
    """Yield the milestone of a fact, if it has one.

    Args:
        before, after: the states before and after the fact.
        at: the time of the fact, in milliseconds.
    """
    match fact:
        case MessagePosted(message):
            if after.answered_at is not None and (before is None or before.answered_at is None):
                yield answered_milestone(after, message.author.id, message.created_at)
        case Closed(_, closed_at):
            yield closed_milestone(after, closed_at)
        case Reopened():
            yield _of("reopened", after, at)
        case Updated(changes) if "rating" in changes:
            yield rated_milestone(after, at)
        case _:
            pass


def answered_milestone(state: Conversation, agent_id: str | None, at: int) -> Milestone:
    """Return the milestone of this agent's first answer."""
    return Milestone("answered", at, state.asked_at, None, agent_id, state.team_id)


def closed_milestone(state: Conversation, at: int) -> Milestone:
    """Return the milestone of a closing."""
    return _of("closed", state, at, since=state.created_at if state.opened_at is None else state.opened_at)


def rated_milestone(state: Conversation, at: int) -> Milestone:
    """Return the milestone of the conversation's present rating."""
    return _of("rated", state, at, score=state.rating)


def _of(
    kind: MilestoneKind, state: Conversation, at: int, since: int | None = None, score: int | None = None
) -> Milestone:
    assignee = state.assignee
    if assignee is not None and assignee.type == "user":
        return Milestone(kind, at, since, score, assignee.id, state.team_id)
    return Milestone(kind, at, since, score, state.replier_id, state.team_id)
