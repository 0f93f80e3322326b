"""One task per live conversation: it owns the state and decides one command after the other.

A command is decided against the state, committed, and answered once it is durable. Whoever asked may be
gone by then: the command is carried out all the same, as the actor lives in the directory's nursery and
not in the request's. The task does not wait for the commit, which ends in a call: the next command is decided against
the state as it will be, so that those that come together share a commit. Should one of them fail, what is stored is
not what the next one expects, and that one is decided anew. A refusal waits until what it rests on is durable.
Typing is not committed; the actor keeps its time while it waits for commands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

import structlog
import trio

from deskwire.engine.clock import Clock
from deskwire.engine.commands import Command, Create, WorkflowCommand
from deskwire.engine.contact import Contact
from deskwire.engine.conversation import Conversation
from deskwire.engine.errors import DomainError, NotFound, StaleState, Unavailable
from deskwire.engine.facts import Fact, WorkflowCompleted
from deskwire.engine.indicator import Indicator, Passing
from deskwire.engine.people import Project
from deskwire.engine.ports import Brief, Store, Transaction
from deskwire.engine.proposal import propose, workflow_for
from deskwire.engine.slot import Slot
from deskwire.engine.turn import Receipt
from deskwire.engine.typists import SetTyping
from deskwire.engine.uploads.links import Links
from deskwire.engine.workflows.conduct import needs

log: Final = structlog.get_logger(__name__)

Asked = Command | WorkflowCommand | SetTyping
"""What may be asked of an actor."""


Around = Callable[[Callable[[Transaction], Receipt]], Callable[[Transaction], Receipt]]
"""Puts a shell around the commit of a command, so that more is done in it."""


class ActorFailed(Exception):
    """A bug ended the actor; the log line says which. Callers see no detail."""


class Ask(Slot[Receipt]):
    """A command with a place for its answer; every ask is answered exactly once. Typing has no commit.

    Args:
        around: what else is done in the commit.
    """

    __slots__ = ("around", "command")

    def __init__(self, command: Asked, around: Around | None = None) -> None:
        super().__init__()
        self.command = command
        self.around = around


@dataclass(frozen=True, slots=True)
class Shared:
    """What all actors share.

    Args:
        mailbox: how many commands may wait for each.
        passing: where typing is told.
        links: give attachments their URLs; None for who serves no files.
    """

    store: Store
    clock: Clock
    mailbox: int
    passing: Passing
    links: Links | None = None


class Actor:
    """A conversation's task. `send_nowait` gives it work, `run` does it; `used_at` is when work last came.

    There are many, so it has nothing that it does not need yet (docs/performance.md).

    Args:
        project: whose conversation it is; for another project's id it finds nothing.
    """

    __slots__ = (
        "_gone",
        "_inbox",
        "_indicator",
        "_none_under_way",
        "_outbox",
        "_shared",
        "_state",
        "_unanswered",
        "_under_way",
        "conversation_id",
        "project",
        "used_at",
    )

    def __init__(self, project: Project, conversation_id: str, shared: Shared) -> None:
        self.project = project
        self.conversation_id = conversation_id
        self.used_at = 0.0
        self._unanswered = 0
        self._under_way: list[Ask] | None = None
        self._none_under_way: trio.Event | None = None
        self._gone = False
        self._shared = shared
        self._state: Conversation | None = None
        self._indicator: Indicator | None = None
        self._outbox, self._inbox = trio.open_memory_channel[Ask](inf)  # bounded by what is unanswered

    def send_nowait(self, ask: Ask) -> None:
        """Queue a command. Raises Unavailable (`conversation_busy`) if the mailbox is full."""
        if self._unanswered > self._shared.mailbox:  # one of them is at work, and does not wait
            raise Unavailable(
                "Too many commands are waiting for this conversation.", code="conversation_busy"
            )
        self._outbox.send_nowait(ask)
        self._unanswered += 1

    @property
    def idle(self) -> bool:
        """Whether every command is answered.

        Counted here and not read off the mailbox: a command sent to a task that is waiting for one goes
        past the mailbox, and until that task runs neither it nor the mailbox shows it.
        """
        return self._unanswered == 0

    @property
    def typing(self) -> bool:
        """Whether an agent types, so that the actor has something to say later."""
        return self._indicator is not None and self._indicator.on

    def close(self) -> None:
        """Take no more commands; the task ends when it has answered those it has. Typing ends here and now.

        Were it left to the task, its `stopped` could come behind a `started` of the conversation's next actor.
        """
        self._outbox.close()
        if self._indicator is not None:
            self._indicator.end()

    async def run(self, ended: Callable[[Actor], None]) -> None:
        """Serve commands until closed, or the conversation is gone; then call `ended`.

        Cancellation: a commit under way is carried out; whoever waits is told Unavailable.
        """
        try:
            while not self._gone:
                # Typing apart, without a call in between: each is kept as long as the actor waits.
                ask = await (
                    self._inbox.receive() if self._indicator is None else self._next(self._indicator)
                )
                await self._begin(ask)
                del ask  # with its request: nothing of it is kept while the next is waited for
        except trio.EndOfChannel:
            pass  # closed
        except trio.Cancelled:
            self._give_up()
            raise
        finally:
            ended(self)

    def _give_up(self) -> None:
        """Tell whoever waits that nothing more is answered here."""
        for each in self._under_way or ():
            each.put(shutting_down())
        self.refuse_rest(shutting_down())

    def refuse_rest(self, refusal: DomainError) -> None:
        """Answer all waiting commands with `refusal`."""
        while True:
            try:
                self._inbox.receive_nowait().put(refusal)
            except (trio.WouldBlock, trio.EndOfChannel):
                return

    async def _next(self, indicator: Indicator) -> Ask:
        """The next command, while typing may lapse; when it has, nothing is left of it. Raises trio.EndOfChannel."""
        while indicator.on:
            with trio.move_on_at(indicator.lapses_at):
                return await self._inbox.receive()
            indicator.lapse()
        self._indicator = None
        return await self._inbox.receive()

    async def _begin(self, ask: Ask) -> None:
        """Refuse a command, or have it committed; one that takes long is waited for."""
        try:
            command = ask.command
            if isinstance(command, SetTyping):
                await self._settled()
                self._answer(ask, self._set_typing(command))
                return
            await self._known(command)
            try:
                waits = self._commit(ask, command)
            except DomainError:
                if not self._under_way:
                    raise
                waits = None
            if waits is None:
                await self._settled()
                await self._known(command)
                waits = self._commit(ask, command)
            if waits:
                await self._settled()
        except trio.Cancelled:
            ask.put(shutting_down())
            raise
        except Exception as error:  # noqa: BLE001  # the task's top, logged there: a bug ends this state and nothing else
            self._answer(ask, self._refusal(error))

    async def _known(self, command: Command | WorkflowCommand) -> None:
        """Return when the state is known that `command` is decided against."""
        if self._state is None:
            await self._settled()
        if self._state is None and not isinstance(command, Create):
            await self._load()

    async def _settled(self) -> None:
        """Return when no commit of this conversation is under way."""
        if self._under_way:
            self._none_under_way = trio.Event()
            await self._none_under_way.wait()

    def _commit(self, ask: Ask, command: Command | WorkflowCommand) -> bool | None:
        """Decide against the state that is known, and have it committed; whether that takes long.

        None if it has to be alone, and nothing is done: an erasure takes what its own commit is about to publish.
        """
        shared, state, at = self._shared, self._state, self._shared.clock()
        workflow = None
        if needs(state, command) is not None:
            workflow = shared.store.peek(lambda reader: workflow_for(reader, self.project, state, command))
        proposal = propose(self.project, state, command, at, workflow, shared.links)
        if proposal.long and self._under_way:
            return None
        job = proposal.job if ask.around is None else ask.around(proposal.job)

        def ended(answer: Receipt | Exception) -> None:
            if isinstance(answer, StaleState) and not isinstance(command, Create):
                # One before it has failed, or an import has added to the conversation behind its actor (ADR 30).
                log.info("actor.state_changed", conversation=self.conversation_id, found=str(answer))
                self._state = None
                self._commit_anew(ask, command)
            else:
                self._end(ask, answer, proposal.facts)

        shared.store.submit(job if proposal.long else Brief(job), ended)
        if self._under_way is None:
            self._under_way = [ask]
        else:
            self._under_way.append(ask)
        if proposal.after is not None and state is not None:  # a new one has its key when it is stored
            self._state = proposal.after
        return proposal.long

    def _end(self, ask: Ask, answer: Receipt | Exception, facts: tuple[Fact, ...]) -> None:
        """Take note of how a commit has ended, and answer."""
        self._forget(ask)
        try:
            if isinstance(answer, Receipt):
                self._gone = answer.state is None
                if not self._under_way:
                    self._state = answer.state
                if self._indicator is not None:
                    self._indicator.note(facts)
                self._note_stops(facts)
            else:
                self._state = None  # it was to be what is not stored
                answer = self._refusal(answer)
        except Exception as error:  # noqa: BLE001  # the call's top, logged there: a bug must not end the writer
            answer = self._refusal(error)
        if not self._under_way and self._none_under_way is not None:
            self._none_under_way.set()
            self._none_under_way = None
        self._answer(ask, answer)

    def _forget(self, ask: Ask) -> None:
        """The ask is no longer under way."""
        assert self._under_way is not None, "it was under way"
        self._under_way.remove(ask)
        if not self._under_way:
            self._under_way = None

    def _answer(self, ask: Ask, answer: Receipt | Exception) -> None:
        ask.put(answer)
        self._unanswered -= 1

    def _refusal(self, error: Exception) -> Exception:
        """What an asker is told. After a commit that failed the state is forgotten: the next command reads it again."""
        if isinstance(error, DomainError) and not isinstance(error, Unavailable):
            return error
        self._state = None
        if isinstance(error, Unavailable):
            return error
        if isinstance(error, StaleState):
            log.error("actor.stale", conversation=self.conversation_id, error=str(error))
            return Unavailable("The conversation changed meanwhile; try again.", code="conversation_busy")
        log.error("actor.failed", conversation=self.conversation_id, exc_info=error)
        return ActorFailed(f"the actor of {self.conversation_id} failed")

    def _commit_anew(self, ask: Ask, command: Command | WorkflowCommand) -> None:
        """Decide within the commit, against what is stored: nothing comes in between."""
        shared, at = self._shared, self._shared.clock()
        decided: list[tuple[Fact, ...]] = []

        def job(tx: Transaction) -> Receipt:
            found = tx.conversation(self.project.rowid, self.conversation_id)
            if found is None:
                raise no_such_conversation()
            workflow = workflow_for(tx, self.project, found[0], command)
            proposal = propose(self.project, found[0], command, at, workflow, shared.links)
            decided.append(proposal.facts)  # the last one counts: a job may be run again
            return proposal.job(tx)

        def ended(answer: Receipt | Exception) -> None:
            self._end(ask, answer, decided[-1] if decided else ())

        try:
            shared.store.submit(job if ask.around is None else ask.around(job), ended)
        except Unavailable as refusal:
            ended(refusal)

    def _note_stops(self, facts: tuple[Fact, ...]) -> None:
        """Say in the log which workflow could not go on."""
        for fact in facts:
            if isinstance(fact, WorkflowCompleted) and fact.stopped is not None:
                log.warning(
                    "workflows.stopped",
                    conversation=self.conversation_id,
                    workflow=fact.workflow_id,
                    reason=fact.stopped,
                )

    def _set_typing(self, command: SetTyping) -> Receipt:
        """Nothing is written; what is read is one row, which also brings the contact as it is now."""
        rowid, wanted = self.project.rowid, self.conversation_id
        shared = self._shared
        state, contact = self._found(shared.store.peek(lambda reader: reader.conversation(rowid, wanted)))
        if self._indicator is None:
            self._indicator = Indicator(self.project, shared.passing)
        self._indicator.set(state, contact, command)
        return Receipt(state, state, contact, self.project)

    async def _load(self) -> None:
        rowid, wanted = self.project.rowid, self.conversation_id
        self._found(await self._shared.store.read(lambda reader: reader.conversation(rowid, wanted)))

    def _found(self, row: tuple[Conversation, Contact] | None) -> tuple[Conversation, Contact]:
        if row is None:
            self._gone = True
            raise no_such_conversation()
        self._state = row[0]
        return row


def no_such_conversation() -> NotFound:
    """The one refusal for conversations that are unknown, deleted, or another project's."""
    return NotFound("There is no such conversation.", code="conversation_not_found")


def shutting_down() -> Unavailable:
    """The refusal for whoever asks, or still waits, at the end."""
    return Unavailable("The service is shutting down.", code="shutting_down")
