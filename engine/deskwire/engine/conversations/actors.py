"""The actors of conversations, one task for each live one, and the registry that finds, starts and evicts them.

An actor takes commands one after the other and answers each exactly once. A command runs to completion even if the caller
has disconnected, because the actor lives in the registry's nursery. The actor's pipeline commits the commands; the actor
does not wait for a commit. Typing is not committed: the actor expires it while it waits for commands.

Adding and removing an actor never awaits, so that an eviction and a new command can't interleave: either the command finds
the actor, or the actor is gone and a new one reads the stored state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from functools import partial
from itertools import islice
from math import inf
from typing import Final

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.conversations.commands import (
    Command,
    Create,
    PostMessage,
    Rate,
    ReplaceNetworkLogs,
    WorkflowCommand,
)
from deskwire.engine.conversations.commit_plan import CommandRequest, CommitFollower, Receipt
from deskwire.engine.conversations.conversation import ConversationMerged, no_such_conversation
from deskwire.engine.conversations.facts import Fact, WorkflowCompleted
from deskwire.engine.conversations.merge_decisions import NotMergedHere
from deskwire.engine.conversations.pipeline import Phase, Pipeline, SharedDependencies
from deskwire.engine.conversations.ports import CommitReader, CommitTransaction
from deskwire.engine.conversations.typing import (
    EphemeralPublisher,
    RemoteTypists,
    SetTyping,
    TypingIndicator,
)
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.errors import Conflict, DomainError, NotFound, StaleState, Unavailable
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.oneshot import OneShot
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.links import Links

log: Final = structlog.get_logger(__name__)

_EVICTION_CANDIDATES_MAX: Final = 64  # least recently used actors that are searched for an idle one
_MERGE_TRIES: Final = 3  # attempts while conversations are merged and separated
_BATCH_SIZE: Final = 16  # conversations that `ask_all` asks at once; most of their commands share a commit


class Pause(Struct, frozen=True, eq=False):
    """Let another task change the stored conversation: end the commits in flight, then wait.

    It is answered when no commit is in flight. Then none begins until `over` is set, after which the actor reads the state again.
    """

    over: trio.Event


ActorCommand = Command | WorkflowCommand | SetTyping | Pause
"""The commands that an actor takes."""

_Key = tuple[int, str]  # storage key of the project, id of the conversation


class ActorFailed(Exception):
    """A bug ended the actor's state. The log has the details, the caller gets none."""


class PendingCommand(OneShot[Receipt], eq=False):
    """A queued command, which is answered exactly once.

    Args:
        hook: does more work in the commit; typing has no commit.
        by: the actor who gave the command; None if that is not recorded.
    """

    command: ActorCommand
    hook: CommitHook[Receipt] | None = None
    by: Actor | None = None


class ConversationActor:
    """A conversation's task: `send_nowait` queues a command, `run` carries the commands out.

    There are many actors, so each allocates its parts only when it needs them (docs/performance.md).

    Args:
        project: the conversation's project; an id of another project's conversation is not found.

    Attributes:
        used_at: Trio's time of the last command.
    """

    __slots__ = (
        "_inbox",
        "_indicator",
        "_outbox",
        "_pending",
        "_pipeline",
        "_shared",
        "used_at",
    )

    def __init__(self, project: Project, conversation_id: str, shared: SharedDependencies) -> None:
        self.used_at = 0.0
        self._pipeline = Pipeline(project, conversation_id, shared)
        self._shared = shared
        self._pending: list[PendingCommand] | None = None
        self._indicator: TypingIndicator | None = None
        self._outbox, self._inbox = trio.open_memory_channel[PendingCommand](inf)  # `_pending` is bounded

    @property
    def project(self) -> Project:
        """The conversation's project."""
        return self._pipeline.project

    @property
    def conversation_id(self) -> str:
        """The conversation's id."""
        return self._pipeline.conversation_id

    def send_nowait(self, pending: PendingCommand) -> None:
        """Queue a command. Raises Unavailable (`conversation_busy`) if the mailbox is full."""
        queued = self._pending or []
        if len(queued) > self._shared.mailbox:  # one of them is being carried out, so it does not count
            raise Unavailable(
                "Too many commands are waiting for this conversation.", code="conversation_busy"
            )
        self._outbox.send_nowait(pending)
        queued.append(pending)
        self._pending = queued

    @property
    def idle(self) -> bool:
        """True if no command is pending."""
        # Counted here, because a command sent to a task that waits for one skips the channel's buffer, and the task has
        # not run yet.
        return self._pending is None

    @property
    def typing(self) -> bool:
        """True while an agent types, so that the actor has a `stopped` to publish."""
        return self._indicator is not None and self._indicator.on

    def remove_typist(self, agent_id: str, *, notify: bool) -> None:
        """Stop tracking an agent's typing; publish `stopped` if `notify`."""
        if self._indicator is not None:
            self._indicator.remove(agent_id, notify=notify)

    def close(self) -> None:
        """Take no more commands; the task ends when the pending ones are answered. Typing ends at once."""
        self._outbox.close()
        # The task may end later than the conversation's next actor starts, whose `started` must come last.
        if self._indicator is not None:
            self._indicator.end()

    async def run(self, ended: Callable[[ConversationActor], None]) -> None:
        """Carry out commands until closed, or until the conversation is gone; then call `ended`.

        Cancellation: commits in flight are carried out; pending commands fail with Unavailable.
        """
        try:
            while self._pipeline.phase is not Phase.GONE:
                # Without typing there is no call in between, because each call's frame lives as long as the actor waits.
                pending = await (
                    self._inbox.receive() if self._indicator is None else self._next(self._indicator)
                )
                await self._begin(pending)
                del pending  # so that its request is not kept alive during the next wait
        except trio.EndOfChannel:
            pass  # closed
        except trio.Cancelled:
            self._fail_pending()
            raise
        finally:
            ended(self)

    def _fail_pending(self) -> None:
        """Fail all pending commands with `shutting_down`."""
        for pending in self._pending or ():
            pending.put(shutting_down())

    def reject_queued(self, refusal: DomainError) -> None:
        """Answer all queued commands with `refusal`."""
        while True:
            try:
                self._inbox.receive_nowait().put(refusal)
            except (trio.WouldBlock, trio.EndOfChannel):
                return

    async def _next(self, indicator: TypingIndicator) -> PendingCommand:
        """Return the next command, and expire typists until it arrives. Raises trio.EndOfChannel."""
        while indicator.on:
            with trio.move_on_at(indicator.next_timeout):
                return await self._inbox.receive()
            indicator.expire()
        self._indicator = None
        return await self._inbox.receive()

    async def _begin(self, pending: PendingCommand) -> None:
        """Submit a command's commit, or reject the command; wait for a commit that takes long."""
        try:
            if isinstance(pending.command, SetTyping):
                self._answer(pending, await self._set_typing(pending.command))
            elif isinstance(pending.command, Pause):
                await self._pause(pending, pending.command)
            else:
                finished = partial(self._finished, pending)
                request = CommandRequest(pending.command, pending.hook, finished, pending.by)
                await self._pipeline.begin(request)
        except Exception as error:  # noqa: BLE001  # the task's top: a bug is logged, and ends this state alone
            self._answer(pending, self._refusal(error))

    async def _pause(self, pending: PendingCommand, command: Pause) -> None:
        """Wait while another task changes the conversation. Raises NotFound if there is none."""
        await self._pipeline.settled()
        state, contact = await self._pipeline.read()
        pending.put(Receipt(state, state, contact, self.project))
        await command.over.wait()
        self._pipeline.invalidate_state()
        self._end(pending)

    async def _set_typing(self, command: SetTyping) -> Receipt:
        """Set the indicator. One row is read, for the contact's present data; nothing is written.

        Other tasks may run during the read, but no commit of this conversation, because only this task begins them.
        """
        await self._pipeline.settled()
        state, contact = await self._pipeline.read(inline=True)
        if state.merged_into is not None and command.typing:
            raise ConversationMerged(state.merged_into)
        if self._indicator is None:
            self._indicator = TypingIndicator(self.project, self._shared.publisher)
        self._indicator.set(state, contact, command)
        if self._shared.remote_typists is not None:
            self._shared.remote_typists.note(self.project.rowid, self.conversation_id, command)
        return Receipt(state, state, contact, self.project)

    def _finished(self, pending: PendingCommand, outcome: Receipt | Exception) -> None:
        """Answer a command after its commit."""
        try:
            if isinstance(outcome, Receipt):
                self._apply_to_typing(outcome.facts)
            else:
                outcome = self._refusal(outcome)
        except Exception as error:  # noqa: BLE001  # the call's top: a bug is logged, and must not end the writer
            outcome = self._refusal(error)
        self._answer(pending, outcome)

    def _apply_to_typing(self, facts: tuple[Fact, ...]) -> None:
        """Stop the typists that the facts stop, and log the workflows that could not go on."""
        if self._indicator is not None:
            self._indicator.apply(facts)
        if self._shared.remote_typists is not None:
            self._shared.remote_typists.note_facts(self.project.rowid, self.conversation_id, facts)
        for fact in facts:
            if isinstance(fact, WorkflowCompleted) and fact.stopped is not None:
                log.warning(
                    "workflows.stopped",
                    conversation=self.conversation_id,
                    workflow=fact.workflow_id,
                    reason=fact.stopped,
                )

    def _answer(self, pending: PendingCommand, answer: Receipt | Exception) -> None:
        self._end(pending)
        pending.put(answer)

    def _end(self, pending: PendingCommand) -> None:
        """Count a command as pending no longer."""
        assert self._pending is not None, "the command is pending"
        self._pending.remove(pending)
        if not self._pending:
            self._pending = None

    def _refusal(self, error: Exception) -> Exception:
        """Return the exception for the caller. After any other than a plain refusal, the next command reads the state."""
        if isinstance(error, DomainError) and not isinstance(error, Unavailable):
            return error
        self._pipeline.invalidate_state()
        if isinstance(error, Unavailable):
            return error
        if isinstance(error, StaleState):
            log.error("actor.stale", conversation=self.conversation_id, error=str(error))
            return Unavailable(
                "The conversation was changed by another request; try again.", code="conversation_busy"
            )
        log.error("actor.failed", conversation=self.conversation_id, exc_info=error)
        return ActorFailed(f"the actor of {self.conversation_id} failed")


def shutting_down() -> Unavailable:
    """Return the refusal of commands that are pending or arrive at shutdown."""
    return Unavailable("The service is shutting down.", code="shutting_down")


class CommandCounters(Struct):
    """Counters of commands since the start.

    Args:
        actors: actors started, each for a command to a conversation without one.
        mailbox_full: commands rejected because too many were queued for the conversation.
        too_many_actors: commands rejected because no further actor may live.
    """

    actors: int = 0
    mailbox_full: int = 0
    too_many_actors: int = 0


class ActorRegistry:
    """The live conversations, at most one actor for each, and a bounded number of them.

    Args:
        nursery: runs the actors; not that of a request.
        mailbox: the number of commands that may wait for one conversation.
        idle_s: seconds without a command after which an actor ends.
        live: the number of actors that may live.
        publisher: receives typing events; None for one without listeners.
        links: makes the URLs of attachments; None if no files are served.
        ticket_follower: keeps linked tickets up to date, in each commit.
        bus: connects nodes that change the same conversations; None for a single node.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store[CommitReader, CommitTransaction],
        clock: Clock,
        *,
        mailbox: int,
        idle_s: float,
        live: int,
        publisher: EphemeralPublisher | None = None,
        links: Links | None = None,
        ticket_follower: CommitFollower | None = None,
        bus: Bus | None = None,
    ) -> None:
        self.commands: Final = CommandCounters()
        self._nursery = nursery
        self._idle_s = idle_s
        self._live = live
        remote_typists = None if bus is None else RemoteTypists(bus, self._remove_typist)
        self._shared = SharedDependencies(
            store,
            clock,
            mailbox,
            publisher or EphemeralPublisher(clock),
            links,
            ticket_follower,
            remote_typists,
        )
        self._actors: OrderedDict[_Key, ConversationActor] = OrderedDict()  # the least recently used first
        self._evicting = False
        self._ended = self._remove_ended  # one bound method for all, because each actor keeps it

    def __len__(self) -> int:
        """Return the number of live actors."""
        return len(self._actors)

    async def ask(
        self,
        project: Project,
        conversation_id: str,
        command: ActorCommand,
        hook: CommitHook[Receipt] | None = None,
        by: Actor | None = None,
    ) -> Receipt:
        """Have the conversation carry out `command`; return the receipt once that is durable.

        Args:
            hook: does more work in the commit.
            by: the actor who gave the command, for the conversation's activity.

        Raises:
            NotFound: the project has no such conversation.
            Conflict, Invalid: the command is not allowed, or `hook` has refused it.
            Unavailable: the mailbox is full, too many actors live, or the disk refused.

        Cancellation: the command may still be carried out.
        """
        pending = PendingCommand(command, hook, by)
        actor = self._actor(project, conversation_id)
        try:
            actor.send_nowait(pending)
        except Unavailable:
            self.commands.mailbox_full += 1
            raise
        return await pending.take()

    async def ask_where_shown(
        self,
        project: Project,
        conversation_id: str,
        command: PostMessage | Rate | ReplaceNetworkLogs,
        hook: CommitHook[Receipt] | None = None,
        by: Actor | None = None,
    ) -> Receipt:
        """Have the conversation carry out a command of the customer or the backend, or the one that it is merged into.

        Their clients may have been offline during the merge, so their writes are not refused. Otherwise as `ask`.
        """
        for _ in range(_MERGE_TRIES):
            try:
                return await self.ask(project, conversation_id, command, hook, by)
            except ConversationMerged as merged:
                into = merged.into
            passed = replace(command, via=conversation_id) if isinstance(command, PostMessage) else command
            try:
                return await self.ask(project, into, passed, hook, by)
            except (ConversationMerged, NotMergedHere):
                continue
        raise Unavailable("The conversation is being merged; try again.", code="conversation_busy")

    @asynccontextmanager
    async def paused(self, project: Project, conversation_ids: Iterable[str]) -> AsyncIterator[None]:
        """Pause the actors of several conversations for the block, so that only its own commit changes them.

        They are paused in the order of their ids, so that two callers can't wait for each other. Raises as `ask`.
        Other nodes may change the conversations all the same.
        """
        over = trio.Event()
        try:
            for conversation_id in sorted(set(conversation_ids)):
                await self.ask(project, conversation_id, Pause(over))
            yield
        finally:
            over.set()

    async def create(
        self,
        project: Project,
        command: Create,
        hook: CommitHook[Receipt] | None = None,
        by: Actor | None = None,
    ) -> Receipt:
        """Create a conversation; otherwise as `ask`."""
        return await self.ask(project, command.conversation_id, command, hook, by)

    def _remove_typist(self, project: int, conversation_id: str, agent_id: str, notify: bool) -> None:
        actor = self._actors.get((project, conversation_id))
        if actor is not None:
            actor.remove_typist(agent_id, notify=notify)

    def _actor(self, project: Project, conversation_id: str) -> ConversationActor:
        key = (project.rowid, conversation_id)
        actor = self._actors.get(key)
        if actor is None:
            if not is_id(conversation_id, "cnv"):
                raise no_such_conversation()
            if self._nursery.cancel_scope.cancel_called:  # an actor in it would never run
                raise shutting_down()
            self._make_room()
            actor = ConversationActor(project, conversation_id, self._shared)
            self._actors[key] = actor
            self.commands.actors += 1
            # In a context of its own: the request's would be kept alive, and its id would appear in the actor's log lines.
            spawn = partial(self._nursery.start_soon, name=conversation_id)
            Context().run(spawn, actor.run, self._ended)
            if not self._evicting:
                self._evicting = True
                Context().run(self._nursery.start_soon, self._evict_idle)
        else:
            self._actors.move_to_end(key)
        actor.used_at = trio.current_time()
        return actor

    async def _evict_idle(self) -> None:
        """Evict actors after their idle time. One task does it, because a timer for each actor costs more than the actor."""
        try:
            while self._actors:
                key, actor = next(iter(self._actors.items()))
                until = actor.used_at + self._idle_s
                if trio.current_time() < until:
                    await trio.sleep_until(until)
                elif not self._evict(key, actor):
                    actor.used_at = trio.current_time()
                    self._actors.move_to_end(key)
        finally:
            self._evicting = False

    def _remove_ended(self, actor: ConversationActor) -> None:
        self._remove((actor.project.rowid, actor.conversation_id), actor)
        actor.reject_queued(no_such_conversation())

    def _evict(self, key: _Key, actor: ConversationActor, *, typing: bool = False) -> bool:
        """Remove the actor if it is idle; with `typing` also one that has yet to publish a `stopped`."""
        if not actor.idle or (actor.typing and not typing):
            return False
        self._remove(key, actor)
        return True

    def _remove(self, key: _Key, actor: ConversationActor) -> None:
        if self._actors.get(key) is actor:
            del self._actors[key]
        actor.close()

    def _make_room(self) -> None:
        if len(self._actors) < self._live:
            return
        oldest = list(islice(self._actors.items(), _EVICTION_CANDIDATES_MAX))
        for typing in (False, True):  # a command is worth more than a typing indicator (ADR 5)
            if any(self._evict(key, actor, typing=typing) for key, actor in oldest):
                return
        self.commands.too_many_actors += 1
        raise Unavailable("Too many conversations are active at once.", code="overloaded")


async def ask_all(
    actors: ActorRegistry,
    project: Project,
    conversation_ids: Sequence[str],
    command: Command,
    refused: Callable[[str], object],
    *refusals: type[NotFound | Conflict],
) -> None:
    """Have several conversations carry out the same command, in batches.

    Args:
        refused: called with the id of each conversation that refuses the command with one of `refusals`.

    Raises Unavailable or ActorFailed: the first failure of a batch, after all commands of the batch have ended.
    """
    for start in range(0, len(conversation_ids), _BATCH_SIZE):
        failures: list[Unavailable | ActorFailed] = []

        async def ask(conversation_id: str, failures: list[Unavailable | ActorFailed] = failures) -> None:
            try:
                await actors.ask(project, conversation_id, command)
            except refusals:
                refused(conversation_id)
            except (Unavailable, ActorFailed) as error:
                failures.append(error)

        async with trio.open_nursery() as nursery:
            for conversation_id in conversation_ids[start : start + _BATCH_SIZE]:
                nursery.start_soon(ask, conversation_id)
        if failures:
            raise failures[0]
