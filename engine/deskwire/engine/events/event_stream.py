"""A stream of one source of the event log to one reader: a cursor, a wake-up, and a short queue of ephemeral events.

A slow reader takes little memory: its stored events wait in the log, and only the newest ephemeral events are queued.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.log import NO_EVENT_ID, EventLog, Source
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.tail import BATCH_SIZE, Tail, count_fitting
from deskwire.engine.events.types import StoredEvent

_EPHEMERAL_MAX: Final = 32  # maximum ephemeral events queued for a slow reader; the oldest are dropped

# Minimum interval between two batches of one reader, so that a busy project does not wake its readers for each event.
_MIN_BATCH_INTERVAL_S: Final = 0.05

B = TypeVar("B", bound=str)


class Ephemeral(Protocol):
    """An ephemeral event."""

    @property
    def body(self) -> bytes:
        """The event as sent: a JSON object with its `type` and `data`."""


class StreamStart(NamedTuple):
    """The position in the log after which a stream begins.

    Args:
        position: log position; later events are sent.
        at: id of the newest event at the start; None before `begin`.
        resumed_after: id of the event that the reader already has; None when starting from now.
        gap: True if missed events are no longer stored or unknown.
    """

    position: int
    at: str | None
    resumed_after: str | None = None
    gap: bool = False


class StreamBatch(NamedTuple, Generic[B]):
    """The next items to write: events in commit order, ephemeral events, or the reason for the end."""

    events: Sequence[StoredEvent] = ()
    ephemeral: Sequence[Ephemeral] = ()
    bye: B | None = None


class EventStream(Generic[B]):
    """An open stream of a source that its owner has opened in the log.

    Args:
        drop: ends the connection at once and discards unsent data.

    Attributes:
        lapsed: True if the node has been without its lease for too long and may lack new events.
    """

    __slots__ = (
        "_cursor",
        "_ephemeral",
        "_log",
        "_next_at",
        "_source",
        "_tail",
        "_wakeup",
        "bye",
        "drop",
        "lapsed",
        "start",
    )

    def __init__(self, log: EventLog, tail: Tail, source: Source, drop: Callable[[], None]) -> None:
        self.drop = drop
        self.bye: B | None = None
        self.lapsed = False
        self.start = StreamStart(0, None)
        self._log = log
        self._tail = tail
        self._source = source
        self._cursor = 0
        self._next_at = -inf
        self._ephemeral: deque[Ephemeral] | None = None  # None while empty: most streams have nothing queued
        self._wakeup: trio.Event | None = None
        tail.listen(self.wake)

    def begin(self, start: StreamStart, none_until: int = 0) -> None:
        """Set the start; called once, before the first batch.

        Args:
            none_until: the position up to which the source is known to have no event after the start.
        """
        self.start, self._cursor = start, max(start.position, none_until)
        if start.resumed_after is None:  # no event is between the newest one and the tail's floor
            self._cursor = max(self._cursor, self._tail.floor)

    @property
    def lag(self) -> int:
        """The number of unread events in memory; the disk may have more."""
        return self._tail.count_after(self._cursor)

    def wake(self) -> None:
        """Wake the reader to look for new items."""
        if self._wakeup is not None:
            self._wakeup.set()

    def end(self, bye: B) -> None:
        """End the stream; unread events are left to the reader's next stream. The first reason counts."""
        self.bye = self.bye or bye
        self.wake()

    def lapse(self) -> None:
        """End the stream without a goodbye, so that the reader connects again, possibly to another node."""
        self.lapsed = True
        self.wake()

    def offer(self, event: Ephemeral) -> None:
        """Queue an ephemeral event; the oldest one is dropped if the queue is full."""
        if self._ephemeral is None:
            self._ephemeral = deque(maxlen=_EPHEMERAL_MAX)
        self._ephemeral.append(event)
        self.wake()

    @property
    def _queued(self) -> bool:
        """True if something other than stored events is to be written."""
        return self._ephemeral is not None

    async def next_items(self) -> StreamBatch[B]:
        """Return the next items to write, once there are any.

        Raises Unavailable if events can't be read from the disk, and after the stream has lapsed. Cancellation: nothing is
        lost.
        """
        await trio.lowlevel.checkpoint()
        while self.bye is None:
            if self.lapsed:
                raise Unavailable("This node has lost touch with the others.", code="out_of_touch")
            reached = self._tail.reaches(self._cursor)
            events = self._recent() if reached else await self._stored()
            if events or self._queued:
                ephemeral, self._ephemeral = tuple(self._ephemeral or ()), None
                self._next_at = trio.current_time() + _MIN_BATCH_INTERVAL_S
                return StreamBatch(events, ephemeral)
            if reached:
                await self._wait()
                await trio.sleep_until(self._next_at)
        return StreamBatch(bye=self.bye)

    async def read(self) -> Sequence[StoredEvent]:
        """Return the next stored events; none if there are none yet. Raises Unavailable. Cancellation: nothing is lost."""
        await trio.lowlevel.checkpoint()
        while not self._tail.reaches(self._cursor):
            if events := await self._stored():
                return events
        return self._recent()

    async def _wait(self) -> None:
        self._wakeup = trio.Event()
        try:
            await self._wakeup.wait()
        finally:
            self._wakeup = None

    def _recent(self) -> Sequence[StoredEvent]:
        return self._moved(self._tail.after(self._cursor, BATCH_SIZE), self._tail.head.position)

    async def _stored(self) -> Sequence[StoredEvent]:
        chunk = await self._log.stored(self._source, self._cursor, BATCH_SIZE)
        return self._moved(chunk.events, chunk.upto)

    def _moved(self, events: Sequence[StoredEvent], newest: int) -> Sequence[StoredEvent]:
        """Advance the cursor by one batch of these events, and return that batch.

        Args:
            events: the next events, complete up to `newest` or cut off at the batch size.
        """
        count = count_fitting(events)
        if count == len(events) < BATCH_SIZE:
            self._cursor = max(newest, self._cursor)
            return events
        self._cursor = events[count - 1].position
        return events[:count]

    def close(self) -> None:
        """Stop listening and close the source in the log, once the reader has finished."""
        self._tail.unlisten(self.wake)
        self._log.close(self._source)


def find_start(reader: EventReader, project: int, after: str | None) -> StreamStart:
    """Return the start after the event `after`; or the newest position, with a gap if that event is unknown.

    An event is unknown if it was pruned or erased, or if it is newer than a restored backup. The events after it can't be
    determined then, so the page fetches everything again. The newest pruned event is an exception, because all events after
    it are stored.
    """
    newest = reader.newest_event(project)
    now = StreamStart(*(newest or (0, NO_EVENT_ID)))
    if after is None:
        return now
    pruned, _ = reader.event_window(project)
    if after == NO_EVENT_ID:
        return now._replace(gap=True) if pruned else StreamStart(0, now.at, after)
    position = reader.event_position(project, after)
    if after == pruned or reader.is_event_at(project, position, after):
        return StreamStart(position, now.at, after)
    return now._replace(gap=True)
