"""A consumer's hold on a channel: a cursor over the event log, not a queue (decisions 5).

What waits for a slow reader is the log itself, so a subscription takes the same memory whatever its
reader does; and as there are thousands of idle ones, it has nothing that it does not need. It is `current` from its
takeover until the next one, and its reader checks that before each write. Where nodes share the store it is paused
while the lease of its node is in doubt (`LeasedSubscription`).
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
from deskwire.engine.stream.channel import Channel, carries
from deskwire.engine.stream.ports import StreamReader, StreamTransaction

Loss = Literal["superseded", "ended", "lapsed"]
"""The way a consumer loses a channel: another has taken it, it was ended by a call, or this node can't hold it any more."""

_TYPING_EVENTS: Final = 32
"""Typing events that wait for a slow reader; the oldest are dropped, as later ones overrule them."""


class SubscriptionBatch(NamedTuple):
    """Events to send next, in commit order, and the log position they reach up to; `more` may follow at once."""

    events: Sequence[StoredEvent]
    upto: int
    more: bool


class ResumePoint(Struct, frozen=True):
    """The place in the log at which a consumer begins.

    Args:
        position: in the log; what lies behind it is sent.
        resumed_after: id of the newest event at or before it, None when starting from now.
        gap: stored events no longer reach back as far as was asked for.
        lost: it is another log than the one that was confirmed, so that no position in that means anything here.
    """

    position: int
    resumed_after: str | None = None
    gap: bool = False
    lost: bool = False


class Subscription:
    """A consumer's hold on one channel; made by `Hub.subscribe`, which has opened the channel in the log.

    Args:
        lost: called once, on the Trio thread, when the consumer has lost the channel.
        written: position up to which everything is written, -1 before its consumer was told where it begins.
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
        channel: Channel,
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
        self._waiting_typing: deque[EphemeralEvent] | None = deque(maxlen=_TYPING_EVENTS) if typing else None
        self._wakeup: trio.Event | None = None

    def listen(self, call: Callable[[], object]) -> None:
        """Have `call` called, from now on, when there may be more, and when the subscription ends."""
        assert self._call is None, "there is one listener"
        self._call = call
        self._tail.listen(call)

    def recent(self) -> SubscriptionBatch | None:
        """Return what the log has next in memory; None if it must be read from the disk, by `stored`.

        A batch without events still moves the position: events that the channel does not carry need not be read again.
        """
        if not self._tail.reaches(self._cursor):
            return None
        return self._take(self._tail.after(self._cursor, BATCH_SIZE), self._tail.head.position)

    async def stored(self) -> SubscriptionBatch:
        """Return what the log has next, read from the disk.

        Cancellation: nothing is lost; the same events come again. Raises Unavailable.
        """
        chunk = await self._log.stored(self._source, self._cursor, BATCH_SIZE)
        return self._take(chunk.events, chunk.upto)

    def _take(self, events: Sequence[StoredEvent], newest: int) -> SubscriptionBatch:
        """Return one batch of these events, which are all that the channel has up to `newest`, or the first of them."""
        count = count_fitting(events)
        if count == len(events) < BATCH_SIZE:
            self._cursor = max(newest, self._cursor)
            return SubscriptionBatch(events, self._cursor, False)
        self._cursor = events[count - 1].position
        return SubscriptionBatch(events[:count], self._cursor, True)

    def rewind(self) -> None:
        """Return the last batch, which was not written, to be read again."""
        self._cursor = self.written

    @property
    def held(self) -> bool:
        """True if its consumer has not lost the channel, even if nothing may be written now."""
        return self.current

    def wake(self) -> None:
        """Call the listener, because there may be more to write."""
        if self._call is not None and not self._closed:
            self._call()

    @property
    def reached(self) -> int:
        """The log position up to which everything is written, also over what the channel does not carry."""
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
        """Return the next typing event; a reader that fell behind gets only the newest ones.

        Cancellation: nothing is lost.
        """
        await trio.lowlevel.checkpoint()
        while not self._waiting_typing:
            self._wakeup = trio.Event()
            await self._wakeup.wait()
        return self._waiting_typing.popleft()

    def offer(self, event: EphemeralEvent) -> None:
        """Pass a typing event to the reader, if it asked for them and the channel carries it.

        The oldest that waits may be dropped for it.
        """
        if self._waiting_typing is not None and carries(self.channel, event):
            self._waiting_typing.append(event)
            if self._wakeup is not None:
                self._wakeup.set()


class LeasedSubscription(Subscription):
    """A hold that is valid only with its node's lease: without the lease, another node may have the channel.

    It pauses at the moment at which the lease is in doubt, and nothing is written from then on. A valid lease alone does
    not end the pause, because another consumer may have had the channel in between: the row is read first, then `resume`
    ends it.
    """

    __slots__ = ("_cluster", "_held", "_incarnation", "_paused")

    def __init__(
        self,
        cluster: Cluster,
        log: EventLog,
        tail: Tail,
        channel: Channel,
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


Resume = Literal["auto", "live"] | str
"""`auto`, `live`, or an event id."""


def is_resume(text: str) -> bool:
    """Return whether `text` is a resume choice: `auto`, `live`, or an event id."""
    return text in ("auto", "live") or is_id(text, "evt")


async def find_start(
    store: Store[StreamReader, StreamTransaction],
    log: EventLog,
    channel: Channel,
    resume: Resume,
    confirmed: int | None,
    *,
    oldest_ms: int,
    known: str | None = None,
    shared: bool = False,
) -> ResumePoint:
    """Return the start that `resume` asks for.

    Args:
        confirmed: position the channel's last consumer had confirmed, None if it never had one.
        oldest_ms: how far back `auto` goes: if the oldest event that was missed was made before this
            (milliseconds since the epoch), the gap is too long. Only the channel's events count.
        known: id of the newest event at that position, as it was confirmed; None if that is not known, empty if it
            has been told of a gap that nobody has confirmed since.
        shared: whether the log's end is that of the store, so that nothing that lies behind it was of this log.
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
    """Return whether the log is another than the one in which `known` was the newest event at `position`.

    A database that was replaced by its copy may lack the newest events, and gives their positions once more: to
    events with later ids. What was erased since only makes the newest one there an earlier one.
    """
    _, newest = reader.event_window(project)
    if known == "" or known > (newest or ""):
        return True
    there = reader.event_id_at(project, position)
    return there is not None and there > known
