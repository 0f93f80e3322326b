"""activity"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

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
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.events.internal import Actor, actor_view

Doer: TypeAlias = Actor
"""Who did something: a user, a server key by its label, a workflow, or the service itself."""

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
"""The facts that an entry may be of."""

_NAMES: Final[Mapping[str, str]] = {
    "title": "title",
    "status": "status",
    "archived": "archived",
    "assignee": "assignee",
    "tags": "tags",
    "snoozed_until": "snoozedUntil",
    "visible": "visible",
    "ticket_id": "ticketId",
}
"""The fields whose changes entries tell, with their names on the wire."""


class FieldChange(Struct, frozen=True):
    """A field that changed, by its name on the wire, and its values there.

    Of a message that was redacted both are its id; of one that was deleted the second is None.
    """

    field: str
    before: Any
    after: Any


class ActivityEntry(Struct, frozen=True):
    """The changes of one fact, and who made them; no changes of a conversation that was started.

    `step` is the step of the workflow that made them; None of who is none, and of entries from before steps were noted.
    """

    by: Doer
    action: Action
    changes: tuple[FieldChange, ...]
    step: WorkflowStep | None = None


class ConversationActivity(Struct, frozen=True):
    """An entry as it is stored: `at` in milliseconds, `event_id` that of its event if consumers see one.

    `rowid` grows with time.
    """

    id: str
    at: int
    entry: ActivityEntry
    event_id: str | None
    rowid: int = 0


def entry_of(
    before: Conversation | None, fact: Fact, after: Conversation, by: Doer | None
) -> ActivityEntry | None:
    """Return the entry of a fact; None if nobody did it, or it is nothing that entries tell."""
    action = ACTIONS.get(type(fact))
    if action is None or by is None:
        return None
    if isinstance(fact, MessageRewritten):
        return _of_message(fact, by)
    if before is None:
        return ActivityEntry(by, action, ()) if by.type == "user" else None
    changes = changes_between(before, after)
    return ActivityEntry(by, action, changes, step_of(fact)) if changes else None


def _of_message(fact: MessageRewritten, by: Doer) -> ActivityEntry:
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
    if name == "snoozed_until":
        return iso_or_none(stored)
    if name == "assignee":
        return stored and {"type": stored.type, "id": stored.id, "name": stored.name}
    return list(stored) if isinstance(stored, tuple) else stored


def activity_view(activity: ConversationActivity) -> dict[str, Any]:
    """Return an entry as the API shows it."""
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
    """Return changes as the API shows them."""
    return [{"field": each.field, "from": each.before, "to": each.after} for each in changes]


MilestoneKind = Literal["answered", "closed", "reopened", "rated"]


class Milestone(Struct, frozen=True):
    """A milestone at a time (ms).

    Args:
        since: when the contact asked what was answered, or since when the conversation that was closed had been open.
        score: the rating, None for one that was withdrawn.
        agent_id: the agent who answered, or who had the conversation; None for nobody, and for one without an id.
        team_id: the team who had it.
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
    """Yield the milestone that a fact is, if it is one.

    Args:
        before, after: the states around the fact.
        at: when it happened, in milliseconds.
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
    """Return the milestone of the first answer, by this agent."""
    return Milestone("answered", at, state.asked_at, None, agent_id, state.team_id)


def closed_milestone(state: Conversation, at: int) -> Milestone:
    """Return the milestone of a closing."""
    return _of("closed", state, at, since=state.created_at if state.opened_at is None else state.opened_at)


def rated_milestone(state: Conversation, at: int) -> Milestone:
    """Return the milestone of the rating that the conversation has now."""
    return _of("rated", state, at, score=state.rating)


def _of(
    kind: MilestoneKind, state: Conversation, at: int, since: int | None = None, score: int | None = None
) -> Milestone:
    assignee = state.assignee
    if assignee is not None and assignee.type == "user":
        return Milestone(kind, at, since, score, assignee.id, state.team_id)
    return Milestone(kind, at, since, score, state.replier_id, state.team_id)
