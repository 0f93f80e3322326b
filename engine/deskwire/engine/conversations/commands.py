"""The commands that a conversation takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import Author, Closer, Message, Reason
from deskwire.engine.uploads.upload import Attachment
from deskwire.engine.workflows.workflow import Published


class ContactRef(Struct, frozen=True):
    """The contact of a new conversation, with the identity fields that were given; with `id` one that exists.

    Args:
        may_change: whether the caller may change a contact that exists.
    """

    user_id: str
    identity: Mapping[str, str | None]
    id: str | None = None
    may_change: bool = True


class Create(Struct, frozen=True):
    """Start a conversation, hidden ones included; `message` is its first. `by_agent` says that an agent starts it."""

    conversation_id: str
    project: int
    contact: ContactRef
    title: str | None = None
    attributes: Mapping[str, Any] | None = None
    visible: bool = True
    message: PostMessage | None = None
    assignee: Assignee | None = None
    by_agent: bool = False


class PostMessage(Struct, frozen=True):
    """Add a message, or an internal note."""

    message_id: str
    author: Author
    text: str
    internal: bool = False
    attachments: tuple[Attachment, ...] = ()


class Reply(Struct, frozen=True):
    """Add an agent's message or note, and do what is to follow it in the same commit.

    Args:
        if_sequence: the sequence of the conversation that the agent has seen; it is refused if that has moved on.
        then: what follows, in this order.
    """

    message: PostMessage
    if_sequence: int | None = None
    then: tuple[Assign | Patch | Close, ...] = ()


class Close(Struct, frozen=True):
    """End the conversation for the customer."""

    by: Closer


class Reopen(Struct, frozen=True):
    """Take a closed conversation up again.

    Args:
        waiting_since: since when (ms) the contact has been waiting for an answer, if closing is taken back; closing has
            ended the wait, and the messages alone do not tell whether it was meant to.
    """

    waiting_since: int | None = None


class Assign(Struct, frozen=True):
    """Give the conversation to a user or team, or to nobody."""

    assignee: Assignee | None


class MarkRead(Struct, frozen=True):
    """The contact has seen everything."""


class Rate(Struct, frozen=True):
    """Record the contact's rating, 0 to 10 (contract 8)."""

    rating: int
    comment: str | None = None
    keeps_comment: bool = False


class Patch(Struct, frozen=True):
    """Change fields; only those named in `given` count.

    `attributes` are merged key by key, None removes a key. `visible` can only become true. `tags` and `snoozed_until` are
    for agents alone.
    """

    given: Mapping[str, Any]


class WakeSnoozed(Struct, frozen=True):
    """End the conversation's snooze if its time has come."""


class LinkTicket(Struct, frozen=True):
    """Link the conversation to a ticket, or cut that link; the ticket's side is its wrapper's affair."""

    ticket_id: str
    linked: bool


class ReplaceNetworkLogs(Struct, frozen=True):
    """Store a network log snapshot, as sent, in place of the previous one (contract 4.3)."""

    snapshot: bytes


class RedactMessage(Struct, frozen=True):
    """Take something out of a message: a part of its text or all of it, attachments.

    Args:
        internal: whether it may be a note.
        text: whether all of its text goes, or `ranges` of its characters, each with its end excluded.
        attachments: ids of the uploads that go, or all of them with `all_attachments`.
        found: the message as it is stored, which the pipeline adds.
    """

    message_id: str
    internal: bool
    text: bool = False
    ranges: tuple[tuple[int, int], ...] = ()
    attachments: tuple[str, ...] = ()
    all_attachments: bool = False
    found: Message | None = None


class DeleteMessage(Struct, frozen=True):
    """Remove a message, but for its place; `internal` and `found` are as for `RedactMessage`."""

    message_id: str
    internal: bool
    found: Message | None = None


class Move(Struct, frozen=True):
    """Give the conversation to the contact that its own one is merged into; both by their storage keys."""

    source: int
    target: int


class RetentionPeriods(Struct, frozen=True):
    """The times for which a conversation is kept, in milliseconds; `archived` is None for ever."""

    bot_only: int
    archived: int | None


class Expire(Struct, frozen=True):
    """Remove the conversation as `Delete` does if it has passed its retention, and leave it alone if not."""

    windows: RetentionPeriods


class Delete(Struct, frozen=True):
    """Remove the conversation and everything that belongs to it, for good."""

    reason: Reason


Command = (
    Create
    | PostMessage
    | Reply
    | Close
    | Reopen
    | Assign
    | MarkRead
    | Rate
    | Patch
    | WakeSnoozed
    | LinkTicket
    | ReplaceNetworkLogs
    | RedactMessage
    | DeleteMessage
    | Move
    | Expire
    | Delete
)


class StartWorkflow(Struct, frozen=True):
    """Have a workflow run in the conversation."""

    workflow: Published


class AnswerStep(Struct, frozen=True):
    """The contact answers the step that is pending, named by its action."""

    action_id: int
    value: Any


class WakeWorkflow(Struct, frozen=True):
    """Go on with a workflow whose wait is over."""


WorkflowCommand = StartWorkflow | AnswerStep | WakeWorkflow
"""What is for the workflow of a conversation; `decide_with_workflow` decides it."""
