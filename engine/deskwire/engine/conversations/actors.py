"""actors"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from itertools import islice
from math import inf
from typing import Final

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.cluster.bus import Bus
from deskwire.engine.conversations.activity import Doer
from deskwire.engine.conversations.commands import Command, Create, WorkflowCommand
from deskwire.engine.conversations.commit import Receipt
from deskwire.engine.conversations.conversation import no_such_conversation
from deskwire.engine.conversations.facts import Fact, WorkflowCompleted
from deskwire.engine.conversations.pipeline import CommandRequest, Phase, Pipeline, SharedDependencies
from deskwire.engine.conversations.ports import CommitReader, CommitTransaction
from deskwire.engine.conversations.typing import EphemeralPublisher, RemoteTypists, SetTyping, TypingIndicator
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Conflict, DomainError, NotFound, StaleState, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.oneshot import OneShot
from deskwire.engine.core.wrapper import Wrapper
from deskwire.engine.uploads.links import Links

log: Final = structlog.get_logger(__name__)

ActorCommand = Command | WorkflowCommand | SetTyping
"""The commands that an actor takes."""


class ActorFailed(Exception):
    """A bug ended the actor's state; the log line says which. Callers see no detail."""


class PendingCommand(OneShot[Receipt]):
    """A command with a place for its answer; each is answered exactly once. Typing has no commit.

    Args:
        wrapper: what else is done in the commit.
        by: who gave it; None if nothing is to be noted of that.
    """

    __slots__ = ("by", "command", "wrapper")

    def __init__(
        self, command: ActorCommand, wrapper: Wrapper[Receipt] | None = None, by: Doer | None = None
    ) -> None:
        super().__init__()
        self.command = command
        self.wrapper = wrapper
        self.by = by


class ConversationActor:
    """A conversation's task. `send_nowait` gives it work, `run` does it; `used_at` is when work last came.

    There are many, so it has nothing that it does not need yet (docs/performance.md).

    Args:
        project: whose conversation it is; for another project's id it finds nothing.
    """

    __slots__ = (
        "_inbox",
        "_indicator",
        "_outbox",
        "_pipeline",
        "_shared",
        "_unanswered",
        "used_at",
    )

    def __init__(self, project: Project, conversation_id: str, shared: SharedDependencies) -> None:
        self.used_at = 0.0
        self._pipeline = Pipeline(project, conversation_id, shared)
        self._shared = shared
        self._unanswered: list[PendingCommand] | None = None
        self._indicator: TypingIndicator | None = None
        self._outbox, self._inbox = trio.open_memory_channel[PendingCommand](
            inf
        )  # bounded by what is unanswered

    @property
    def project(self) -> Project:
        """The conversation's project."""
        return self._pipeline.project

    @property
    def conversation_id(self) -> str:
        """The conversation's id."""
        return self._pipeline.conversation_id

    def send_nowait(self, envelope: PendingCommand) -> None:
        """Queue a command. Raises Unavailable (`conversation_busy`) if the mailbox is full."""
        unanswered = self._unanswered or []
        if len(unanswered) > self._shared.mailbox:  # one of them is at work, and does not wait
            raise Unavailable(
                "Too many commands are waiting for this conversation.", code="conversation_busy"
            )
        self._outbox.send_nowait(envelope)
        unanswered.append(envelope)
        self._unanswered = unanswered

    @property
    def idle(self) -> bool:
        """The absence of a command that is not answered.

        Counted here and not read off the mailbox: a command sent to a task that is waiting for one goes
        past the mailbox, and until that task runs neither it nor the mailbox shows it.
        """
        return self._unanswered is None

    @property
    def typing(self) -> bool:
        """The state of the typing indicator: true while an agent types, so that the actor has something to say later."""
        return self._indicator is not None and self._indicator.on

    def remove_typist(self, agent_id: str, *, told: bool) -> None:
        """Keep an agent's time no longer; `told` if that is to be told, as no other node keeps it either."""
        if self._indicator is not None:
            self._indicator.leave(agent_id, told=told)

    def close(self) -> None:
        """Take no more commands; the task ends when it has answered those it has. Typing ends here and now.

        Were it left to the task, its `stopped` could come behind a `started` of the conversation's next actor.
        """
        self._outbox.close()
        if self._indicator is not None:
            self._indicator.end()

    async def run(self, ended: Callable[[ConversationActor], None]) -> None:
        """Serve commands until closed, or the conversation is gone; then call `ended`.

        Cancellation: a commit under way is carried out; whoever waits is told Unavailable.
        """
        try:
            while self._pipeline.phase is not Phase.GONE:
                # Typing apart, without a call in between: each is kept as long as the actor waits.
                envelope = await (
                    self._inbox.receive() if self._indicator is None else self._next(self._indicator)
                )
                await self._begin(envelope)
                del envelope  # with its request: nothing of it is kept while the next is waited for
        except trio.EndOfChannel:
            pass  # closed
        except trio.Cancelled:
            self._give_up()
            raise
        finally:
            ended(self)

    def _give_up(self) -> None:
        """Tell whoever waits that nothing more is answered here."""
        for envelope in self._unanswered or ():
            envelope.put(shutting_down())

    def refuse_rest(self, refusal: DomainError) -> None:
        """Answer all waiting commands with `refusal`."""
        while True:
            try:
                self._inbox.receive_nowait().put(refusal)
            except (trio.WouldBlock, trio.EndOfChannel):
                return

    async def _next(self, indicator: TypingIndicator) -> PendingCommand:
        """The next command, while typing may lapse; when it has, nothing is left of it. Raises trio.EndOfChannel."""
        while indicator.on:
            with trio.move_on_at(indicator.lapses_at):
                return await self._inbox.receive()
            indicator.lapse()
        self._indicator = None
        return await self._inbox.receive()

    async def _begin(self, envelope: PendingCommand) -> None:
        """Have a command carried out, or refuse it; one that takes long is waited for."""
        try:
            if isinstance(envelope.command, SetTyping):
                self._answer(envelope, await self._set_typing(envelope.command))
            else:
                await self._pipeline.begin(
                    CommandRequest(
                        envelope.command, envelope.wrapper, partial(self._ended, envelope), envelope.by
                    )
                )
        except Exception as error:  # noqa: BLE001  # the task's top, logged there: a bug ends this state and nothing else
            self._answer(envelope, self._refusal(error))

    async def _set_typing(self, command: SetTyping) -> Receipt:
        """Set the indicator. Nothing is written; one row is read, which also brings the contact as it is now.

        Others may run meanwhile, but no commit of this conversation does: this task alone begins them.
        """
        await self._pipeline.settled()
        state, contact = await self._pipeline.read(inline=True)
        if self._indicator is None:
            self._indicator = TypingIndicator(self.project, self._shared.publisher)
        self._indicator.set(state, contact, command)
        if self._shared.elsewhere is not None:
            self._shared.elsewhere.note(self.project.rowid, self.conversation_id, command)
        return Receipt(state, state, contact, self.project)

    def _ended(self, envelope: PendingCommand, outcome: Receipt | Exception) -> None:
        """Answer at the end of a commit."""
        try:
            if isinstance(outcome, Receipt):
                self._note(outcome.facts)
            else:
                outcome = self._refusal(outcome)
        except Exception as error:  # noqa: BLE001  # the call's top, logged there: a bug must not end the writer
            outcome = self._refusal(error)
        self._answer(envelope, outcome)

    def _note(self, facts: tuple[Fact, ...]) -> None:
        """Take note of what has happened; the log says which workflow could not go on."""
        if self._indicator is not None:
            self._indicator.note(facts)
        if self._shared.elsewhere is not None:
            self._shared.elsewhere.note_facts(self.project.rowid, self.conversation_id, facts)
        for fact in facts:
            if isinstance(fact, WorkflowCompleted) and fact.stopped is not None:
                log.warning(
                    "workflows.stopped",
                    conversation=self.conversation_id,
                    workflow=fact.workflow_id,
                    reason=fact.stopped,
                )

    def _answer(self, envelope: PendingCommand, answer: Receipt | Exception) -> None:
        assert self._unanswered is not None, "it was waited for"
        self._unanswered.remove(envelope)
        if not self._unanswered:
            self._unanswered = None
        envelope.put(answer)

    def _refusal(self, error: Exception) -> Exception:
        """The exception that an asker is told. After what is no plain refusal the next command reads the state again."""
        if isinstance(error, DomainError) and not isinstance(error, Unavailable):
            return error
        self._pipeline.doubt()
        if isinstance(error, Unavailable):
            return error
        if isinstance(error, StaleState):
            log.error("actor.stale", conversation=self.conversation_id, error=str(error))
            return Unavailable("The conversation changed meanwhile; try again.", code="conversation_busy")
        log.error("actor.failed", conversation=self.conversation_id, exc_info=error)
        return ActorFailed(f"the actor of {self.conversation_id} failed")


def shutting_down() -> Unavailable:
    """The refusal for whoever asks, or still waits, at the end."""
    return Unavailable("The service is shutting down.", code="shutting_down")


_EVICTION_LOOK: Final = 64
"""How many of the longest unused actors are looked at for an idle one before giving up."""

_Key = tuple[int, str]


class CommandCounters(Struct):
    """The counts of what has happened to commands since the start.

    Args:
        actors: started for one, as its conversation had none.
        mailbox_full: refused because too many waited for the conversation.
        too_many_actors: refused because no further actor may live.
    """

    actors: int = 0
    mailbox_full: int = 0
    too_many_actors: int = 0


class ActorRegistry:
    """The live conversations.

    Args:
        nursery: where the actors live; not that of any request.
        mailbox: commands that may wait for one conversation.
        idle_s: seconds without a command after which an actor ends.
        live: how many actors may be alive.
        publisher: where typing is told; nowhere by default.
        links: give attachments their URLs; None for who serves no files.
        wrappers: what else is done in each commit.
        bus: to other nodes, which change the conversations as well; None for a node that is alone.
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
        wrappers: Sequence[Wrapper[Receipt]] = (),
        bus: Bus | None = None,
    ) -> None:
        self.commands: Final = CommandCounters()
        self._nursery = nursery
        self._idle_s = idle_s
        self._live = live
        elsewhere = None if bus is None else RemoteTypists(bus, self._let_typist_go)
        self._shared = SharedDependencies(
            store, clock, mailbox, publisher or EphemeralPublisher(clock), links, tuple(wrappers), elsewhere
        )
        self._actors: OrderedDict[_Key, ConversationActor] = OrderedDict()  # the longest unused first
        self._tending = False
        self._ended = self._forget_ended  # one for all, as each actor keeps it

    def __len__(self) -> int:
        """Return how many actors are alive."""
        return len(self._actors)

    async def ask(
        self,
        project: Project,
        conversation_id: str,
        command: ActorCommand,
        wrapper: Wrapper[Receipt] | None = None,
        by: Doer | None = None,
    ) -> Receipt:
        """Have the conversation carry out `command`; return the receipt once that is durable.

        Args:
            wrapper: what else is done in the commit.
            by: who gave the command, for the conversation's activity.

        Raises:
            NotFound: the project has no such conversation.
            Conflict, Invalid: the command may not happen, or `wrapper` has refused it.
            Unavailable: the mailbox is full, too many actors are alive, or the disk refused.

        Cancellation: the command may still be carried out.
        """
        envelope = PendingCommand(command, wrapper, by)
        actor = self._actor(project, conversation_id)
        try:
            actor.send_nowait(envelope)
        except Unavailable:
            self.commands.mailbox_full += 1
            raise
        return await envelope.take()

    async def create(
        self,
        project: Project,
        command: Create,
        wrapper: Wrapper[Receipt] | None = None,
        by: Doer | None = None,
    ) -> Receipt:
        """Have a conversation created; otherwise as `ask`."""
        return await self.ask(project, command.conversation_id, command, wrapper, by)

    def _let_typist_go(self, project: int, conversation_id: str, agent_id: str, told: bool) -> None:
        actor = self._actors.get((project, conversation_id))
        if actor is not None:
            actor.remove_typist(agent_id, told=told)

    def _actor(self, project: Project, conversation_id: str) -> ConversationActor:
        key = (project.rowid, conversation_id)
        actor = self._actors.get(key)
        if actor is None:
            if self._nursery.cancel_scope.cancel_called:  # an actor in it would never serve
                raise shutting_down()
            self._make_room()
            actor = ConversationActor(project, conversation_id, self._shared)
            self._actors[key] = actor
            self.commands.actors += 1
            # In a context of its own: the request's would be kept alive, and its id in the log be wrong.
            spawn = partial(self._nursery.start_soon, name=conversation_id)
            Context().run(spawn, actor.run, self._ended)
            if not self._tending:
                self._tending = True
                Context().run(self._nursery.start_soon, self._tend)
        else:
            self._actors.move_to_end(key)
        actor.used_at = trio.current_time()
        return actor

    async def _tend(self) -> None:
        """End actors that nobody has used for long; one task for all, as a timer each costs more than they do."""
        try:
            while self._actors:
                key, actor = next(iter(self._actors.items()))
                until = actor.used_at + self._idle_s
                if trio.current_time() < until:
                    await trio.sleep_until(until)
                elif not self._let_go(key, actor):
                    actor.used_at = trio.current_time()
                    self._actors.move_to_end(key)
        finally:
            self._tending = False

    def _forget_ended(self, actor: ConversationActor) -> None:
        self._forget((actor.project.rowid, actor.conversation_id), actor)
        actor.refuse_rest(no_such_conversation())

    def _let_go(self, key: _Key, actor: ConversationActor, *, typing: bool = False) -> bool:
        """End the actor if it is idle; with `typing` also one that has yet to say who stops typing."""
        if not actor.idle or (actor.typing and not typing):
            return False
        self._forget(key, actor)
        return True

    def _forget(self, key: _Key, actor: ConversationActor) -> None:
        if self._actors.get(key) is actor:
            del self._actors[key]
        actor.close()

    def _make_room(self) -> None:
        if len(self._actors) < self._live:
            return
        oldest = list(islice(self._actors.items(), _EVICTION_LOOK))
        for typing in (False, True):  # Ours: a command is worth more than an indicator (ADR 9)
            if any(self._let_go(key, actor, typing=typing) for key, actor in oldest):
                return
        self.commands.too_many_actors += 1
        raise Unavailable("Too many conversations are active at once.", code="overloaded")


_AT_ONCE: Final = 16


async def ask_all(
    actors: ActorRegistry,
    project: Project,
    conversation_ids: Sequence[str],
    command: Command,
    refused: Callable[[str], object],
    *refusals: type[NotFound | Conflict],
) -> None:
    """Have a command carried out by each of these conversations.

    Args:
        refused: told the id of each that refuses the command in one of these ways, which is fine.

    Raises Unavailable or ActorFailed, the first failure of those asked together, once all of them are over.
    """
    for start in range(0, len(conversation_ids), _AT_ONCE):
        failures: list[Unavailable | ActorFailed] = []

        async def ask(conversation_id: str, failures: list[Unavailable | ActorFailed] = failures) -> None:
            try:
                await actors.ask(project, conversation_id, command)
            except refusals:
                refused(conversation_id)
            except (Unavailable, ActorFailed) as error:
                failures.append(error)

        async with trio.open_nursery() as nursery:
            for conversation_id in conversation_ids[start : start + _AT_ONCE]:
                nursery.start_soon(ask, conversation_id)
        if failures:
            raise failures[0]
