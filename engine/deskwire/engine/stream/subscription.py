"""One consumer's hold on a channel: a cursor over the event log, not a queue (decisions 5).

What waits for a slow reader is the log itself, so a subscription takes the same memory whatever its
reader does. It is `current` from the takeover until the next one; a reader looks before each write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from deskwire.engine.events import PassingEvent, StoredEvent
from deskwire.engine.log import EventLog
from deskwire.engine.stream.channel import Channel, carries

_EVENTS: Final = 64
"""Events of one batch at most: what a read from the disk may bring into memory."""
_BYTES: Final = 64 * 1024
"""Envelope bytes of one batch, once it has an event: what one write must get through in its time."""
_IDLE_S: Final = 3600.0
"""How often an idle cursor is moved up, so that retention never passes it unnoticed."""
_PASSING: Final = 32
"""Typing events that wait for a slow reader; the oldest are dropped, as later ones overrule them."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events to send next, in commit order, and the log position they reach up to."""

    events: Sequence[StoredEvent]
    upto: int


@dataclass(frozen=True, slots=True)
class Start:
    """Where a consumer begins.

    Args:
        position: in the log; what lies behind it is sent.
        resumed_after: id of the newest event at or before it, None when starting from now.
        gap: stored events no longer reach back as far as was asked for.
    """

    position: int
    resumed_after: str | None = None
    gap: bool = False


class Subscription:
    """A consumer's hold on one channel; made by `Hub.subscribe`.

    Args:
        superseded: called once, on the Trio thread, when another consumer has taken the channel.
        written: position up to which everything is written, 0 before its consumer was told where it begins.
        admits: says which of the project's events the channel carries.
    """

    __slots__ = (
        "_admits",
        "_cursor",
        "_log",
        "_passing",
        "_stir",
        "channel",
        "consumer_id",
        "current",
        "start",
        "superseded",
        "typing",
        "written",
    )

    def __init__(
        self,
        log: EventLog,
        channel: Channel,
        consumer_id: str,
        start: Start,
        superseded: Callable[[], None],
        *,
        typing: bool,
        admits: Callable[[Channel, StoredEvent], bool],
    ) -> None:
        self.channel = channel
        self.consumer_id = consumer_id
        self.start = start
        self.superseded = superseded
        self.typing = typing
        self.current = True
        self.written = 0
        self._cursor = start.position
        self._log = log
        self._admits = admits
        self._passing: deque[PassingEvent] = deque(maxlen=_PASSING)
        self._stir = trio.Event()

    async def next(self) -> Batch:
        """What the log has next; without events if none was the channel's, or after an idle hour.

        A batch without events still moves the position: what was passed over need not be read again.

        Cancellation: nothing is lost; the same events come again.
        """
        project = self.channel.project
        chunk = await self._log.read(project, self._cursor, _EVENTS)
        if not chunk.events:
            with trio.move_on_after(_IDLE_S):
                await self._log.wait(project, chunk.upto)
            chunk = await self._log.read(project, chunk.upto, _EVENTS)
        wanted = [event for event in chunk.events if self._admits(self.channel, event)]
        batch = _cut(wanted, chunk.upto)
        self._cursor = batch.upto
        return batch

    async def next_passing(self) -> PassingEvent:
        """The next typing event; for a reader that fell behind, of the newest only.

        Cancellation: nothing is lost.
        """
        await trio.lowlevel.checkpoint()
        while not self._passing:
            self._stir = trio.Event()
            await self._stir.wait()
        return self._passing.popleft()

    def offer(self, event: PassingEvent) -> None:
        """Pass a typing event to the reader, if the channel carries it; the oldest that waits may go for it."""
        if carries(self.channel, event):
            self._passing.append(event)
            self._stir.set()


def _cut(events: Sequence[StoredEvent], upto: int) -> Batch:
    size = 0
    for count, event in enumerate(events):
        size += len(event.body)
        if size > _BYTES and count:
            return Batch(events[:count], events[count - 1].position)
    return Batch(events, upto)
