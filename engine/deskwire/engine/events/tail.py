"""The newest events of one source in memory, and a call when there are more."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from deskwire.engine.events.types import StoredEvent

_position = attrgetter("position")
_GONE: Final = StoredEvent(0, "", "", 0, None, None, b"")
"""Stands where a dropped event stood, until the list is cut."""


class MemoryHead:
    """The position up to which memory has everything, of the whole log or of one project; it grows unless the database has lost commits."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class Tail:
    """Newest events by position.

    Args:
        head: says up to where they are here.
        floor: position behind which the tail has everything.
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
        """Return all events that are here, oldest first."""
        return self._events[self._dropped :]

    def reaches(self, position: int) -> bool:
        """Tell whether everything behind `position` is here."""
        return self.floor <= position

    def after(self, position: int, limit: int) -> Sequence[StoredEvent]:
        """Return up to `limit` events behind `position`."""
        here = len(self._events) - self._dropped
        if not here or self._events[-1].position <= position:
            return ()
        if here == 1 or self._events[-2].position <= position:
            return self._events[-1:]  # as it is for readers that keep up
        start = bisect_right(self._events, position, lo=self._dropped, key=_position)
        return self._events[start : start + limit]

    def count_after(self, position: int) -> int:
        """Return how many events are here behind `position`."""
        return len(self._events) - bisect_right(self._events, position, lo=self._dropped, key=_position)

    def append(self, event: StoredEvent) -> None:
        """Add the newest event."""
        self._events.append(event)

    def drop_first(self) -> None:
        """Forget the oldest event; constant in the mean, and nothing of it is kept alive."""
        events = self._events
        self.floor = events[self._dropped].position
        events[self._dropped] = _GONE
        self._dropped += 1
        if self._dropped * 2 >= len(events):
            del events[: self._dropped]
            self._dropped = 0

    def erase(self, conversations: frozenset[int]) -> None:
        """Forget the events of these conversations, which are no longer stored either."""
        self._events = [event for event in self.events() if not event.erased_with(conversations)]
        self._dropped = 0

    def rewrite(self, events: Mapping[int, StoredEvent]) -> None:
        """Have these events, by their positions, in the place of those that are here."""
        for position, event in events.items():
            place = bisect_right(self._events, position, lo=self._dropped, key=_position) - 1
            if place >= self._dropped and self._events[place].position == position:
                self._events[place] = event

    def clear(self, floor: int) -> None:
        """Forget everything, and begin anew behind `floor`."""
        self.floor = floor
        self._events, self._dropped = [], 0

    def listen(self, call: Callable[[], object]) -> None:
        """Have `call` called after each event that comes, or several of one commit, until `unlisten`."""
        self._listeners.append(call)

    def unlisten(self, call: Callable[[], object]) -> None:
        """Do not call `call` any more."""
        self._listeners.remove(call)

    def notify(self) -> None:
        """Call those who listen, none of whom begins or ends it meanwhile."""
        for call in self._listeners:
            call()


BATCH_SIZE: Final = 64
"""Events of one batch at most: what a read from the disk may bring into memory."""
BATCH_BYTES_MAX: Final = 64 * 1024
"""Envelope bytes of one batch, once it has an event: what one write must get through in its time."""


def count_fitting(events: Sequence[StoredEvent]) -> int:
    """Return how many of the events fit into one batch; the first always does."""
    if len(events) < 2:  # the usual case: the reader keeps up
        return len(events)
    size = 0
    for count, event in enumerate(events):
        size += len(event.body)
        if size > BATCH_BYTES_MAX and count:
            return count
    return len(events)
