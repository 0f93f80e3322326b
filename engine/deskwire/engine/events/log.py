"""The event log as its readers see it: a window in memory over the table, and a call when it grows.

Every channel is a reader with a position of its own, of a whole project or of one topic in it. `publish` is
called with committed events only, in commit order; readers that keep up never touch the disk, and one that
does not costs nothing but its own reads.

A topic is in memory while somebody has it open, from then on: what came before is read from the table. So an
event costs each reader of its topics something, and nobody else. So it is with the agents of a project, who alone are
told of internal events: these stand in no other tail, and are not kept while no agent has the project open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Final

import trio

from deskwire.engine.core.commits import Commits
from deskwire.engine.core.store import Store
from deskwire.engine.events.ports import EventReader, EventTransaction, LogCommit
from deskwire.engine.events.types import Agents, StoredEvent, Topic

Source = int | Topic | Agents
"""The source of a read: a project, by its storage key, a topic, or all that a project's agents may have."""


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


@dataclass(frozen=True, slots=True)
class Chunk:
    """The result of a read: the events, and the position up to which there is nothing more to find."""

    events: Sequence[StoredEvent]
    upto: int


class EventLog:
    """All committed events, to be read from any position.

    Args:
        start: position of the newest stored event when the log was opened.
        ring_events, ring_bytes: how many of the newest events, and of their bytes, stay in memory.
    """

    def __init__(
        self, store: Store[EventReader, EventTransaction], start: int, *, ring_events: int, ring_bytes: int
    ) -> None:
        self._store = store
        self._start = start
        self._ring_events = ring_events
        self._ring_bytes = ring_bytes
        self._bytes = 0
        self._order: deque[StoredEvent] = deque()
        self._tails: dict[int, Tail] = {}
        self._opened: dict[Topic | Agents, Tail] = {}
        self._in_opened: dict[int, list[Tail]] = {}
        self.position = start

    @property
    def kept(self) -> tuple[int, int]:
        """The number of events in memory, and the bytes of their envelopes."""
        return len(self._order), self._bytes

    def behind(self, project: int, position: int) -> tuple[int, bool]:
        """Return how many of the project's events lie behind `position`, and whether that is exact.

        If it is not, memory does not reach back that far, and there may be more in the table.
        """
        tail = self._project(project)
        return tail.count_after(position), tail.reaches(position)

    def publish(self, events: Sequence[StoredEvent], erased: frozenset[int] = frozenset()) -> None:
        """Show committed events to all readers, and no longer those of the `erased` conversations."""
        if erased:
            self._erase(erased)
        touched: dict[Tail, None] = {}  # in this order, whatever a set would make of it
        for event in events:
            tails = self._file(event)
            if tails:
                self._order.append(event)
                self._bytes += len(event.body)
            for tail in tails:
                tail.append(event)
                touched[tail] = None
        if events:
            self.position = events[-1].position
        while self._order and (len(self._order) > self._ring_events or self._bytes > self._ring_bytes):
            self._drop_oldest()
        for tail in touched:
            tail.ring()

    def follow(self, commits: Commits[LogCommit]) -> None:
        """Show what is committed from now on."""
        commits.subscribe(lambda commit: self.publish(commit.events, commit.erased), "events", "erased")

    def open(self, source: Source) -> Tail:
        """Keep a topic or what agents have in memory from now on, for one more reader; a project always is."""
        if isinstance(source, int):
            return self._project(source)
        tail = self._opened.get(source)
        if tail is None:
            tail = self._opened[source] = Tail(self.position)
        tail.readers += 1
        return tail

    def close(self, source: Source) -> None:
        """Take a reader away from what it has opened, and call its listeners. With the last one it leaves memory."""
        tail = self._tail(source)
        assert tail is not None, "what is closed was opened"
        tail.ring()
        if not isinstance(source, int):
            tail.readers -= 1
            if not tail.readers:
                del self._opened[source]
                for event in tail.held():
                    self._unfile(event.position, tail)

    async def read(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """Return up to `limit` events of the source behind position `after`, in commit order.

        With `types` only those. Go on from the chunk's `upto`, also when it has no events.
        """
        await trio.lowlevel.checkpoint()
        recent = self.recent(source, after, limit, types)
        return recent or await self.stored(source, after, limit, types)

    def recent(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk | None:
        """Read from memory alone, as `read`; None if memory does not reach back that far."""
        tail = self._tail(source)
        if tail is None or not tail.reaches(after):
            return None
        events = _chosen(tail, after, limit, types) if types else tail.after(after, limit)
        return _chunk(events, limit, max(after, self.position))

    async def stored(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """Read from the table alone, as `read`."""
        newest = max(after, self.position)  # before the table is read: what is published meanwhile comes next
        if isinstance(source, Topic):
            events = await self._store.read(lambda reader: reader.lane_events(source, after, limit, types))
        elif isinstance(source, Agents):
            events = await self._store.read(lambda reader: reader.agents_events(source.project, after, limit))
        else:
            events = await self._store.read(lambda reader: reader.events(source, after, limit, types))
        return _chunk(events, limit, newest)

    async def wait(self, source: Source, after: int) -> None:
        """Return once there may be an event of the source behind `after`, an `upto` of `read`.

        Of a source that is not open that can't be told; when one is closed, those who wait return.
        """
        tail = self._tail(source)
        if tail is None or not tail.reaches(after) or tail.after(after, 1):
            return
        wakeup = trio.Event()
        tail.listen(wakeup.set)
        try:
            await wakeup.wait()
        finally:
            tail.unlisten(wakeup.set)

    def settled(self, source: Source, after: int) -> int:
        """Return the position up to which the source has nothing behind `after`; `after` itself if that can't be told."""
        tail = self._tail(source)
        if tail is None or not tail.reaches(after) or tail.after(after, 1):
            return after
        return max(after, self.position)

    def _tail(self, source: Source) -> Tail | None:
        """Return the source's part of the ring; None for one that nobody has open."""
        return self._project(source) if isinstance(source, int) else self._opened.get(source)

    def _project(self, project: int) -> Tail:
        """Return the project's part of the ring, empty until it is looked at."""
        tail = self._tails.get(project)
        if tail is None:
            tail = self._tails[project] = Tail(self._start)
        return tail

    def _file(self, event: StoredEvent) -> Sequence[Tail]:
        """Return the tails that the event belongs to: its project's, unless it is internal, and what somebody has open."""
        opened = self._opened
        sources = (Agents(event.project), *event.topics) if opened else ()
        extra = [opened[source] for source in sources if source in opened]
        if extra:
            self._in_opened[event.position] = extra
        return extra if event.internal else [self._project(event.project), *extra]

    def _unfile(self, position: int, tail: Tail) -> None:
        others = [other for other in self._in_opened.pop(position) if other is not tail]
        if others:
            self._in_opened[position] = others

    def _tails_of(self, event: StoredEvent) -> Sequence[Tail]:
        """Take the event out of what somebody has open, and return its tails."""
        extra = self._in_opened.pop(event.position, ())
        return extra if event.internal else (self._tails[event.project], *extra)

    def _drop_oldest(self) -> None:
        event = self._order.popleft()
        self._bytes -= len(event.body)
        for tail in self._tails_of(event):
            tail.drop_first()

    def _erase(self, conversations: frozenset[int]) -> None:
        gone = [event for event in self._order if event.conversation in conversations]
        if not gone:
            return
        self._order = deque(event for event in self._order if event.conversation not in conversations)
        self._bytes -= sum(len(event.body) for event in gone)
        for tail in {tail for event in gone for tail in self._tails_of(event)}:
            tail.erase(conversations)


def _chosen(tail: Tail, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
    found = (event for event in tail.held() if event.position > after and event.type in types)
    return list(islice(found, limit))


def _chunk(events: Sequence[StoredEvent], limit: int, newest: int) -> Chunk:
    """Return the chunk of a look that has seen everything up to `newest`."""
    last = events[-1].position if events else newest
    return Chunk(events, last if len(events) == limit else max(newest, last))
