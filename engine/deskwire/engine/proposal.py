"""What a command comes to in the state that a conversation has: what follows from it, and the job that commits that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from deskwire.engine.commands import Command, Create, LinkTicket, WorkflowCommand
from deskwire.engine.conversation import Conversation
from deskwire.engine.decide import Step, fold
from deskwire.engine.facts import Deleted, Fact, NetworkLogsReplaced, Revealed
from deskwire.engine.ids import Mint
from deskwire.engine.people import Project
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.turn import Receipt, commit_turn
from deskwire.engine.uploads.links import Links
from deskwire.engine.value import value
from deskwire.engine.workflows.conduct import TRIGGERED, conduct, needs
from deskwire.engine.workflows.stock import running, triggered
from deskwire.engine.workflows.workflow import Published


@value
class Proposal:
    """What is decided, and not yet committed.

    Args:
        after: the state that the facts lead to, None if there are none.
        long: whether what it writes grows with the conversation.
    """

    facts: tuple[Fact, ...]
    after: Conversation | None
    job: Callable[[Transaction], Receipt]
    long: bool


def propose(
    project: Project,
    state: Conversation | None,
    command: Command | WorkflowCommand,
    at: int,
    workflow: Published | None,
    links: Links | None,
) -> Proposal:
    """Decide at time `at` (ms); touch nothing. Raises as `conduct`.

    Args:
        workflow: what `workflow_for` finds.
    """
    facts = conduct(state, command, at, workflow, _message_ids(at))
    steps = fold(state, facts, at)
    after = steps[-1][2] if steps else None
    job = _job(project, command, state, steps, at, links)
    return Proposal(facts, after, job, any(map(_takes_long, facts)))


def workflow_for(
    reader: Reader, project: Project, state: Conversation | None, command: Command | WorkflowCommand
) -> Published | None:
    """The workflow that `command` may move, for those that need one; a few rows by their keys."""
    wanted = needs(state, command)
    if wanted is None:
        return None
    return triggered(reader, project) if wanted == TRIGGERED else running(reader, project, wanted)


def _takes_long(fact: Fact) -> bool:
    return isinstance(fact, Deleted | Revealed | NetworkLogsReplaced)


def _message_ids(at: int) -> Iterator[str]:
    """Ids for what a workflow says, in the order in which it says it."""
    mint = Mint()
    while True:
        yield mint.new("msg", at)


def _job(
    project: Project,
    command: Command | WorkflowCommand,
    state: Conversation | None,
    steps: Sequence[Step],
    at: int,
    links: Links | None,
) -> Callable[[Transaction], Receipt]:
    if isinstance(command, LinkTicket):
        return _with_ticket(project, command, state, steps, at)
    contact = command.contact if isinstance(command, Create) else None
    return lambda tx: commit_turn(tx, project, state, steps, at, contact, links)


def _with_ticket(
    project: Project, command: LinkTicket, state: Conversation | None, steps: Sequence[Step], at: int
) -> Callable[[Transaction], Receipt]:
    def both_sides(tx: Transaction) -> Receipt:
        ticket = command.ticket_side(tx)
        return replace(commit_turn(tx, project, state, steps, at), ticket=ticket)

    return both_sides
