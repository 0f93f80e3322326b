"""The commands that a conversation takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import Author, Closer, Reason
from deskwire.engine.conversations.expiry import Windows
from deskwire.engine.core.record import value
from deskwire.engine.uploads.upload import Attachment
from deskwire.engine.workflows.workflow import Published


@value
class ContactRef:
    """The contact of a new conversation, with the identity fields that were given; with `id` one that exists."""

    user_id: str
    identity: Mapping[str, str | None]
    id: str | None = None


@value
class Create:
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


@value
class PostMessage:
    """Add a message, or an internal note."""

    message_id: str
    author: Author
    text: str
    internal: bool = False
    attachments: tuple[Attachment, ...] = ()


@value
class Reply:
    """Add an agent's message or note, and do what is to follow it in the same commit.

    Args:
        if_sequence: the sequence of the conversation that the agent has seen; it is refused if that has moved on.
        then: what follows, in this order.
    """

    message: PostMessage
    if_sequence: int | None = None
    then: tuple[Assign | Patch | Close, ...] = ()


@value
class Close:
    """End the conversation for the customer."""

    by: Closer


@value
class Reopen:
    """Take a closed conversation up again."""


@value
class Assign:
    """Give the conversation to a user or team, or to nobody."""

    assignee: Assignee | None


@value
class MarkRead:
    """The contact has seen everything."""


@value
class Rate:
    """Record the contact's rating, 0 to 10 (contract 8)."""

    rating: int
    comment: str | None = None
    keeps_comment: bool = False


@value
class Patch:
    """Change fields; only those named in `given` count.

    `attributes` are merged key by key, None removes a key. `visible` can only become true. `tags` and `snoozed_until` are
    for agents alone.
    """

    given: Mapping[str, Any]


@value
class WakeSnoozed:
    """End the conversation's snooze if its time has come."""


@value
class LinkTicket:
    """Link the conversation to a ticket, or cut that link; the ticket's side is its wrapper's affair."""

    ticket_id: str
    linked: bool


@value
class ReplaceNetworkLogs:
    """Store a network log snapshot, as sent, in place of the previous one (contract 4.3)."""

    snapshot: bytes


@value
class Move:
    """Give the conversation to the contact that its own one is merged into; both by their storage keys."""

    source: int
    target: int


@value
class Expire:
    """Remove the conversation as `Delete` does if it has passed its retention, and leave it alone if not."""

    windows: Windows


@value
class Delete:
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
    | Move
    | Expire
    | Delete
)


@value
class StartWorkflow:
    """Have a workflow run in the conversation."""

    workflow: Published


@value
class AnswerStep:
    """The contact answers the step that is pending, named by its action."""

    action_id: int
    value: Any


@value
class WakeWorkflow:
    """Go on with a workflow whose wait is over."""


WorkflowCommand = StartWorkflow | AnswerStep | WakeWorkflow
"""What is for the workflow of a conversation; `decide_with_workflow` decides it."""
