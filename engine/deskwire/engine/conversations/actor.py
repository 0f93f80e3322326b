"""One task per live conversation: it takes commands, one after the other, and answers each exactly once.

Whoever asked may be gone by then: the command is carried out all the same, as the actor lives in the registry's
nursery and not in the request's. What a command does to the conversation is its pipeline's affair, which ends in a
call: the task does not wait for a commit. Typing is not committed; the actor keeps its time while it waits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Final

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.commands import Command, WorkflowCommand
from deskwire.engine.conversations.facts import Fact, WorkflowCompleted
from deskwire.engine.conversations.pipeline import Phase, Pipeline, Request, Shared
from deskwire.engine.conversations.plan import Receipt
from deskwire.engine.conversations.typing.indicator import Indicator
from deskwire.engine.conversations.typing.state import SetTyping
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.errors import DomainError, StaleState, Unavailable
from deskwire.engine.core.tasks.oneshot import OneShot

log: Final = structlog.get_logger(__name__)

ActorCommand = Command | WorkflowCommand | SetTyping
"""The commands that an actor takes."""


class ActorFailed(Exception):
    """A bug ended the actor's state; the log line says which. Callers see no detail."""


class Envelope(OneShot[Receipt]):
    """A command with a place for its answer; each is answered exactly once. Typing has no commit.

    Args:
        wrapper: what else is done in the commit.
        by: who gave it; None if nothing is to be noted of that.
    """

    __slots__ = ("by", "command", "wrapper")

    def __init__(
        self, command: ActorCommand, wrapper: CommitHook[Receipt] | None = None, by: Actor | None = None
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

    def __init__(self, project: Project, conversation_id: str, shared: Shared) -> None:
        self.used_at = 0.0
        self._pipeline = Pipeline(project, conversation_id, shared)
        self._shared = shared
        self._unanswered: list[Envelope] | None = None
        self._indicator: Indicator | None = None
        self._outbox, self._inbox = trio.open_memory_channel[Envelope](inf)  # bounded by what is unanswered

    @property
    def project(self) -> Project:
        """The conversation's project."""
        return self._pipeline.project

    @property
    def conversation_id(self) -> str:
        """The conversation's id."""
        return self._pipeline.conversation_id

    def send_nowait(self, envelope: Envelope) -> None:
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

    def let_typist_go(self, agent_id: str, *, told: bool) -> None:
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

    async def _next(self, indicator: Indicator) -> Envelope:
        """The next command, while typing may lapse; when it has, nothing is left of it. Raises trio.EndOfChannel."""
        while indicator.on:
            with trio.move_on_at(indicator.lapses_at):
                return await self._inbox.receive()
            indicator.lapse()
        self._indicator = None
        return await self._inbox.receive()

    async def _begin(self, envelope: Envelope) -> None:
        """Have a command carried out, or refuse it; one that takes long is waited for."""
        try:
            if isinstance(envelope.command, SetTyping):
                self._answer(envelope, await self._set_typing(envelope.command))
            else:
                await self._pipeline.begin(
                    Request(envelope.command, envelope.wrapper, partial(self._ended, envelope), envelope.by)
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
            self._indicator = Indicator(self.project, self._shared.publisher)
        self._indicator.set(state, contact, command)
        if self._shared.elsewhere is not None:
            self._shared.elsewhere.note(self.project.rowid, self.conversation_id, command)
        return Receipt(state, state, contact, self.project)

    def _ended(self, envelope: Envelope, outcome: Receipt | Exception) -> None:
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

    def _answer(self, envelope: Envelope, answer: Receipt | Exception) -> None:
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
