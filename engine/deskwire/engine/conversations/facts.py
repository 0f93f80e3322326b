"""The facts that commands cause in a conversation. A fact is stored by its effect on the tables, not as a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import Struct

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import Closer, Conversation, Message, Reason
from deskwire.engine.workflows.definition import ActionPosition
from deskwire.engine.workflows.runs import Ending, Stop, WorkflowRun


class Created(Struct, frozen=True):
    """A conversation was created; with the ids of the messages of another one that it shows, if it was split off."""

    conversation: Conversation
    split_off: tuple[str, ...] = ()


class Revealed(Struct, frozen=True):
    """A hidden conversation became visible to the customer."""


class MessagePosted(Struct, frozen=True):
    """A message or a note was added."""

    message: Message


class MessageRewritten(Struct, frozen=True):
    """A message or note was redacted or deleted.

    Args:
        before: the previous message.
        message: the present message.
    """

    before: Message
    message: Message


class WorkflowStep(Struct, frozen=True):
    """The workflow step that caused a fact: the ids of its flow and action.

    `version` is the storage key of the workflow's version. In a stored step it is the version's number, or None if the version
    was removed.
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
    """The conversation was reopened. If `waiting_since` is not None, the contact has waited for an answer since then."""

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
    """Fields that only agents see changed: tags, snoozes, and whether the contact waits. `Updated` has the others."""

    changes: Mapping[str, Any]


class MessagesReceived(Struct, frozen=True):
    """A client of the contact has received messages, or shown them.

    Args:
        reached: the index of the newest message that was received; None if that mark stays.
        seen: the index of the newest message that was shown; None if that mark stays.
    """

    at: int
    reached: int | None = None
    seen: int | None = None


class NetworkLogsReplaced(Struct, frozen=True):
    """The network log snapshot was replaced."""

    snapshot: bytes
    at: int


class FollowChanged(Struct, frozen=True):
    """A user, by storage key, follows the conversation, or no longer does. `since` is as for `Follow`."""

    user: int
    follows: bool
    since: int | None = None


class Moved(Struct, frozen=True):
    """The conversation was moved to another contact; both are storage keys."""

    source: int
    target: int


class Deleted(Struct, frozen=True):
    """The conversation was deleted."""

    reason: Reason


class WorkflowWaits(Struct, frozen=True):
    """A workflow waits, for the contact's answer to a step or for a time."""

    run: WorkflowRun


class WorkflowCompleted(Struct, frozen=True):
    """The workflow has ended.

    Args:
        stopped: the reason if the workflow could not go on.
        version: the storage key of its version.
        place: the action at which it ended, None after the last one.
    """

    workflow_id: str
    reason: Ending
    stopped: Stop | None = None
    version: int | None = None
    place: ActionPosition | None = None


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
    | MessagesReceived
    | NetworkLogsReplaced
    | WorkflowWaits
    | WorkflowCompleted
    | FollowChanged
    | Moved
    | Deleted
)


def by_step(fact: Fact, step: WorkflowStep) -> Fact:
    """Return the fact with the step that caused it, if facts of this type have one."""
    return replace(fact, step=step) if isinstance(fact, Closed | Assigned | Updated) else fact


def step_of(fact: Fact) -> WorkflowStep | None:
    """Return the workflow step that caused the fact; None if no step did."""
    return fact.step if isinstance(fact, Closed | Assigned | Updated) else None


def is_written_by_contact(facts: Sequence[Fact]) -> bool:
    """Return whether facts are a message, a rating or a new conversation of the contact.

    An agent may start a conversation with a blocked contact, and a backend with a message of another author.
    """
    posted = [fact.message.author.type for fact in facts if isinstance(fact, MessagePosted)]
    return (
        "contact" in posted
        or any(isinstance(fact, Updated) and "rated_at" in fact.changes for fact in facts)
        or any(isinstance(fact, Created) and not fact.conversation.human and not posted for fact in facts)
    )
