"""The commits of one conversation, several of which may be in flight.

The pipeline decides each command on the state that the commits in flight lead to, so that commands which arrive together
share a commit. If one of these commits fails, the stored state is not the one that the next plan expects. That command is
then decided again within its commit.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import partial
from typing import Final, NamedTuple

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.automation.decide import workflow_needed
from deskwire.engine.conversations.automation.lookup import workflow_for
from deskwire.engine.conversations.commands import Command, Create, PostMessage, WorkflowCommand
from deskwire.engine.conversations.commit import MESSAGE_COMMANDS, CommitJob, make_plan, with_message
from deskwire.engine.conversations.commit_plan import CommandRequest, CommitFollower, CommitPlan, Receipt
from deskwire.engine.conversations.conversation import Conversation, no_such_conversation
from deskwire.engine.conversations.ports import CommitReader, CommitTransaction
from deskwire.engine.conversations.typing import EphemeralPublisher, RemoteTypists
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, StaleState, Unavailable
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.uploads.links import Links

log: Final = structlog.get_logger(__name__)


class Phase(Enum):
    """The relation of the state in memory to the stored one, which decides what the next command waits for."""

    __hash__ = object.__hash__  # Enum's own is a call in Python, three for each command

    UNREAD = auto()
    """No state is in memory; the next command reads it first."""
    SETTLED = auto()
    """The state is the stored one."""
    SPECULATIVE = auto()
    """The state is ahead of the database by the commits in flight; a refusal based on it waits for them."""
    UNKNOWN = auto()
    """The commits in flight may lead to any state; the next command waits for the last one."""
    GONE = auto()
    """The conversation does not exist, and its id is never used again."""


class _Transitions(NamedTuple):
    """The phase after each event.

    Args:
        read: the stored state was read.
        absent: the database has no such conversation.
        submitted: a commit was submitted.
        failed: a commit failed.
        drained: the last commit in flight ended.
    """

    read: Phase
    absent: Phase
    submitted: Phase
    failed: Phase
    drained: Phase


_AFTER: Final = {
    #                               read           absent      submitted          failed         drained
    Phase.UNREAD: _Transitions(Phase.SETTLED, Phase.GONE, Phase.UNKNOWN, Phase.UNREAD, Phase.UNREAD),
    Phase.SETTLED: _Transitions(Phase.SETTLED, Phase.GONE, Phase.SPECULATIVE, Phase.UNREAD, Phase.SETTLED),
    Phase.SPECULATIVE: _Transitions(
        Phase.SETTLED, Phase.GONE, Phase.SPECULATIVE, Phase.UNKNOWN, Phase.SETTLED
    ),
    Phase.UNKNOWN: _Transitions(Phase.SETTLED, Phase.GONE, Phase.UNKNOWN, Phase.UNKNOWN, Phase.UNREAD),
    Phase.GONE: _Transitions(Phase.GONE, Phase.GONE, Phase.GONE, Phase.GONE, Phase.GONE),
}


class SharedDependencies(Struct, frozen=True):
    """The dependencies that all actors share.

    Args:
        mailbox: the number of commands that may wait for each actor.
        publisher: receives typing events.
        links: makes the URLs of attachments; None if no files are served.
        ticket_follower: keeps linked tickets up to date, in each commit.
        remote_typists: typists on other nodes, which also change conversations, so that a state in memory may be
            outdated; None for a single node.
    """

    store: Store[CommitReader, CommitTransaction]
    clock: Clock
    mailbox: int
    publisher: EphemeralPublisher
    links: Links | None = None
    ticket_follower: CommitFollower | None = None
    remote_typists: RemoteTypists | None = None


class Pipeline:
    """The commits of one conversation.

    Only the conversation's actor calls it, and never concurrently. `phase` is for the actor to read.
    """

    __slots__ = (
        "_drained",
        "_first",
        "_in_flight",
        "_shared",
        "_state",
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
        self._in_flight = 0
        self._first: CommitJob | None = None
        self._drained: trio.Event | None = None

    async def begin(self, request: CommandRequest) -> None:
        """Submit a command's commit; return when the next command may begin, which is after a long commit.

        Raises the refusal of the command; `finished` is not called then. Cancellation: commits in flight are carried out.
        """
        plan = await self._plan(request)
        self._submit(plan, request)
        if plan.long:
            await self.settled()

    async def settled(self) -> None:
        """Return when no commit of this conversation is in flight."""
        if self._in_flight:
            self._drained = trio.Event()
            await self._drained.wait()

    async def read(self, *, inline: bool = False) -> tuple[Conversation, Contact]:
        """Read the stored state, on which the next command is decided. Call it while no commit is in flight.

        Raises NotFound if there is no such conversation.

        Args:
            inline: whether to read on Trio's thread; only for rows that were read or written a moment ago.
        """
        project, wanted = self.project.rowid, self.conversation_id

        def stored(reader: CommitReader) -> tuple[Conversation, Contact] | None:
            return reader.conversation(project, wanted)

        row = await self._shared.store.read(InlineQuery(stored) if inline else stored)
        if row is None:
            self.phase = _AFTER[self.phase].absent
            raise no_such_conversation()
        self.phase, self._state = _AFTER[self.phase].read, row[0]
        return row

    def invalidate_state(self) -> None:
        """Drop the state in memory after a failure, because it may differ from the stored one."""
        self.phase, self._state = _AFTER[self.phase].failed, None

    async def _plan(self, request: CommandRequest) -> CommitPlan:
        """Decide on the speculative state; for a refusal and for a long commit decide again on the stored one.

        A long commit has to be alone: an erasure removes what the commits before it are about to publish.
        """
        try:
            plan = await self._decide(request)
        except (DomainError, StaleState):
            if not self._in_flight and not self._may_be_outdated(request):
                raise
        else:
            if not (plan.long and self._in_flight):
                return plan
        await self.settled()
        if self._may_be_outdated(request):
            await self.read(inline=True)
        return await self._decide(request)

    def _may_be_outdated(self, request: CommandRequest) -> bool:
        """Return whether another node may have changed the state that a refusal is based on.

        A commit compares its plan with the stored state; a refusal has no commit.
        """
        return self._shared.remote_typists is not None and not isinstance(request.command, Create)

    async def _decide(self, request: CommandRequest) -> CommitPlan:
        shared, command = self._shared, request.command
        while True:
            if self.phase is not Phase.SETTLED and self.phase is not Phase.SPECULATIVE:
                await self._ready(command)
            state, workflow, found = self._state, None, command
            # Most commands are messages without a workflow. `workflow_needed` finds none for them, so it is not called.
            if type(command) is not PostMessage or (state is not None and state.run is not None):
                wanted = workflow_needed(state, command)
                if wanted is not None:
                    query = partial(workflow_for, project=self.project, needed=wanted)
                    workflow = await shared.store.read(InlineQuery(query))
                if state is not None and isinstance(command, MESSAGE_COMMANDS):
                    found = await shared.store.read(InlineQuery(partial(with_message, command, state)))
            if state is self._state:  # no commit has failed during the reads
                return make_plan(
                    self.project,
                    state,
                    found,
                    shared.clock(),
                    workflow,
                    shared.links,
                    request.wrapper,
                    shared.ticket_follower,
                    request.by,
                )

    async def _ready(self, command: Command | WorkflowCommand) -> None:
        """Return when a state is known to decide `command` on. Raises NotFound if there is none."""
        if self.phase is Phase.UNKNOWN:
            await self.settled()
        if self.phase is Phase.UNREAD and not isinstance(command, Create):
            await self.read()
        if self.phase is Phase.GONE:
            raise no_such_conversation()

    def _submit(self, plan: CommitPlan, request: CommandRequest) -> None:
        """Submit a plan to the store; the next command is decided on the state after it. Raises Unavailable."""
        job = CommitJob(plan, self.conversation_id, request, self._first)
        self._shared.store.submit(job if plan.long else InlineJob(job), partial(self._finish_or_retry, job))
        self._first = self._first or job
        self._in_flight += 1
        self.phase = _AFTER[self.phase].submitted
        if self.phase is Phase.SPECULATIVE and plan.steps:
            self._state = plan.steps[-1][2]

    def _finish_or_retry(self, job: CommitJob, outcome: Receipt | Exception) -> None:
        """Finish a commit; if it found an unexpected state, decide and commit again on the stored state.

        The reason is a commit before it that failed, or an import into the conversation (ADR 30).
        """
        if (job.first or job).revised is not None:  # the state in memory rests on the first decision
            self.invalidate_state()
        request = job.request
        if not isinstance(outcome, StaleState) or isinstance(request.command, Create):
            self._finish(request, outcome)
            return
        log.info("actor.state_changed", conversation=self.conversation_id, found=str(outcome))
        self.invalidate_state()
        retry = partial(job.decide_again, self._shared.clock())
        try:
            self._shared.store.submit(retry, partial(self._finish, request))
        except Unavailable as refusal:
            self._finish(request, refusal)

    def _finish(self, request: CommandRequest, outcome: Receipt | Exception) -> None:
        """Update the phase after a commit, and report the outcome to the actor."""
        self._in_flight -= 1
        if isinstance(outcome, Exception):
            self.invalidate_state()
        elif outcome.state is None:
            self.phase, self._state = _AFTER[self.phase].absent, None
        elif not self._in_flight:
            self.phase, self._state = _AFTER[self.phase].read, outcome.state
        if not self._in_flight:
            self._first = None
            self.phase = _AFTER[self.phase].drained
            if self._drained is not None:
                self._drained.set()
                self._drained = None
        request.finished(outcome)
