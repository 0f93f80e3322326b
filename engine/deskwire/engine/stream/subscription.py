"""Subscriptions to channels, and the position at which they resume (decisions 5).

A subscription is a cursor over the event log and has no queue, so a slow reader takes no extra memory and may be behind by
any number of events. The age of missed events counts only at the start (`find_start`). A subscription has few fields, because
there are thousands of idle ones. It is `current` from its takeover until the next one, and its reader checks
that before each write. Where nodes share the store, it is paused while its node's lease is in doubt (`LeasedSubscription`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import trio
from msgspec import Struct

from deskwire.engine.cluster.cluster import Cluster
from deskwire.engine.core.ids import id_time_ms, is_id
from deskwire.engine.core.store import Store
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.tail import BATCH_SIZE, Tail, count_fitting
from deskwire.engine.events.types import EphemeralEvent, StoredEvent
from deskwire.engine.stream.channel import StreamChannel, carries
from deskwire.engine.stream.ports import StreamReader, StreamTransaction

# Why a consumer lost its channel: another one took it, a call ended it, or this node can no longer hold it.
Loss = Literal["superseded", "ended", "lapsed"]

# Maximum typing events queued for a slow reader; the oldest are dropped, because later ones supersede them.
_TYPING_EVENTS_MAX: Final = 32

Resume = Literal["auto", "live"] | str  # `auto`, `live`, or an event id


class SubscriptionBatch(NamedTuple):
    """The next events to send, in commit order.

    Args:
        upto: log position that the batch reaches.
        more: True if more events may be available at once.
    """

    events: Sequence[StoredEvent]
    upto: int
    more: bool


class ResumePoint(Struct, frozen=True):
    """The position in the log after which a subscription begins.

    Args:
        position: log position; later events are sent.
        resumed_after: id of the newest event up to the position, None when starting from now.
        gap: True if stored events do not reach back as far as requested.
        lost: True if the log was replaced since the position was confirmed, so that positions of the previous log are invalid.
    """

    position: int
    resumed_after: str | None = None
    gap: bool = False
    lost: bool = False


class Subscription:
    """A consumer's hold on one channel; made by `Hub.subscribe`, which has opened the channel in the log.

    Args:
        lost: called once, on Trio's thread, when the consumer has lost the channel.

    Attributes:
        written: position up to which all events are written; -1 before the consumer was notified of its start.
    """

    __slots__ = (
        "_call",
        "_closed",
        "_cursor",
        "_log",
        "_source",
        "_tail",
        "_waiting_typing",
        "_wakeup",
        "channel",
        "consumer_id",
        "current",
        "lost",
        "start",
        "typing",
        "written",
    )

    def __init__(
        self,
        log: EventLog,
        tail: Tail,
        channel: StreamChannel,
        consumer_id: str,
        start: ResumePoint,
        lost: Callable[[Loss], None],
        *,
        typing: bool,
    ) -> None:
        self.channel = channel
        self.consumer_id = consumer_id
        self.start = start
        self.lost = lost
        self.typing = typing
        self.current = True
        self.written = -1
        self._cursor = start.position
        self._log = log
        self._tail = tail
        self._call: Callable[[], object] | None = None
        self._source = channel.source
        self._closed = False
        self._waiting_typing: deque[EphemeralEvent] | None = (
            deque(maxlen=_TYPING_EVENTS_MAX) if typing else None
        )
        self._wakeup: trio.Event | None = None

    def listen(self, call: Callable[[], object]) -> None:
        """Call `call` from now on when there may be more events, and when the subscription ends."""
        assert self._call is None, "there is one listener"
        self._call = call
        self._tail.listen(call)

    def recent(self) -> SubscriptionBatch | None:
        """Return the next batch from memory; None if it must be read from the disk by `stored`.

        An empty batch still moves the position, so that events of other channels are not read again.
        """
        if not self._tail.reaches(self._cursor):
            return None
        return self._take(self._tail.after(self._cursor, BATCH_SIZE), self._tail.head.position)

    async def stored(self) -> SubscriptionBatch:
        """Return the next batch, read from the disk. Raises Unavailable.

        Cancellation: the next call returns the same events.
        """
        chunk = await self._log.stored(self._source, self._cursor, BATCH_SIZE)
        return self._take(chunk.events, chunk.upto)

    def _take(self, events: Sequence[StoredEvent], newest: int) -> SubscriptionBatch:
        """Advance the cursor by one batch of these events, and return that batch.

        Args:
            events: the next events, complete up to `newest` or cut off at the batch size.
        """
        count = count_fitting(events)
        if count == len(events) < BATCH_SIZE:
            self._cursor = max(newest, self._cursor)
            return SubscriptionBatch(events, self._cursor, False)
        self._cursor = events[count - 1].position
        return SubscriptionBatch(events[:count], self._cursor, True)

    def rewind(self) -> None:
        """Move back to before the last batch, because it was not written."""
        self._cursor = self.written

    @property
    def held(self) -> bool:
        """True if the consumer has not lost the channel, even if it is paused."""
        return self.current

    def wake(self) -> None:
        """Call the listener, because there may be more to write."""
        if self._call is not None and not self._closed:
            self._call()

    @property
    def reached(self) -> int:
        """The log position up to which the channel has no unwritten event."""
        if self.written < self._cursor:
            return self.written
        return self._log.settled(self._source, self.written)

    def close(self) -> None:
        """Close the channel in the log, and call the listener."""
        if not self._closed:
            self._closed = True
            self._log.close(self._source)
            if self._call is not None:
                self._tail.unlisten(self._call)

    async def next_typing(self) -> EphemeralEvent:
        """Return the next typing event; a slow reader gets only the newest ones.

        Cancellation: nothing is lost.
        """
        await trio.lowlevel.checkpoint()
        while not self._waiting_typing:
            self._wakeup = trio.Event()
            await self._wakeup.wait()
        return self._waiting_typing.popleft()

    def offer(self, event: EphemeralEvent) -> None:
        """Queue a typing event, if the consumer asked for typing events and the channel carries this one.

        If the queue is full, its oldest event is dropped.
        """
        if self._waiting_typing is not None and carries(self.channel, event):
            self._waiting_typing.append(event)
            if self._wakeup is not None:
                self._wakeup.set()


class LeasedSubscription(Subscription):
    """A subscription that is valid only with its node's lease: without it, another node may hold the channel.

    It pauses as soon as the lease is in doubt, and nothing is written during the pause. A valid lease alone does not end the
    pause, because another consumer may have had the channel in the meantime. The channel's row is read first, then `resume`
    ends the pause.
    """

    __slots__ = ("_cluster", "_held", "_incarnation", "_paused")

    def __init__(
        self,
        cluster: Cluster,
        log: EventLog,
        tail: Tail,
        channel: StreamChannel,
        consumer_id: str,
        start: ResumePoint,
        lost: Callable[[Loss], None],
        *,
        typing: bool,
    ) -> None:
        self._cluster = cluster
        self._held: bool
        self._paused = False
        self._incarnation = cluster.node.incarnation
        super().__init__(log, tail, channel, consumer_id, start, lost, typing=typing)

    @property
    def current(self) -> bool:
        """True if events may be written now. False while paused, and for good once the channel is lost."""
        if self._held and not self._paused and not self._leased():
            self._paused = True
        return self._held and not self._paused

    @current.setter
    def current(self, held: bool) -> None:
        self._held = held

    @property
    def held(self) -> bool:
        """See `Subscription.held`."""
        return self._held

    def resume(self) -> None:
        """Continue under the node's present lease; call it once the stored row names this consumer."""
        paused, self._paused = self._paused, False
        self._incarnation = self._cluster.node.incarnation
        if paused:
            self.wake()

    def _leased(self) -> bool:
        cluster = self._cluster
        return trio.current_time() < cluster.valid_until and cluster.node.incarnation == self._incarnation


def is_resume(text: str) -> bool:
    """Return whether `text` is a resume choice: `auto`, `live`, or an event id."""
    return text in ("auto", "live") or is_id(text, "evt")


async def find_start(
    store: Store[StreamReader, StreamTransaction],
    log: EventLog,
    channel: StreamChannel,
    resume: Resume,
    confirmed: int | None,
    *,
    oldest_ms: int,
    known: str | None = None,
    shared: bool = False,
) -> ResumePoint:
    """Return the start that `resume` requests.

    Args:
        confirmed: position that the channel's last consumer confirmed, None if it never had one.
        oldest_ms: how far back `auto` goes, in milliseconds since the epoch. If the channel's oldest missed event is older,
            the start has a gap.
        known: id of the newest event at the confirmed position when it was confirmed; None if unknown, empty if the consumer
            was notified of a gap that no consumer has confirmed.
        shared: True if the log's newest position is read from a shared store, so that a later position belongs to another log.
    """
    now = ResumePoint(await log.newest(channel.project))
    if resume == "live" or (resume == "auto" and confirmed is None):
        return now
    if resume != "auto":
        return await store.read(lambda reader: _behind_event(reader, channel.project, resume))
    assert confirmed is not None
    ahead = shared and confirmed > now.position
    if ahead or (
        known is not None
        and await store.read(lambda reader: is_lost(reader, channel.project, confirmed, known))
    ):
        return ResumePoint(now.position, None, gap=True, lost=True)
    missed = (await log.read(channel.source, confirmed, 1)).events
    if missed and id_time_ms(missed[0].id) < oldest_ms:
        return ResumePoint(now.position, None, gap=True)
    return await store.read(lambda reader: _behind_position(reader, channel.project, confirmed))


def _behind_event(reader: StreamReader, project: int, event_id: str) -> ResumePoint:
    pruned, newest = reader.event_window(project)
    gap = (pruned is not None and event_id < pruned) or event_id > (newest or "")
    return ResumePoint(reader.event_position(project, event_id), event_id, gap)


def _behind_position(reader: StreamReader, project: int, position: int) -> ResumePoint:
    return ResumePoint(
        position, reader.event_id_at(project, position), gap=position < reader.pruned_position(project)
    )


def is_lost(reader: StreamReader, project: int, position: int, known: str) -> bool:
    """Return whether the log was replaced since `known` was the newest event at `position`.

    A replica that became the primary may lack the newest events, and assigns their positions again, to events with later ids.
    An erasure, in contrast, only makes an earlier event the newest one at the position.
    """
    _, newest = reader.event_window(project)
    if known == "" or known > (newest or ""):
        return True
    there = reader.event_id_at(project, position)
    return there is not None and there > known
