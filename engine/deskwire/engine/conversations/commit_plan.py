"""The data of a commit: a command on its way into the store, the plan of its changes, and the receipt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.activity import ActivityEntry, Milestone
from deskwire.engine.conversations.commands import Command, ContactRef, PostMessage, WorkflowCommand
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.decide import Transition
from deskwire.engine.conversations.events import conversation_view
from deskwire.engine.conversations.facts import Fact
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.uploads.links import Links


class Receipt(Struct, frozen=True):
    """The outcome of a committed command: the new state, and the objects that the API answers with.

    Args:
        state: None after a deletion.
        after: the last state, which a deleted conversation has, too.
        contact: the customer whose conversation it is.
        facts: in order; authors have their names.
        message: the message object of the first message that was posted, redacted or deleted.
        replayed: whether the message was stored earlier under its client id, so that nothing was changed.
        before: the stored state that was changed; None for a new conversation, and if nothing was changed.
    """

    state: Conversation | None
    after: Conversation
    contact: Contact
    project: Project
    facts: tuple[Fact, ...] = ()
    message: Mapping[str, Any] | None = None
    replayed: bool = False
    before: Conversation | None = None

    @property
    def conversation(self) -> Mapping[str, Any]:
        """The conversation object."""
        return conversation_view(self.after, self.contact, self.project.id)


class CommitFollower(Protocol):
    """Keeps a ticket up to date with its conversation, in the conversation's commits."""

    def after(self, tx: Any, receipt: Receipt, /) -> None:
        """Update the ticket. Called at the end of each commit of a conversation that has one."""


class CommitPlan(Struct, frozen=True):
    """The changes that one command makes.

    Args:
        before: the state that must be stored, None for a new conversation.
        steps: the facts, each with the states before and after it; empty if nothing changes.
        at: the time of the changes, in milliseconds.
        contact: the customer of a new conversation.
        links: makes the URLs of attachments; None if no files are served.
        wrapper: does more work in the transaction, before and after.
        ticket_follower: updates the linked ticket in the transaction.
        long: whether the number of rows written grows with the conversation.
        entries: for each step its entry in the conversation's activity; empty if no step has one.
        milestones: written for reports.
        by: the actor who gave the command, if that is recorded.
        single: whether the plan is one message that the customer sees, and nothing else.
        found: the message that the command is about, before the command.
        post: the command, if it posts a message; no stored message may have its client id.
    """

    project: Project
    before: Conversation | None
    steps: Sequence[Transition]
    at: int
    contact: ContactRef | None = None
    links: Links | None = None
    wrapper: CommitHook[Receipt] | None = None
    ticket_follower: CommitFollower | None = None
    long: bool = False
    entries: Sequence[ActivityEntry | None] = ()
    milestones: Sequence[Milestone] = ()
    by: Actor | None = None
    single: bool = False
    found: Message | None = None
    post: PostMessage | None = None


class CommandRequest(Struct, frozen=True):
    """A command on its way into the store.

    Args:
        wrapper: does more work in the transaction.
        finished: called with the outcome after the commit; must not raise.
        by: the actor who gave the command; None if that is not recorded.
    """

    command: Command | WorkflowCommand
    wrapper: CommitHook[Receipt] | None
    finished: Callable[[Receipt | Exception], None]
    by: Actor | None = None
