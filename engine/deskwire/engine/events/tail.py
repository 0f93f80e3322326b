"""The newest events of a project or a lane, in memory; no I/O.

A tail holds what the log's ring holds of its events, and knows from where on that is all there is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from deskwire.engine.events.types import StoredEvent

_position = attrgetter("position")
_GONE: Final = StoredEvent(0, "", "", 0, None, None, b"")
"""Stands where a dropped event stood, until the list is cut."""


class Tail:
    """Newest events by position.

    Args:
        floor: position behind which the tail has everything.
    """

    __slots__ = ("_dropped", "_events", "_listeners", "floor", "readers")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.readers = 0
        self._events: list[StoredEvent] = []
        self._dropped = 0
        self._listeners: list[Callable[[], object]] = []

    def held(self) -> Sequence[StoredEvent]:
        """All that is here, oldest first."""
        return self._events[self._dropped :]

    def reaches(self, position: int) -> bool:
        """Whether everything behind `position` is here."""
        return self.floor <= position

    def after(self, position: int, limit: int) -> Sequence[StoredEvent]:
        """Up to `limit` events behind `position`."""
        here = len(self._events) - self._dropped
        if not here or self._events[-1].position <= position:
            return ()
        if here == 1 or self._events[-2].position <= position:
            return self._events[-1:]  # as it is for readers that keep up
        start = bisect_right(self._events, position, lo=self._dropped, key=_position)
        return self._events[start : start + limit]

    def count_after(self, position: int) -> int:
        """How many events are here behind `position`."""
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
        self._events = [event for event in self.held() if event.conversation not in conversations]
        self._dropped = 0

    def listen(self, call: Callable[[], object]) -> None:
        """Have `call` called after each event that comes, or several of one commit, until `unlisten`."""
        self._listeners.append(call)

    def unlisten(self, call: Callable[[], object]) -> None:
        """Do not call `call` any more."""
        self._listeners.remove(call)

    def ring(self) -> None:
        """Call those who listen, none of whom begins or ends it meanwhile."""
        for call in self._listeners:
            call()
