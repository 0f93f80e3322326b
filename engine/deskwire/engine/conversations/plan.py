"""The plan of a commit: all that a command comes to in the state that a conversation has, as a value.

Nothing is written yet. `commit.carry_out` writes a plan in a transaction, and adds what only that can know: the contact
as it is then, and which webhook endpoints there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.activity import ACTIONS, Entry, entry_of
from deskwire.engine.conversations.agents_events import is_plain
from deskwire.engine.conversations.automation.decide import decide_with_workflow, own_facts
from deskwire.engine.conversations.commands import (
    Command,
    ContactRef,
    Create,
    DeleteMessage,
    RedactMessage,
    WorkflowCommand,
)
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.decide import Step, fold
from deskwire.engine.conversations.emit import conversation_view
from deskwire.engine.conversations.facts import (
    Deleted,
    Fact,
    MessageRewritten,
    Moved,
    NetworkLogsReplaced,
    Revealed,
    WorkflowCompleted,
)
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.ids import IdGenerator
from deskwire.engine.uploads.links import Links
from deskwire.engine.workflows.workflow import Published

_TOLD: Final = frozenset(ACTIONS)
_LONG: Final = frozenset({Deleted, Revealed, NetworkLogsReplaced, MessageRewritten, Moved})
"""The facts that make a commit write what grows with the conversation, or that have to be alone."""


class Receipt(Struct, frozen=True):
    """The outcome of a command that is committed: the new state, and what the API answers with.

    Args:
        state: None after a deletion.
        after: the last state, also of what was deleted.
        contact: the customer whose conversation it is.
        facts: what has happened; authors have their names.
        message: the message object if the command posted one; what a workflow says to it comes behind. Of a command that
            redacts or deletes one it is that, with `internal`.
    """

    state: Conversation | None
    after: Conversation
    contact: Contact
    project: Project
    facts: tuple[Fact, ...] = ()
    message: Mapping[str, Any] | None = None

    @property
    def conversation(self) -> Mapping[str, Any]:
        """The conversation object."""
        return conversation_view(self.after, self.contact, self.project.id)


class Plan(Struct, frozen=True):
    """All that is to be written for one command.

    Args:
        before: the state that must be stored, None for a new conversation.
        steps: the facts, each with the state before and after it; none if nothing changes.
        at: the time of it all, in milliseconds.
        contact: the customer of a new conversation.
        links: give attachments their URLs; None for who serves no files.
        wrappers: what else is done in the transaction.
        long: whether what it writes grows with the conversation.
        entries: for each step what the conversation's activity has of it; empty if it has nothing of any.
        by: who gave the command, if that is to be noted.
        plain: whether it is one message that the customer sees, and nothing else.
        found: the message that the command is about, as it is before it.
    """

    project: Project
    before: Conversation | None
    steps: Sequence[Step]
    at: int
    contact: ContactRef | None = None
    links: Links | None = None
    wrappers: tuple[CommitHook[Receipt], ...] = ()
    long: bool = False
    entries: Sequence[Entry | None] = ()
    by: Actor | None = None
    plain: bool = False
    found: Message | None = None

    @property
    def after(self) -> Conversation | None:
        """The state that it leads to, None if nothing changes."""
        return self.steps[-1][2] if self.steps else None


def make_plan(
    project: Project,
    state: Conversation | None,
    command: Command | WorkflowCommand,
    at: int,
    workflow: Published | None,
    links: Links | None = None,
    wrappers: tuple[CommitHook[Receipt], ...] = (),
    by: Actor | None = None,
) -> Plan:
    """Decide at time `at` (ms); touch nothing. Raises as `decide_with_workflow`.

    Args:
        workflow: the one that `stock.workflow_for` finds.
        by: who gave the command, if its activity is to be noted.
    """
    facts = decide_with_workflow(state, command, at, workflow, _message_ids(at))
    contact = command.contact if isinstance(command, Create) else None
    steps = fold(state, facts, at)
    if is_plain(facts, state):
        return Plan(project, state, steps, at, contact, links, wrappers, plain=True)
    kinds = {*map(type, facts)}
    long = not _LONG.isdisjoint(kinds)
    entries = () if _TOLD.isdisjoint(kinds) else _entries(state, command, at, steps, by)
    found = command.found if isinstance(command, RedactMessage | DeleteMessage) else None
    return Plan(project, state, steps, at, contact, links, wrappers, long, entries, by, found=found)


def _entries(
    state: Conversation | None,
    command: Command | WorkflowCommand,
    at: int,
    steps: Sequence[Step],
    by: Actor | None,
) -> Sequence[Entry | None]:
    """Return what the activity has of each step. What a workflow does is its own doing, whoever gave the command."""
    bot = _workflow_of(steps)
    if by is None and bot is None:
        return ()
    own = own_facts(state, command, at, [fact for _, fact, _ in steps])
    entries = [
        entry_of(before, fact, after, by if place < own else bot)
        for place, (before, fact, after) in enumerate(steps)
    ]
    return entries if any(entries) else ()


def _workflow_of(steps: Sequence[Step]) -> Actor | None:
    """Return the workflow that runs somewhere on the way, as an actor."""
    for before, fact, after in steps:
        if isinstance(fact, WorkflowCompleted):
            return Actor("bot", fact.workflow_id)
        for state in (after, before):
            if state is not None and state.run is not None:
                return Actor("bot", state.run.workflow_id)
    return None


def _message_ids(at: int) -> Iterator[str]:
    """Ids for what a workflow says, in the order in which it says it."""
    mint = IdGenerator()
    while True:
        yield mint.new("msg", at)
