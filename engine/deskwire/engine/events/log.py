"""The event log as its readers see it: a window in memory over the table, and a call when it grows.

Every channel is a reader with a position of its own, of a whole project or of one topic in it. `publish` is
called with committed events only, in commit order; readers that keep up never touch the disk, and one that
does not costs nothing but its own reads.

A topic is in memory while somebody has it open, from then on: what came before is read from the table. So an
event costs each reader of its topics something, and nobody else. So it is with the agents of a project, who alone are
told of internal events: these stand in no other tail, and are not kept while no agent has the project open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice

import trio
from msgspec import Struct

from deskwire.engine.core.commits import Commits
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.ports import EventReader, EventTransaction, LogCommit
from deskwire.engine.events.tail import Head, Tail
from deskwire.engine.events.types import CATALOG, Agents, Named, StoredEvent, Topic

Source = int | Topic | Agents | Named
"""The source of a read: a project, by its storage key, a topic, or all that a project's agents, or those who name it, may have."""


class Chunk(Struct, frozen=True):
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
        self._opened: dict[Topic | Agents | Named, Tail] = {}
        self._named = 0
        self._in_opened: dict[int, list[Tail]] = {}
        self._head = Head(start)

    def position(self, project: int) -> int:
        """Return the position up to which memory has the project's events; of a project that is not open it may be 0."""
        tail = self._tail(project)
        return 0 if tail is None else tail.head.position

    @property
    def progress(self) -> int:
        """The number that grows by about one with each event that is shown."""
        return self._head.position

    async def newest(self, project: int) -> int:
        """Return the position of the project's newest event, or one behind it. Raises Unavailable."""
        return self.position(project)

    @property
    def kept(self) -> tuple[int, int]:
        """The number of events in memory, and the bytes of their envelopes."""
        return len(self._order), self._bytes

    def behind(self, project: int, position: int) -> tuple[int, bool]:
        """Return how many of the project's events lie behind `position`, and whether that is exact.

        If it is not, memory does not reach back that far, and there may be more in the table.
        """
        tail = self._tail(project)
        return (0, False) if tail is None else (tail.count_after(position), tail.reaches(position))

    def publish(
        self,
        events: Sequence[StoredEvent],
        erased: frozenset[int] = frozenset(),
        rewritten: Sequence[StoredEvent] = (),
    ) -> None:
        """Show committed events to all readers, no longer those of the `erased` conversations, and others as they are `rewritten`."""
        if events:
            self._head.position = events[-1].position
        if erased:
            self._erase(erased)
        if rewritten:
            self._rewrite(rewritten)
        touched: dict[Tail, None] = {}  # in this order, whatever a set would make of it
        for event in events:
            tails = self._file(event)
            if tails:
                self._order.append(event)
                self._bytes += len(event.body)
            for tail in tails:
                tail.append(event)
                touched[tail] = None
        while self._order and (len(self._order) > self._ring_events or self._bytes > self._ring_bytes):
            self._drop_oldest()
        for tail in touched:
            tail.ring()

    def follow(self, commits: Commits[LogCommit]) -> None:
        """Show what is committed from now on."""
        parts = ("events", "erased", "rewritten")
        commits.subscribe(lambda commit: self.publish(*(getattr(commit, part) for part in parts)), *parts)

    async def open(self, source: Source) -> Tail:
        """Keep a topic or what agents have in memory from now on, for one more reader; a project always is.

        Raises Unavailable, with nothing open. Cancellation: nothing is open.
        """
        return self._open(source)

    def _open(self, source: Source) -> Tail:
        if isinstance(source, int):
            return self._project(source)
        tail = self._opened.get(source)
        if tail is None:
            head = self._project(source.project).head
            tail = self._opened[source] = Tail(head, head.position)
            self._named += isinstance(source, Named)
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
                self._named -= isinstance(source, Named)
                for event in tail.held():
                    self._unfile(event.position, tail)

    async def read(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """Return up to `limit` events of the source behind position `after`, in commit order; all that were acknowledged.

        With `types` only those. Go on from the chunk's `upto`, also when it has no events.
        """
        return await self.read_on(source, after, limit, types)

    async def read_on(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """Read as `read`, after a `wait`: the events of memory will do, if it has them."""
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
        return _chunk(events, limit, max(after, tail.head.position))

    async def stored(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """Read from the table alone, as `read`."""
        project = source if isinstance(source, int) else source.project
        newest = max(after, self.position(project))  # before the table is read: what comes meanwhile is next
        if isinstance(source, Topic):
            events = await self._store.read(lambda reader: reader.lane_events(source, after, limit, types))
        elif isinstance(source, Agents):
            events = await self._store.read(lambda reader: reader.agents_events(source.project, after, limit))
        elif isinstance(source, Named):
            events = await self._store.read(
                lambda reader: reader.named_events(source.project, after, limit, types)
            )
        else:
            events = await self._store.read(lambda reader: reader.events(source, after, limit, types))
        return _chunk(events, limit, newest)

    @asynccontextmanager
    async def waiting(self, source: Source) -> AsyncIterator[None]:
        """Have what comes of a source told to those who `wait` for it, while the context is open.

        Raises Unavailable if that can't be begun.
        """
        if isinstance(source, int):
            yield
            return
        await self.open(source)
        try:
            yield
        finally:
            self.close(source)

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
        return max(after, tail.head.position)

    def _tail(self, source: Source) -> Tail | None:
        """Return the source's part of the ring; None for one that nobody has open."""
        return self._project(source) if isinstance(source, int) else self._opened.get(source)

    def _project(self, project: int) -> Tail:
        """Return the project's part of the ring, empty until it is looked at."""
        tail = self._tails.get(project)
        if tail is None:
            tail = self._tails[project] = Tail(self._head, self._start)
        return tail

    def _file(self, event: StoredEvent) -> Sequence[Tail]:
        """Return the tails that the event belongs to: its project's, unless it is internal, and what somebody has open."""
        opened = self._opened
        extra = [opened[source] for source in self._sources(event) if source in opened] if opened else []
        if extra:
            self._in_opened[event.position] = extra
        internal = event.type not in CATALOG  # `StoredEvent.internal`, without its call for each event
        return extra if internal else [self._project(event.project), *extra]

    def _sources(self, event: StoredEvent) -> Sequence[Topic | Agents | Named]:
        """Return what it belongs to beside its project."""
        named = (Named(event.project),) if self._named else ()
        if event.internal:
            return named if event.on_no_stream else (Agents(event.project), *named)
        return (Agents(event.project), *event.topics, *named)

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

    def _rewrite(self, rewritten: Sequence[StoredEvent]) -> None:
        bodies = {event.position: event.body for event in rewritten}
        here = [event for event in self._order if event.position in bodies]
        if not here:
            return
        events = {event.position: replace(event, body=bodies[event.position]) for event in here}
        self._order = deque(events.get(event.position, event) for event in self._order)
        self._bytes += sum(len(events[event.position].body) - len(event.body) for event in here)
        for event in here:
            extra = self._in_opened.get(event.position, ())
            for tail in extra if event.internal else (self._project(event.project), *extra):
                tail.rewrite(events)

    def _erase(self, conversations: frozenset[int]) -> None:
        gone = [event for event in self._order if event.erased_with(conversations)]
        if not gone:
            return
        self._order = deque(event for event in self._order if not event.erased_with(conversations))
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
