"""The activity of a conversation, which says who did what: an entry for each change that agents may ask about, made with the change itself.

What a message brings about by itself has none, as the message names its author: that it reopens the conversation, or
wakes it. Nor have attributes, ratings and what the contact has read, which come from outside and are in the events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.facts import (
    Assigned,
    Closed,
    Created,
    Fact,
    Filed,
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
    Filed: "changed",
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


class Change(Struct, frozen=True):
    """A field that changed, by its name on the wire, and its values there.

    Of a message that was redacted both are its id; of one that was deleted the second is None.
    """

    field: str
    before: Any
    after: Any


class Entry(Struct, frozen=True):
    """The changes of one fact, and who made them; no changes of a conversation that was started.

    `step` is the step of the workflow that made them; None of who is none, and of entries from before steps were noted.
    """

    by: Actor
    action: Action
    changes: tuple[Change, ...]
    step: WorkflowStep | None = None


class Activity(Struct, frozen=True):
    """An entry as it is stored: `at` in milliseconds, `event_id` that of its event if consumers see one.

    `rowid` grows with time.
    """

    id: str
    at: int
    entry: Entry
    event_id: str | None
    rowid: int = 0


def entry_of(before: Conversation | None, fact: Fact, after: Conversation, by: Actor | None) -> Entry | None:
    """Return the entry of a fact; None if nobody did it, or it is nothing that entries tell."""
    action = ACTIONS.get(type(fact))
    if action is None or by is None:
        return None
    if isinstance(fact, MessageRewritten):
        return _of_message(fact, by)
    if before is None:
        return Entry(by, action, ()) if by.type == "user" else None
    changes = changes_between(before, after)
    return Entry(by, action, changes, step_of(fact)) if changes else None


def _of_message(fact: MessageRewritten, by: Actor) -> Entry:
    identifier = fact.message.id
    if fact.message.deleted:
        return Entry(by, "message_deleted", (Change("message", identifier, None),))
    return Entry(by, "message_redacted", (Change("message", identifier, identifier),))


def changes_between(before: Conversation, after: Conversation) -> tuple[Change, ...]:
    """Return the fields that differ, in the order of `_NAMES`."""
    return tuple(
        Change(public, _shown(name, getattr(before, name)), _shown(name, getattr(after, name)))
        for name, public in _NAMES.items()
        if getattr(before, name) != getattr(after, name)
    )


def _shown(name: str, stored: Any) -> Any:
    if name == "snoozed_until":
        return iso_or_none(stored)
    if name == "assignee":
        return stored and {"type": stored.type, "id": stored.id, "name": stored.name}
    return list(stored) if isinstance(stored, tuple) else stored


def activity_view(activity: Activity) -> dict[str, Any]:
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


def changes_view(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return changes as the API shows them."""
    return [{"field": each.field, "from": each.before, "to": each.after} for each in changes]
