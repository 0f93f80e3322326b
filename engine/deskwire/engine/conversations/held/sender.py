"""The timer of held messages: each is sent at its time through its conversation's actor.

Several nodes may run it: the commit that sends a message removes it as held, so a second one finds nothing to send.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

import structlog
import trio

from deskwire.engine.conversations.actor import ActorFailed
from deskwire.engine.conversations.held.held import HeldMessage, Refusal, refusal_of
from deskwire.engine.conversations.held.ports import HoldingTransaction, SendingReader
from deskwire.engine.conversations.held.sending import Sent, ready, refuse, send
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, NotFound, Unavailable
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.core.tasks.scheduled import ScheduledTask

log: Final = structlog.get_logger(__name__)

_BATCH_SIZE: Final = 64
"""Messages that are sent together; they share commits."""

_FAILED: Final = Refusal(
    "internal_error",
    "Something went wrong here, and the message was not sent. Send it again, or take it back.",
)


class HeldSender(ScheduledTask[SendingReader, HoldingTransaction]):
    """A task that sends each held message at its time, and keeps those that can't be sent with the reason."""

    delayed: ClassVar = "conversations.held_messages_delayed"

    def __init__(
        self, store: Store[SendingReader, HoldingTransaction], clock: Clock, actors: ActorRegistry
    ) -> None:
        super().__init__(store, clock)
        self._actors = actors

    @staticmethod
    def next_due(reader: SendingReader) -> int | None:
        """Return the time (ms) at which the next message is to be sent."""
        return reader.next_held()

    async def run_batch(self) -> bool:
        """See `ScheduledTask.run_batch`: a batch of messages, those of one conversation in their order."""
        now = self._clock()
        due = await self._store.read(lambda reader: reader.due_held(now, _BATCH_SIZE))
        queues: dict[str, list[HeldMessage]] = {}
        for held in due:
            queues.setdefault(held.conversation_id, []).append(held)
        delayed: list[Unavailable] = []
        async with trio.open_nursery() as nursery:
            for queue in queues.values():
                nursery.start_soon(self._send_all, queue, delayed)
        if delayed:
            raise delayed[0]
        return len(due) == _BATCH_SIZE

    async def _send_all(self, queue: list[HeldMessage], delayed: list[Unavailable]) -> None:
        for held in queue:
            try:
                await self._send(held)
            except Unavailable as error:
                delayed.append(error)
                return

    async def _send(self, held: HeldMessage) -> None:
        """Send a message, or note why it can't be sent. Raises Unavailable to be tried again."""
        try:
            prepare = partial(ready, held=held, now=self._clock(), if_sequence=held.if_sequence)
            made = await self._store.read(prepare)
            await send(self._actors, made, Sent(made))
        except Unavailable:
            raise
        except NotFound:  # sent, taken back, or its conversation is gone
            log.debug("held_messages.gone", message=held.id)
        except DomainError as error:
            await self._refuse(held, refusal_of(error))
        except ActorFailed:  # a bug, which the actor has logged
            await self._refuse(held, _FAILED)

    async def _refuse(self, held: HeldMessage, problem: Refusal) -> None:
        log.info(
            "held_messages.refused", message=held.id, conversation=held.conversation_id, code=problem.code
        )
        await self._store.write(InlineJob(partial(refuse, held=held, problem=problem)))
