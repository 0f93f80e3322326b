"""The facts: what has happened in a conversation. Each is stored by its effect on the tables, not by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import Closer, Conversation, Message, Reason
from deskwire.engine.core.record import changed, value
from deskwire.engine.workflows.definition import Place
from deskwire.engine.workflows.run import Ending, Run, Stop


@value
class Created:
    """A conversation was created."""

    conversation: Conversation


@value
class Revealed:
    """A hidden conversation became visible to the customer."""


@value
class MessagePosted:
    """A message or a note was added."""

    message: Message


@value
class MessageRewritten:
    """A part of a message or note was taken out, or all of it was deleted.

    Args:
        before: the message as it was.
        message: the message as it is now.
    """

    before: Message
    message: Message


@value
class WorkflowStep:
    """The step of a workflow that did something: the ids of its flow and action.

    `version` is the storage key of the version that ran; once it is stored, it is the version's number, or None if that was removed.
    """

    workflow_id: str
    version: int | None
    flow_id: str
    action_id: int


@value
class Closed:
    """The conversation was closed."""

    by: Closer
    at: int
    step: WorkflowStep | None = field(default=None, compare=False)


@value
class Reopened:
    """The conversation was reopened."""


@value
class Assigned:
    """The assignee changed."""

    assignee: Assignee | None
    step: WorkflowStep | None = field(default=None, compare=False)


@value
class Updated:
    """Fields changed: names of `Conversation` with their new values."""

    changes: Mapping[str, Any]
    step: WorkflowStep | None = field(default=None, compare=False)


@value
class Filed:
    """Fields that consumers do not see changed, as `Updated` tells of the others: tags, or until when it is snoozed."""

    changes: Mapping[str, Any]


@value
class NetworkLogsReplaced:
    """The network log snapshot was replaced."""

    snapshot: bytes
    at: int


@value
class Moved:
    """The conversation is another contact's; both by their storage keys."""

    source: int
    target: int


@value
class Deleted:
    """The conversation is gone."""

    reason: Reason


@value
class WorkflowWaits:
    """A workflow has come to rest: a step is pending, or it waits for a time."""

    run: Run


@value
class WorkflowCompleted:
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
    | Filed
    | NetworkLogsReplaced
    | WorkflowWaits
    | WorkflowCompleted
    | Moved
    | Deleted
)


def by_step(fact: Fact, step: WorkflowStep) -> Fact:
    """Return the fact with the step that made it; one that says nothing of steps as it is."""
    return changed(fact, step=step) if isinstance(fact, Closed | Assigned | Updated) else fact


def step_of(fact: Fact) -> WorkflowStep | None:
    """Return the step of a workflow that made the fact; None if it was none."""
    return fact.step if isinstance(fact, Closed | Assigned | Updated) else None
