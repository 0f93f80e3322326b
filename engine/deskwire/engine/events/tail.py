"""The newest events of one source in memory, with listeners, and the size of a batch of events."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from deskwire.engine.events.types import StoredEvent

_position = attrgetter("position")
# Placeholder for a dropped event until the list is truncated.
_GONE: Final = StoredEvent(0, "", "", 0, None, None, b"")

# Maximum number of events in a batch: it bounds the memory that a read from the database takes.
BATCH_SIZE: Final = 64
# Maximum envelope bytes in a batch of several events: it bounds the time that one write to a socket takes.
BATCH_BYTES_MAX: Final = 64 * 1024


class MemoryHead:
    """The position up to which memory is complete, for the whole log or for one project.

    It only grows, unless the database has lost commits.
    """

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class Tail:
    """The newest events of one source, by position.

    Args:
        head: the position up to which the tail is complete.
        floor: the position after which the tail is complete.
    """

    __slots__ = ("_dropped", "_events", "_listeners", "floor", "head", "readers")

    def __init__(self, head: MemoryHead, floor: int) -> None:
        self.head = head
        self.floor = floor
        self.readers = 0
        self._events: list[StoredEvent] = []
        self._dropped = 0
        self._listeners: list[Callable[[], object]] = []

    def events(self) -> Sequence[StoredEvent]:
        """Return all events of the tail, oldest first."""
        return self._events[self._dropped :]

    def reaches(self, position: int) -> bool:
        """Return whether the tail has every event after `position`."""
        return self.floor <= position

    def after(self, position: int, limit: int) -> Sequence[StoredEvent]:
        """Return up to `limit` events after `position`."""
        here = len(self._events) - self._dropped
        if not here or self._events[-1].position <= position:
            return ()
        if here == 1 or self._events[-2].position <= position:
            return self._events[-1:]  # the usual case: a reader that keeps up
        start = bisect_right(self._events, position, lo=self._dropped, key=_position)
        return self._events[start : start + limit]

    def count_after(self, position: int) -> int:
        """Count the events in the tail after `position`."""
        return len(self._events) - bisect_right(self._events, position, lo=self._dropped, key=_position)

    def append(self, event: StoredEvent) -> None:
        """Add the newest event."""
        self._events.append(event)

    def drop_first(self) -> None:
        """Evict the oldest event and free its memory, in amortized constant time."""
        events = self._events
        self.floor = events[self._dropped].position
        events[self._dropped] = _GONE
        self._dropped += 1
        if self._dropped * 2 >= len(events):
            del events[: self._dropped]
            self._dropped = 0

    def erase(self, conversations: frozenset[int]) -> None:
        """Evict the events of erased conversations, contacts and tickets, given by their lanes."""
        self._events = [event for event in self.events() if not event.erased_with(conversations)]
        self._dropped = 0

    def rewrite(self, events: Mapping[int, StoredEvent]) -> None:
        """Replace events of the tail by these versions, given by their positions."""
        for position, event in events.items():
            place = bisect_right(self._events, position, lo=self._dropped, key=_position) - 1
            if place >= self._dropped and self._events[place].position == position:
                self._events[place] = event

    def clear(self, floor: int) -> None:
        """Evict all events and start again after `floor`."""
        self.floor = floor
        self._events, self._dropped = [], 0

    def listen(self, call: Callable[[], object]) -> None:
        """Call `call` after each commit with new events, until `unlisten`."""
        self._listeners.append(call)

    def unlisten(self, call: Callable[[], object]) -> None:
        """Remove a listener."""
        self._listeners.remove(call)

    def notify(self) -> None:
        """Call all listeners; a listener must not call `listen` or `unlisten`."""
        for call in self._listeners:
            call()


def count_fitting(events: Sequence[StoredEvent]) -> int:
    """Return how many of the events fit into one batch; the first one always fits."""
    if len(events) < 2:  # the usual case: the reader keeps up
        return len(events)
    size = 0
    for count, event in enumerate(events):
        size += len(event.body)
        if size > BATCH_BYTES_MAX and count:
            return count
    return len(events)
