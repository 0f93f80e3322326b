"""pipeline"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Final, NamedTuple

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.activity import Doer
from deskwire.engine.conversations.automation.decide import workflow_needed
from deskwire.engine.conversations.automation.lookup import workflow_for
from deskwire.engine.conversations.commands import (
    Command,
    Create,
    DeleteMessage,
    RedactMessage,
    WorkflowCommand,
)
from deskwire.engine.conversations.commit import CommitPlan, Receipt, carry_out, leading_reads, make_plan
from deskwire.engine.conversations.conversation import Conversation, no_such_conversation
from deskwire.engine.conversations.ports import CommitReader, CommitTransaction, ConversationReader
from deskwire.engine.conversations.typing import EphemeralPublisher, RemoteTypists
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, StaleState, Unavailable
from deskwire.engine.core.store import Brief, Inline, Store
from deskwire.engine.core.values import replace
from deskwire.engine.core.wrapper import Wrapper
from deskwire.engine.uploads.links import Links
from deskwire.engine.workflows.workflow import Published

MESSAGE_COMMANDS: Final = (RedactMessage, DeleteMessage)
"""The commands that are about one message that there is."""


def with_message(
    command: RedactMessage | DeleteMessage, state: Conversation, reader: ConversationReader
) -> RedactMessage | DeleteMessage:
    """Return the command with its message, if the conversation has it."""
    found = reader.message(state.rowid, command.message_id, internal=command.internal)
    return replace(command, found=found)


log: Final = structlog.get_logger(__name__)


class Phase(Enum):
    """The relation of the known state to the stored one, and so what the next command has to wait for."""

    __hash__ = object.__hash__  # Enum's own is a call in Python, three for each command

    UNREAD = auto()
    """Nothing is known: the state is read first."""
    SETTLED = auto()
    """The state is what is stored."""
    AHEAD = auto()
    """The state is what will be stored when all is well; a refusal that rests on it waits until it is."""
    ASTRAY = auto()
    """What will be stored is not known before the last commit has ended."""
    GONE = auto()
    """There is no such conversation, for ever."""


class _Next(NamedTuple):
    """The phase after: the stored state was read; there is none; a commit was begun; one failed; the last one ended."""

    read: Phase
    absent: Phase
    begun: Phase
    failed: Phase
    ended: Phase


_AFTER: Final = {
    #                     read           absent      begun         failed        ended
    Phase.UNREAD: _Next(Phase.SETTLED, Phase.GONE, Phase.ASTRAY, Phase.UNREAD, Phase.UNREAD),
    Phase.SETTLED: _Next(Phase.SETTLED, Phase.GONE, Phase.AHEAD, Phase.UNREAD, Phase.SETTLED),
    Phase.AHEAD: _Next(Phase.SETTLED, Phase.GONE, Phase.AHEAD, Phase.ASTRAY, Phase.SETTLED),
    Phase.ASTRAY: _Next(Phase.SETTLED, Phase.GONE, Phase.ASTRAY, Phase.ASTRAY, Phase.UNREAD),
    Phase.GONE: _Next(Phase.GONE, Phase.GONE, Phase.GONE, Phase.GONE, Phase.GONE),
}


class CommandRequest(Struct, frozen=True):
    """A command on its way into the store.

    Args:
        wrapper: what else its commit does.
        ended: called with what came of it at the end of its commit; must not raise.
        by: who gave the command; None if nothing is to be noted of that.
    """

    command: Command | WorkflowCommand
    wrapper: Wrapper[Receipt] | None
    ended: Callable[[Receipt | Exception], None]
    by: Doer | None = None


class SharedDependencies(Struct, frozen=True):
    """The things that all actors share.

    Args:
        mailbox: how many commands may wait for each.
        publisher: where typing is told.
        links: give attachments their URLs; None for who serves no files.
        wrappers: what else is done in each commit.
        elsewhere: the typists of other nodes, which change the conversations as well, so that a state in memory may be
            an old one; None for a node that is alone.
    """

    store: Store[CommitReader, CommitTransaction]
    clock: Clock
    mailbox: int
    publisher: EphemeralPublisher
    links: Links | None = None
    wrappers: tuple[Wrapper[Receipt], ...] = ()
    elsewhere: RemoteTypists | None = None


class _Commit:
    """The job of a plan: a `Revisable`, decided anew on what is stored if that is not what the plan expects.

    What was decided behind it, before it has ended, expects what its plan leads to. Decided anew it may lead to another
    state of the same revision and time, so those behind it are then decided anew as well.

    Args:
        first: the first of those that are under way together, this one included; None if it is this one.
    """

    __slots__ = ("_first", "_pipeline", "_plan", "_request", "_revised")

    def __init__(
        self, pipeline: Pipeline, request: CommandRequest, plan: CommitPlan, first: _Commit | None
    ) -> None:
        self._pipeline = pipeline
        self._request = request
        self._plan = plan
        self._first = first or self
        self._revised: _Commit | None = None  # of the first: who was decided anew, of all since

    @property
    def order(self) -> str:
        """See `Revisable.order`."""
        return self._pipeline.conversation_id

    @property
    def log(self) -> int | None:
        """See `Revisable.log`. A new conversation may wait for another transaction that makes the same contact."""
        return None if isinstance(self._request.command, Create) else self._pipeline.project.rowid

    def __call__(self, tx: CommitTransaction) -> Receipt:
        """See `Revisable`."""
        first = self._first
        if first._revised is self:  # the transaction in which it was came to nothing
            first._revised = None
        if first._revised is not None:
            raise StaleState("what was to be changed before it was decided anew")
        return carry_out(self._plan, tx)

    def again(self, tx: CommitTransaction) -> Receipt:
        """See `Revisable.again`. What is new, or has to be alone, is not decided again here."""
        request = self._request
        if isinstance(request.command, Create):
            raise StaleState("a conversation that is being made is nobody else's")
        if self._first._revised is None:
            self._first._revised = self
        return self._pipeline.decide_in_transaction(request, self._plan.at, tx)

    def needs(self, *, again: bool) -> Iterator[Callable[[CommitTransaction], object]]:
        """See `Revisable.needs`."""
        yield from leading_reads(self._plan)
        if again and self.log is not None:
            yield self._pipeline.stored

    def ended(self, outcome: Receipt | Exception) -> None:
        """Tell the pipeline how it has ended; what was decided on the state that it expected is in doubt if there was another."""
        if self._first._revised is not None:
            self._pipeline.doubt()
        self._pipeline.finish_or_retry(self._request, outcome)


class Pipeline:
    """One conversation's commits. Its actor's task alone calls it, one call after the other; `phase` is for it to read."""

    __slots__ = (
        "_first",
        "_none_under_way",
        "_shared",
        "_state",
        "_under_way",
        "conversation_id",
        "phase",
        "project",
    )

    def __init__(self, project: Project, conversation_id: str, shared: SharedDependencies) -> None:
        self.project = project
        self.conversation_id = conversation_id
        self.phase = Phase.UNREAD
        self._shared = shared
        self._state: Conversation | None = None
        self._under_way = 0
        self._first: _Commit | None = None
        self._none_under_way: trio.Event | None = None

    async def begin(self, request: CommandRequest) -> None:
        """Have a command committed; return when the next one may come. One that takes long is waited for.

        Raises what the command is refused with, and then `ended` is not called. Cancellation: what is under way is
        carried out.
        """
        plan = await self._plan(request)
        self._submit(plan, request)
        if plan.long:
            await self.settled()

    async def settled(self) -> None:
        """Return when no commit of this conversation is under way."""
        if self._under_way:
            self._none_under_way = trio.Event()
            await self._none_under_way.wait()

    async def read(self, *, inline: bool = False) -> tuple[Conversation, Contact]:
        """Return what is stored, which is what the next command is decided on; call it while nothing is under way.

        Raises NotFound if there is no such conversation.

        Args:
            inline: whether a thread would cost more than to wait for the disk; not for what nobody has read lately.
        """
        project, wanted = self.project.rowid, self.conversation_id

        def stored(reader: CommitReader) -> tuple[Conversation, Contact] | None:
            return reader.conversation(project, wanted)

        row = await self._shared.store.read(Inline(stored) if inline else stored)
        if row is None:
            self.phase = _AFTER[self.phase].absent
            raise no_such_conversation()
        self.phase, self._state = _AFTER[self.phase].read, row[0]
        return row

    def doubt(self) -> None:
        """Forget the state: something has failed, and it may not be what is stored."""
        self.phase, self._state = _AFTER[self.phase].failed, None

    async def _plan(self, request: CommandRequest) -> CommitPlan:
        """Decide on the state as it will be; or as it is, for a refusal, and for what has to be alone.

        Alone is what takes long: an erasure takes away what the commits before it are about to publish.
        """
        try:
            plan = await self._decide(request)
        except (DomainError, StaleState):
            if not self._under_way and not self._outdated(request):
                raise
        else:
            if not (plan.long and self._under_way):
                return plan
        await self.settled()
        if self._outdated(request):
            await self.read(inline=True)
        return await self._decide(request)

    def _outdated(self, request: CommandRequest) -> bool:
        """Return whether what the request is refused for may be no longer so.

        What is carried out is compared with what is stored in its commit; what is refused has none.
        """
        return self._shared.elsewhere is not None and not isinstance(request.command, Create)

    async def _decide(self, request: CommandRequest) -> CommitPlan:
        while True:
            if self.phase is not Phase.SETTLED and self.phase is not Phase.AHEAD:
                await self._ready(request.command)
            state, workflow = self._state, None
            wanted = workflow_needed(state, request.command)
            if wanted is not None:
                query = partial(workflow_for, project=self.project, needed=wanted)
                workflow = await self._shared.store.read(Inline(query))
            command = request.command
            if state is not None and isinstance(command, MESSAGE_COMMANDS):
                command = await self._shared.store.read(Inline(partial(with_message, command, state)))
            if state is self._state:  # no commit has failed while it was read
                return self._planned(request, command, state, self._shared.clock(), workflow)

    async def _ready(self, command: Command | WorkflowCommand) -> None:
        """Return when a state is known to decide `command` on. Raises NotFound if there is none."""
        if self.phase is Phase.ASTRAY:
            await self.settled()
        if self.phase is Phase.UNREAD and not isinstance(command, Create):
            await self.read()
        if self.phase is Phase.GONE:
            raise no_such_conversation()

    def _planned(
        self,
        request: CommandRequest,
        command: Command | WorkflowCommand,
        state: Conversation | None,
        at: int,
        workflow: Published | None,
    ) -> CommitPlan:
        shared, wrapper = self._shared, request.wrapper
        wrappers = shared.wrappers if wrapper is None else (wrapper, *shared.wrappers)
        return make_plan(self.project, state, command, at, workflow, shared.links, wrappers, request.by)

    def _submit(self, plan: CommitPlan, request: CommandRequest) -> None:
        """Give a plan to the store; the next command is decided on what it leads to. Raises Unavailable."""
        job = _Commit(self, request, plan, self._first)
        self._shared.store.submit(job if plan.long else Brief(job), job.ended)
        self._first = self._first or job
        self._under_way += 1
        self.phase = _AFTER[self.phase].begun
        after = plan.after
        if self.phase is Phase.AHEAD and after is not None:
            self._state = after

    def finish_or_retry(self, request: CommandRequest, outcome: Receipt | Exception) -> None:
        """End a commit; or if it found another state than it expected, make it once more, and decide within it.

        One before it has failed then, or an import has added to the conversation behind its actor (ADR 30).
        """
        if not isinstance(outcome, StaleState) or isinstance(request.command, Create):
            self._end(request, outcome)
            return
        log.info("actor.state_changed", conversation=self.conversation_id, found=str(outcome))
        self.doubt()
        job = partial(self.decide_in_transaction, request, self._shared.clock())
        try:
            self._shared.store.submit(job, partial(self._end, request))
        except Unavailable as refusal:
            self._end(request, refusal)

    def stored(self, tx: CommitTransaction) -> tuple[Conversation, Contact] | None:
        """Return the state that is stored; None if the conversation is gone."""
        return tx.conversation(self.project.rowid, self.conversation_id)

    def decide_in_transaction(self, request: CommandRequest, at: int, tx: CommitTransaction) -> Receipt:
        """Decide on what is stored, in the very transaction that commits it: nothing comes in between."""
        row = self.stored(tx)
        if row is None:
            raise no_such_conversation()
        command = request.command
        workflow = workflow_for(tx, self.project, workflow_needed(row[0], command))
        if isinstance(command, MESSAGE_COMMANDS):
            command = with_message(command, row[0], tx)
        return carry_out(self._planned(request, command, row[0], at, workflow), tx)

    def _end(self, request: CommandRequest, outcome: Receipt | Exception) -> None:
        """Note how a commit has ended, and tell."""
        self._under_way -= 1
        if isinstance(outcome, Exception):
            self.doubt()
        elif outcome.state is None:
            self.phase, self._state = _AFTER[self.phase].absent, None
        elif not self._under_way:
            self.phase, self._state = _AFTER[self.phase].read, outcome.state
        if not self._under_way:
            self._first = None
            self.phase = _AFTER[self.phase].ended
            if self._none_under_way is not None:
                self._none_under_way.set()
                self._none_under_way = None
        request.ended(outcome)
