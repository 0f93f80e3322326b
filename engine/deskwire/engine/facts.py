"""What has happened in a conversation. Each fact is stored by its effect on the tables, not by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deskwire.engine.conversation import Assignee, Closer, Conversation, Message, Reason
from deskwire.engine.workflows.run import Ending, Run, Stop


@dataclass(frozen=True, slots=True)
class Created:
    """There is a new conversation."""

    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Revealed:
    """A hidden conversation became visible to the customer."""


@dataclass(frozen=True, slots=True)
class MessagePosted:
    """A message or a note was added."""

    message: Message


@dataclass(frozen=True, slots=True)
class Closed:
    """The conversation was closed."""

    by: Closer
    at: int


@dataclass(frozen=True, slots=True)
class Reopened:
    """The conversation was reopened."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The assignee changed."""

    assignee: Assignee | None


@dataclass(frozen=True, slots=True)
class Updated:
    """Fields changed: names of `Conversation` with their new values."""

    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NetworkLogsReplaced:
    """The network log snapshot was replaced."""

    snapshot: bytes


@dataclass(frozen=True, slots=True)
class Deleted:
    """The conversation is gone."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class WorkflowWaits:
    """A workflow has come to rest: a step is pending, or it waits for a time."""

    run: Run


@dataclass(frozen=True, slots=True)
class WorkflowCompleted:
    """The workflow has ended; `stopped` says why if it could not go on."""

    workflow_id: str
    reason: Ending
    stopped: Stop | None = None


Fact = (
    Created
    | Revealed
    | MessagePosted
    | Closed
    | Reopened
    | Assigned
    | Updated
    | NetworkLogsReplaced
    | WorkflowWaits
    | WorkflowCompleted
    | Deleted
)
