"""The plan of a commit: all that a command comes to in the state that a conversation has, as a value.

Nothing is written yet. `commit.carry_out` writes a plan in a transaction, and adds what only that can know: the contact
as it is then, and which webhook endpoints there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.automation.decide import decide_with_workflow
from deskwire.engine.conversations.commands import Command, ContactRef, Create, WorkflowCommand
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.decide import Step, fold
from deskwire.engine.conversations.emit import conversation_view
from deskwire.engine.conversations.facts import Deleted, Fact, NetworkLogsReplaced, Revealed
from deskwire.engine.core.ids import Mint
from deskwire.engine.core.record import value
from deskwire.engine.core.wrapper import Wrapper
from deskwire.engine.uploads.links import Links
from deskwire.engine.workflows.workflow import Published

_LONG: Final = frozenset({Deleted, Revealed, NetworkLogsReplaced})
"""The facts that make a commit write what grows with the conversation."""


@value
class Receipt:
    """The outcome of a command that is committed: the new state, and what the API answers with.

    Args:
        state: None after a deletion.
        after: the last state, also of what was deleted.
        contact: the customer whose conversation it is.
        facts: what has happened; authors have their names.
        message: the message object if the command posted one; what a workflow says to it comes behind.
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


@value
class Plan:
    """All that is to be written for one command.

    Args:
        before: the state that must be stored, None for a new conversation.
        steps: the facts, each with the state before and after it; none if nothing changes.
        at: the time of it all, in milliseconds.
        contact: the customer of a new conversation.
        links: give attachments their URLs; None for who serves no files.
        wrappers: what else is done in the transaction.
        long: whether what it writes grows with the conversation.

    `after` is the state that it leads to, None if nothing changes.
    """

    project: Project
    before: Conversation | None
    steps: Sequence[Step]
    at: int
    contact: ContactRef | None = None
    links: Links | None = None
    wrappers: tuple[Wrapper[Receipt], ...] = ()
    long: bool = False
    after: Conversation | None = field(init=False)

    def __post_init__(self) -> None:
        self.after = self.steps[-1][2] if self.steps else None  # type: ignore[misc]


def make_plan(
    project: Project,
    state: Conversation | None,
    command: Command | WorkflowCommand,
    at: int,
    workflow: Published | None,
    links: Links | None = None,
    wrappers: tuple[Wrapper[Receipt], ...] = (),
) -> Plan:
    """Decide at time `at` (ms); touch nothing. Raises as `decide_with_workflow`.

    Args:
        workflow: the one that `stock.workflow_for` finds.
    """
    facts = decide_with_workflow(state, command, at, workflow, _message_ids(at))
    contact = command.contact if isinstance(command, Create) else None
    long = not _LONG.isdisjoint(map(type, facts))
    return Plan(project, state, fold(state, facts, at), at, contact, links, wrappers, long)


def _message_ids(at: int) -> Iterator[str]:
    """Ids for what a workflow says, in the order in which it says it."""
    mint = Mint()
    while True:
        yield mint.new("msg", at)
