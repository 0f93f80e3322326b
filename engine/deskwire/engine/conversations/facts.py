"""The facts: what has happened in a conversation. Each is stored by its effect on the tables, not by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import Struct

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import Closer, Conversation, Message, Reason
from deskwire.engine.workflows.definition import Place
from deskwire.engine.workflows.run import Ending, Run, Stop


class Created(Struct, frozen=True):
    """A conversation was created."""

    conversation: Conversation


class Revealed(Struct, frozen=True):
    """A hidden conversation became visible to the customer."""


class MessagePosted(Struct, frozen=True):
    """A message or a note was added."""

    message: Message


class MessageRewritten(Struct, frozen=True):
    """A part of a message or note was taken out, or all of it was deleted.

    Args:
        before: the message as it was.
        message: the message as it is now.
    """

    before: Message
    message: Message


class WorkflowStep(Struct, frozen=True):
    """The step of a workflow that did something: the ids of its flow and action.

    `version` is the storage key of the version that ran; once it is stored, it is the version's number, or None if that was removed.
    """

    workflow_id: str
    version: int | None
    flow_id: str
    action_id: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The conversation was closed."""

    by: Closer
    at: int
    step: WorkflowStep | None = field(default=None, compare=False)


class Reopened(Struct, frozen=True):
    """The conversation was reopened; its contact waits for an answer again since `waiting_since`, if that is not None."""

    waiting_since: int | None = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """The assignee changed."""

    assignee: Assignee | None
    step: WorkflowStep | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Updated:
    """Fields changed: names of `Conversation` with their new values."""

    changes: Mapping[str, Any]
    step: WorkflowStep | None = field(default=None, compare=False)


class AgentFieldsUpdated(Struct, frozen=True):
    """Fields that consumers do not see changed, as `Updated` tells of the others: tags, or until when it is snoozed."""

    changes: Mapping[str, Any]


class NetworkLogsReplaced(Struct, frozen=True):
    """The network log snapshot was replaced."""

    snapshot: bytes
    at: int


class Moved(Struct, frozen=True):
    """The conversation is another contact's; both by their storage keys."""

    source: int
    target: int


class Deleted(Struct, frozen=True):
    """The conversation is gone."""

    reason: Reason


class WorkflowWaits(Struct, frozen=True):
    """A workflow has come to rest: a step is pending, or it waits for a time."""

    run: Run


class WorkflowCompleted(Struct, frozen=True):
    """The workflow has ended; `stopped` says why if it could not go on.

    `version` is the storage key of the version that ran, and `place` the action at which it ended, None behind the last one.
    """

    workflow_id: str
    reason: Ending
    stopped: Stop | None = None
    version: int | None = None
    place: Place | None = None


Fact = (
    Created
    | Revealed
    | MessagePosted
    | MessageRewritten
    | Closed
    | Reopened
    | Assigned
    | Updated
    | AgentFieldsUpdated
    | NetworkLogsReplaced
    | WorkflowWaits
    | WorkflowCompleted
    | Moved
    | Deleted
)


def by_step(fact: Fact, step: WorkflowStep) -> Fact:
    """Return the fact with the step that made it; one that says nothing of steps as it is."""
    return replace(fact, step=step) if isinstance(fact, Closed | Assigned | Updated) else fact


def step_of(fact: Fact) -> WorkflowStep | None:
    """Return the step of a workflow that made the fact; None if it was none."""
    return fact.step if isinstance(fact, Closed | Assigned | Updated) else None
