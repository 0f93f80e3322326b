"""Events between the feed and the receiver; no waiting, no I/O.

An event is held from when it is read until it and all before it are over. The cursor is the last event that is:
a restart behind it misses nothing. Events that are over behind the cursor are known, too, so that few come twice.
Events with one ordering key wait in a queue, of which one is under way at a time, in the feed's order; within a
conversation that is the order of the sequence. A queue whose attempts fail is troubled. It is served apart from the
others, so that they need not wait for it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct, field

from deskwire.commands.listen.feed import FeedEvent
from deskwire.engine.core.values import replace

CONVERSATIONS: Final = 1_000
"""The most conversations whose last sequence is kept; they are written with every move of the cursor."""

UNFINISHED_MAX: Final = 10_000
BYTES_MAX: Final = 64 << 20
HELD_MAX: Final = 100_000
"""Events that are not over, and their bytes, and all events that are held: beyond one of these reading pauses. So much
may a conversation that is stuck fall behind before the others wait for it."""

DELETED: Final = "conversation.deleted"


class SequenceTable:
    """The last sequence of each conversation, of those that were last heard of.

    Args:
        last: sequences by conversation id, oldest first.
        forgot: whether there were more.
    """

    def __init__(self, last: Mapping[str, int], forgot: bool) -> None:
        self._last = OrderedDict(last)
        self.forgot = forgot

    @property
    def last(self) -> dict[str, int]:
        """The sequences by conversation, those of the conversations heard of last at the end."""
        return dict(self._last)

    def before(self, event: FeedEvent) -> int | None:
        """Return the value of `Service-Previous-Sequence`: 0 if there was none before, None if it is not known."""
        if event.conversation is None or event.sequence is None:
            return None
        unknown = None if self.forgot and event.sequence > 1 else 0
        return self._last.get(event.conversation, unknown)

    def note(self, event: FeedEvent) -> None:
        """Note the event as the newest of its conversation."""
        if event.conversation is None or event.sequence is None:
            return
        self._last.pop(event.conversation, None)
        if event.type == DELETED:  # nothing can follow
            return
        self._last[event.conversation] = event.sequence
        if len(self._last) > CONVERSATIONS:
            self._last.popitem(last=False)
            self.forgot = True

    def copy(self) -> SequenceTable:
        """Return a copy, to be changed on its own."""
        return SequenceTable(self._last, self.forgot)


class FinishedAhead(Struct, frozen=True):
    """The events that are over behind the cursor: all up to one event, except a few. Ids of events grow with their place.

    Args:
        upto: the last event that is over; None if none behind the cursor is.
        undone: ids of those before it that are not.
    """

    upto: str | None = None
    undone: frozenset[str] = frozenset()

    def has(self, event: FeedEvent) -> bool:
        """Say whether the event is over."""
        return self.upto is not None and event.id <= self.upto and event.id not in self.undone


NOTHING: Final = FinishedAhead()


class WindowEvent(Struct, eq=False):
    """One event in the window.

    Args:
        previous: see `SequenceTable.before`.
        number: its place among all that were read.
        over: whether it was delivered, given up, or left out; its body is let go of then.
    """

    event: FeedEvent
    number: int
    previous: int | None = None
    wanted: bool = True
    over: bool = False


class _Queue(Struct, eq=False):
    """Events with one ordering key that wait, in their order. A troubled queue's last attempt has failed."""

    waiting: deque[WindowEvent] = field(default_factory=deque)
    troubled: bool = False
    busy: bool = False


class Window:
    """The events that were read and are not over, and those that are over behind them.

    Args:
        after: the cursor to begin with, None for the feed's beginning.
        sequences: those of the events that were forwarded up to there.
        ahead: the events behind it that were over already.
    """

    def __init__(self, after: str | None, sequences: SequenceTable, ahead: FinishedAhead = NOTHING) -> None:
        self.after = after
        self.sequences: Final = sequences
        """The sequences as of the cursor."""
        self.changes = 0
        """A counter that grows whenever there is something new to keep."""
        self._was = ahead
        self._ahead = sequences.copy()
        self._held: deque[WindowEvent] = deque()
        self._queues: dict[str, _Queue] = {}
        self._ready: tuple[list[tuple[int, str]], list[tuple[int, str]]] = ([], [])
        self._read = 0
        self._undone = 0
        self._bytes = 0

    def __len__(self) -> int:
        """Return the number of events that are not over."""
        return self._undone

    @property
    def full(self) -> bool:
        """True if no more should be read for now."""
        return self._undone >= UNFINISHED_MAX or self._bytes >= BYTES_MAX or len(self._held) >= HELD_MAX

    @property
    def ahead(self) -> FinishedAhead:
        """The events that are over behind the cursor, those included that were over before and have not been read again yet."""
        read = self._held[-1].event.id if self._held else self.after or ""
        if self._was.upto is not None and read < self._was.upto:
            upto, known = self._was.upto, {each for each in self._was.undone if each > read}
        else:
            upto, known = next((each.event.id for each in reversed(self._held) if each.over), ""), set[str]()
        if not upto:
            return NOTHING
        undone = (each.event.id for each in self._held if not each.over and each.event.id < upto)
        return FinishedAhead(upto, frozenset(known.union(undone)))

    def add(self, event: FeedEvent) -> None:
        """Take in the next event of the feed, to be forwarded if that was not done before."""
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
        """Take in the next event of the feed, which is not to be forwarded."""
        self._read += 1
        held = WindowEvent(event, self._read, wanted=False)
        self._held.append(held)
        self._over(held)

    def take(self, troubled: bool = False) -> WindowEvent | None:
        """Return the oldest event of a free queue that is troubled, or not, if any; `end` or `again` must follow."""
        if not self._ready[troubled]:
            return None
        _, name = heappop(self._ready[troubled])
        queue = self._queues[name]
        queue.busy = True
        return queue.waiting.popleft()

    def later(self, held: WindowEvent) -> None:
        """Note that an attempt has failed; the queue waits until `again`."""
        self._queues[held.event.ordering_key].troubled = True

    def again(self, held: WindowEvent) -> None:
        """Offer the event for its next attempt."""
        queue = self._queues[held.event.ordering_key]
        queue.busy = False
        queue.waiting.appendleft(held)
        self._offer(queue)

    def end(self, held: WindowEvent, delivered: bool = True) -> None:
        """Note that the event was delivered or given up."""
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
        """Let the queue's oldest event be taken, if the queue is free."""
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
