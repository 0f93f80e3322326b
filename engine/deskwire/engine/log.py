"""The event log as its readers see it: a window in memory over the table, and a bell.

Every channel is a reader with a position of its own. `publish` is called with committed events only, in
commit order; readers that keep up never touch the disk, and one that does not costs nothing but its
own reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Final

import trio

from deskwire.engine.events import StoredEvent
from deskwire.engine.ports import Store

_position = attrgetter("position")
_COMPACT_AT: Final = 1024
"""Dropped entries a tail carries before its list is cut; makes dropping constant in the mean."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a read found: the events, and the position up to which there is nothing more to find."""

    events: Sequence[StoredEvent]
    upto: int


class _Tail:
    """One project's newest events, by position."""

    __slots__ = ("bell", "dropped", "events", "floor")

    def __init__(self, floor: int) -> None:
        self.floor = floor  # behind it, all is here
        self.events: list[StoredEvent] = []
        self.dropped = 0
        self.bell = trio.Event()

    def after(self, position: int, limit: int) -> Sequence[StoredEvent]:
        start = bisect_right(self.events, position, lo=self.dropped, key=_position)
        return self.events[start : start + limit]

    def count_after(self, position: int) -> int:
        return len(self.events) - bisect_right(self.events, position, lo=self.dropped, key=_position)

    def drop_first(self) -> None:
        self.floor = self.events[self.dropped].position
        self.dropped += 1
        if self.dropped == len(self.events) or self.dropped >= _COMPACT_AT:
            del self.events[: self.dropped]
            self.dropped = 0

    def erase(self, conversations: frozenset[int]) -> None:
        kept = [event for event in self.events[self.dropped :] if event.conversation not in conversations]
        self.events, self.dropped = kept, 0

    def ring_bell(self) -> None:
        self.bell.set()
        self.bell = trio.Event()


class EventLog:
    """All committed events, to be read from any position.

    Args:
        start: position of the newest stored event when the log was opened.
        ring_events, ring_bytes: how many of the newest events, and of their bytes, stay in memory.
    """

    def __init__(self, store: Store, start: int, *, ring_events: int, ring_bytes: int) -> None:
        self._store = store
        self._start = self._floor = start
        self._ring_events = ring_events
        self._ring_bytes = ring_bytes
        self._bytes = 0
        self._order: deque[StoredEvent] = deque()
        self._tails: dict[int, _Tail] = {}
        self.position = start

    @property
    def kept(self) -> tuple[int, int]:
        """How many events are in memory, and the bytes of their envelopes."""
        return len(self._order), self._bytes

    def behind(self, project: int, position: int) -> tuple[int, bool]:
        """How many of the project's events lie behind `position`, and whether that is exact.

        If it is not, memory does not reach back that far, and there may be more in the table.
        """
        tail = self._tail(project)
        return tail.count_after(position), tail.floor <= position

    def publish(self, events: Sequence[StoredEvent], erased: frozenset[int] = frozenset()) -> None:
        """Show committed events to all readers, and no longer those of the `erased` conversations."""
        if erased:
            self._erase(erased)
        for event in events:
            self._order.append(event)
            self._bytes += len(event.body)
            self._tail(event.project).events.append(event)
        if events:
            self.position = events[-1].position
        while self._order and (len(self._order) > self._ring_events or self._bytes > self._ring_bytes):
            self._drop_oldest()
        for project in {event.project for event in events}:
            self._tail(project).ring_bell()

    async def read(self, project: int, after: int, limit: int, types: frozenset[str] = frozenset()) -> Chunk:
        """Up to `limit` events of the project behind position `after`, in commit order.

        With `types` only those. Go on from the chunk's `upto`, also when it has no events.
        """
        await trio.lowlevel.checkpoint()
        newest = self.position
        if after < self._floor:
            events = await self._store.read(lambda reader: reader.events(project, after, limit, types))
        else:
            events = self._recent(project, after, limit, types)
        if len(events) == limit:
            return Chunk(events, events[-1].position)
        return Chunk(events, max(newest, events[-1].position if events else after))

    def _recent(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        tail = self._tails.get(project)
        if tail is None:
            return ()
        if not types:
            return tail.after(after, limit)
        found = (event for event in tail.after(after, len(tail.events)) if event.type in types)
        return list(islice(found, limit))

    async def wait(self, project: int, after: int) -> None:
        """Return once there may be an event of the project behind `after`, an `upto` of `read`."""
        tail = self._tail(project)
        while self._floor <= after and not tail.after(after, 1):
            await tail.bell.wait()

    def _tail(self, project: int) -> _Tail:
        return self._tails.setdefault(project, _Tail(self._start))

    def _drop_oldest(self) -> None:
        event = self._order.popleft()
        self._bytes -= len(event.body)
        self._floor = event.position
        self._tails[event.project].drop_first()

    def _erase(self, conversations: frozenset[int]) -> None:
        self._order = deque(event for event in self._order if event.conversation not in conversations)
        self._bytes = sum(len(event.body) for event in self._order)
        for tail in self._tails.values():
            tail.erase(conversations)
