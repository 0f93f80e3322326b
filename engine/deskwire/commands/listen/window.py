"""The window of events between the feed and the receiver; no waiting, no I/O.

An event leaves the window when it and all earlier events are finished. The cursor is the last event that has left, so a
restart there misses nothing. Events finished after the cursor are recorded, too, so that few are delivered twice.
Events with the same ordering key wait in a queue, which delivers one at a time in the feed's order. Within a
conversation this is the order of sequences. A queue whose attempts fail is troubled and has its own workers, so that
the others need not wait for it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct, field

from deskwire.commands.listen.feed import FeedEvent
from deskwire.engine.core.values import replace

SEQUENCES_MAX: Final = 1_000
"""Maximum conversations whose last sequence is kept; all are written whenever the cursor moves."""

UNFINISHED_MAX: Final = 10_000
BYTES_MAX: Final = 64 << 20
WINDOW_EVENTS_MAX: Final = 100_000
"""Maximum unfinished events, their bytes, and all events in the window. Reading pauses at each of these limits, which bound
how far a stuck conversation may fall behind before the others wait for it."""

DELETED: Final = "conversation.deleted"


class SequenceTable:
    """The last sequence of each recently active conversation.

    Args:
        last: sequences by conversation id, least recent first.
        forgot: whether older conversations were dropped.
    """

    def __init__(self, last: Mapping[str, int], forgot: bool) -> None:
        self._last = OrderedDict(last)
        self.forgot = forgot

    @property
    def last(self) -> dict[str, int]:
        """The sequences by conversation, least recent first."""
        return dict(self._last)

    def before(self, event: FeedEvent) -> int | None:
        """Return the value of `Service-Previous-Sequence`: 0 without an earlier event, None if unknown."""
        if event.conversation is None or event.sequence is None:
            return None
        unknown = None if self.forgot and event.sequence > 1 else 0
        return self._last.get(event.conversation, unknown)

    def note(self, event: FeedEvent) -> None:
        """Record the event as the newest of its conversation."""
        if event.conversation is None or event.sequence is None:
            return
        self._last.pop(event.conversation, None)
        if event.type == DELETED:  # the last event of a conversation
            return
        self._last[event.conversation] = event.sequence
        if len(self._last) > SEQUENCES_MAX:
            self._last.popitem(last=False)
            self.forgot = True

    def copy(self) -> SequenceTable:
        """Return an independent copy."""
        return SequenceTable(self._last, self.forgot)


class FinishedAhead(Struct, frozen=True):
    """The events finished after the cursor: all up to one event, with exceptions. Event ids grow with their position.

    Args:
        upto: the last finished event; None if there is none after the cursor.
        undone: ids of unfinished events before it.
    """

    upto: str | None = None
    undone: frozenset[str] = frozenset()

    def has(self, event: FeedEvent) -> bool:
        """Return whether the event is finished."""
        return self.upto is not None and event.id <= self.upto and event.id not in self.undone


NOTHING_AHEAD: Final = FinishedAhead()


class WindowEvent(Struct, eq=False):
    """An event in the window.

    Args:
        previous: see `SequenceTable.before`.
        number: its position among all events read.
        over: whether it was delivered, given up or skipped; its body is then dropped.
    """

    event: FeedEvent
    number: int
    previous: int | None = None
    wanted: bool = True
    over: bool = False


class _Queue(Struct, eq=False):
    """Waiting events with one ordering key, in order. The last attempt of a troubled queue has failed."""

    waiting: deque[WindowEvent] = field(default_factory=deque)
    troubled: bool = False
    busy: bool = False


class Window:
    """The events that are read but not finished, and finished events that follow them.

    Args:
        after: the initial cursor, None for the feed's beginning.
        sequences: the last sequences of events forwarded up to the cursor.
        ahead: events that an earlier run has finished after the cursor.
    """

    def __init__(
        self, after: str | None, sequences: SequenceTable, ahead: FinishedAhead = NOTHING_AHEAD
    ) -> None:
        self.after = after
        self.sequences: Final = sequences
        """The sequences at the cursor."""
        self.changes = 0
        """A counter that grows with every change to be saved."""
        self._was = ahead
        self._ahead = sequences.copy()
        self._held: deque[WindowEvent] = deque()
        self._queues: dict[str, _Queue] = {}
        self._ready: tuple[list[tuple[int, str]], list[tuple[int, str]]] = ([], [])
        self._read = 0
        self._undone = 0
        self._bytes = 0

    def __len__(self) -> int:
        """Return the number of unfinished events."""
        return self._undone

    @property
    def full(self) -> bool:
        """True if reading should pause."""
        return (
            self._undone >= UNFINISHED_MAX or self._bytes >= BYTES_MAX or len(self._held) >= WINDOW_EVENTS_MAX
        )

    @property
    def ahead(self) -> FinishedAhead:
        """The events finished after the cursor, in this run or in an earlier one that had read further."""
        read = self._held[-1].event.id if self._held else self.after or ""
        if self._was.upto is not None and read < self._was.upto:
            upto, known = self._was.upto, {each for each in self._was.undone if each > read}
        else:
            upto, known = next((each.event.id for each in reversed(self._held) if each.over), ""), set[str]()
        if not upto:
            return NOTHING_AHEAD
        undone = (each.event.id for each in self._held if not each.over and each.event.id < upto)
        return FinishedAhead(upto, frozenset(known.union(undone)))

    def add(self, event: FeedEvent) -> None:
        """Add the next event of the feed, to be forwarded unless an earlier run has finished it."""
        self._read += 1
        held = WindowEvent(event, self._read, self._ahead.before(event))
        self._ahead.note(event)
        self._held.append(held)
        if self._was.has(event):
            self._over(held)
            return
        self._undone += 1
        self._bytes += len(event.body)
        queue = self._queues.setdefault(event.ordering_key, _Queue())
        queue.waiting.append(held)
        if len(queue.waiting) == 1:
            self._offer(queue)

    def skip(self, event: FeedEvent) -> None:
        """Add the next event of the feed, which is not to be forwarded."""
        self._read += 1
        held = WindowEvent(event, self._read, wanted=False)
        self._held.append(held)
        self._over(held)

    def take(self, troubled: bool = False) -> WindowEvent | None:
        """Return the oldest event of an idle queue, troubled or not, if any; `end` or `again` must follow."""
        if not self._ready[troubled]:
            return None
        _, name = heappop(self._ready[troubled])
        queue = self._queues[name]
        queue.busy = True
        return queue.waiting.popleft()

    def later(self, held: WindowEvent) -> None:
        """Mark the event's queue as troubled; it waits until `again`."""
        self._queues[held.event.ordering_key].troubled = True

    def again(self, held: WindowEvent) -> None:
        """Make the event available for its next attempt."""
        queue = self._queues[held.event.ordering_key]
        queue.busy = False
        queue.waiting.appendleft(held)
        self._offer(queue)

    def end(self, held: WindowEvent, delivered: bool = True) -> None:
        """Mark the event as delivered or given up."""
        queue = self._queues[held.event.ordering_key]
        queue.busy, queue.troubled = False, not delivered
        self._undone -= 1
        self._bytes -= len(held.event.body)
        if queue.waiting:
            self._offer(queue)
        elif delivered:
            del self._queues[held.event.ordering_key]
        self._over(held)

    def _offer(self, queue: _Queue) -> None:
        """Make the queue's oldest event available, unless another one is being delivered."""
        if not queue.busy:
            heappush(
                self._ready[queue.troubled], (queue.waiting[0].number, queue.waiting[0].event.ordering_key)
            )

    def _over(self, held: WindowEvent) -> None:
        held.over = True
        held.event = replace(held.event, body=b"")
        self.changes += 1
        while self._held and self._held[0].over:
            first = self._held.popleft()
            self.after = first.event.id
            if first.wanted:
                self.sequences.note(first.event)
