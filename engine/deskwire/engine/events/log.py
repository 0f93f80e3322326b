"""The event log for its readers: the newest events in memory, older ones from the table, and notification of new ones.

Every channel reads from a position of its own, in a whole project or in one topic. `publish` gets committed events only, in
commit order. Readers that keep up never touch the disk, and a slow reader costs nothing but its own reads.

A topic is in memory only while a reader has it open; its earlier events are read from the table. So each event costs time
only for the open topics that contain it. The same holds for a project's agents: internal events are in their tail only, and
in no tail while no agent has the project open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

import trio
from msgspec import Struct

from deskwire.engine.core.commits import Commits
from deskwire.engine.core.ids import id_before, id_time_ms
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.ports import EventReader, EventTransaction, LogCommit
from deskwire.engine.events.tail import MemoryHead, Tail
from deskwire.engine.events.types import CATALOG, AgentsSource, NamedTypesSource, StoredEvent, Topic

# The scope of a read: a project by its storage key, one topic, or all events for agents or for readers of named types.
Source = int | Topic | AgentsSource | NamedTypesSource

# An id smaller than the id of any event: the read position of a project without events.
NO_EVENT_ID: Final = f"evt_{'0' * 26}"
_LAST: Final = (1 << 63) - 1


class Chunk(Struct, frozen=True):
    """The result of a read.

    Args:
        upto: position up to which the read is complete; the next read continues there.
    """

    events: Sequence[StoredEvent]
    upto: int


class EventLog:
    """All committed events, to be read from any position.

    Args:
        start: position of the newest stored event when the log was opened.
        ring_events, ring_bytes: maximum number and bytes of the newest events in memory.
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
        self._opened: dict[Topic | AgentsSource | NamedTypesSource, Tail] = {}
        self._named = 0
        self._in_opened: dict[int, list[Tail]] = {}
        self._head = MemoryHead(start)

    def position(self, project: int) -> int:
        """Return the position up to which memory has the project's events; possibly 0 if the project is not open."""
        tail = self._tail(project)
        return 0 if tail is None else tail.head.position

    @property
    def progress(self) -> int:
        """The count that grows by about one with each published event."""
        return self._head.position

    async def newest(self, project: int) -> int:
        """Return the position of the project's newest event or a later one. Raises Unavailable."""
        return self.position(project)

    @property
    def memory_size(self) -> tuple[int, int]:
        """The number of events in memory, and the bytes of their envelopes."""
        return len(self._order), self._bytes

    def count_after(self, project: int, position: int) -> tuple[int, bool]:
        """Count the project's events in memory after `position`, and return whether the count is exact.

        It is not exact if memory does not reach back to `position`; then the table may have more.
        """
        tail = self._tail(project)
        return (0, False) if tail is None else (tail.count_after(position), tail.reaches(position))

    def publish(
        self,
        events: Sequence[StoredEvent],
        erased: frozenset[int] = frozenset(),
        rewritten: Sequence[StoredEvent] = (),
    ) -> None:
        """Publish committed events to all readers.

        Args:
            erased: lanes whose events are evicted.
            rewritten: current versions of earlier events, which replace those in memory.
        """
        if events:
            self._head.position = events[-1].position
        if erased:
            self._erase(erased)
        if rewritten:
            self._rewrite(rewritten)
        touched: dict[Tail, None] = {}  # a dict, for a stable order
        for event in events:
            tails = self._add(event)
            if tails:
                self._order.append(event)
                self._bytes += len(event.body)
            for tail in tails:
                tail.append(event)
                touched[tail] = None
        while self._order and (len(self._order) > self._ring_events or self._bytes > self._ring_bytes):
            self._drop_oldest()
        for tail in touched:
            tail.notify()

    def follow(self, commits: Commits[LogCommit]) -> None:
        """Publish the events of all commits from now on."""
        parts = ("events", "erased", "rewritten")
        commits.subscribe(lambda commit: self.publish(*(getattr(commit, part) for part in parts)), *parts)

    async def open(self, source: Source) -> Tail:
        """Open a source for one more reader, and return its tail; from now on its new events stay in memory.

        Raises Unavailable. If it raises or is cancelled, nothing is open.
        """
        return self._open(source)

    def _open(self, source: Source) -> Tail:
        if isinstance(source, int):
            return self._project(source)
        tail = self._opened.get(source)
        if tail is None:
            head = self._project(source.project).head
            tail = self._opened[source] = Tail(head, head.position)
            self._named += isinstance(source, NamedTypesSource)
        tail.readers += 1
        return tail

    def close(self, source: Source) -> None:
        """Close a source for one reader, and notify its listeners. The last reader's close evicts its tail."""
        tail = self._tail(source)
        assert tail is not None, "a source is opened before it is closed"
        tail.notify()
        if not isinstance(source, int):
            tail.readers -= 1
            if not tail.readers:
                del self._opened[source]
                self._named -= isinstance(source, NamedTypesSource)
                for event in tail.events():
                    self._remove(event.position, tail)

    async def read(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """Return up to `limit` events of the source after position `after`, in commit order.

        The read includes every event that was acknowledged before the call. Continue from the chunk's `upto`, even if the
        chunk is empty. Raises Unavailable.

        Args:
            types: the types to include; empty for all.
        """
        return await self.read_after_wait(source, after, limit, types)

    async def read_after_wait(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """Read as `read` after a call of `wait`: events in memory suffice, so a shared database is not asked."""
        await trio.lowlevel.checkpoint()
        recent = self.recent(source, after, limit, types)
        return recent or await self.stored(source, after, limit, types)

    def recent(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk | None:
        """Read from memory as `read`; return None if memory does not reach back to `after`."""
        tail = self._tail(source)
        if tail is None or not tail.reaches(after):
            return None
        events = _chosen(tail, after, limit, types) if types else tail.after(after, limit)
        return _chunk(events, limit, max(after, tail.head.position))

    async def stored(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """Read from the table as `read`."""
        project = source if isinstance(source, int) else source.project
        newest = max(after, self.position(project))  # before the read: the next read has later events
        if isinstance(source, Topic):
            events = await self._store.read(lambda reader: reader.topic_events(source, after, limit, types))
        elif isinstance(source, AgentsSource):
            events = await self._store.read(lambda reader: reader.agents_events(source.project, after, limit))
        elif isinstance(source, NamedTypesSource):
            events = await self._store.read(
                lambda reader: reader.named_events(source.project, after, limit, types)
            )
        else:
            events = await self._store.read(lambda reader: reader.events(source, after, limit, types))
        return _chunk(events, limit, newest)

    @asynccontextmanager
    async def waiting(self, source: Source) -> AsyncIterator[None]:
        """Keep the source open within the context, so that `wait` notices its new events. Raises Unavailable."""
        if isinstance(source, int):
            yield
            return
        await self.open(source)
        try:
            yield
        finally:
            self.close(source)

    async def wait(self, source: Source, after: int) -> None:
        """Return once the source may have an event after `after`, which is an `upto` of `read`.

        Return at once if the source is not open, and when a reader closes it.
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
        """Return the position up to which the source surely has no event after `after`; at least `after`."""
        tail = self._tail(source)
        if tail is None or not tail.reaches(after) or tail.after(after, 1):
            return after
        return max(after, tail.head.position)

    def _tail(self, source: Source) -> Tail | None:
        """Return the source's tail; None if the source is not open."""
        return self._project(source) if isinstance(source, int) else self._opened.get(source)

    def _project(self, project: int) -> Tail:
        """Return the project's tail, created on first use."""
        tail = self._tails.get(project)
        if tail is None:
            tail = self._tails[project] = Tail(self._head, self._start)
        return tail

    def _add(self, event: StoredEvent) -> Sequence[Tail]:
        """Return the tails of the event: its project's, unless it is internal, and those of its open sources."""
        opened = self._opened
        extra = [opened[source] for source in self._sources(event) if source in opened] if opened else []
        if extra:
            self._in_opened[event.position] = extra
        internal = event.type not in CATALOG  # `StoredEvent.internal`, without its call for each event
        return extra if internal else [self._project(event.project), *extra]

    def _sources(self, event: StoredEvent) -> Sequence[Topic | AgentsSource | NamedTypesSource]:
        """Return the sources other than the project that include the event."""
        named = (NamedTypesSource(event.project),) if self._named else ()
        if event.internal:
            return named if event.on_no_stream else (AgentsSource(event.project), *named)
        return (AgentsSource(event.project), *event.topics, *named)

    def _remove(self, position: int, tail: Tail) -> None:
        others = [other for other in self._in_opened.pop(position) if other is not tail]
        if others:
            self._in_opened[position] = others

    def _take_tails(self, event: StoredEvent) -> Sequence[Tail]:
        """Remove the event from the index of open sources, and return its tails."""
        extra = self._in_opened.pop(event.position, ())
        return extra if event.internal else (self._tails[event.project], *extra)

    def _drop_oldest(self) -> None:
        event = self._order.popleft()
        self._bytes -= len(event.body)
        for tail in self._take_tails(event):
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
        for tail in {tail for event in gone for tail in self._take_tails(event)}:
            tail.erase(conversations)


def _chosen(tail: Tail, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
    found = (event for event in tail.events() if event.position > after and event.type in types)
    return list(islice(found, limit))


def _chunk(events: Sequence[StoredEvent], limit: int, newest: int) -> Chunk:
    """Return the chunk of a read that has seen every event up to `newest`."""
    last = events[-1].position if events else newest
    return Chunk(events, last if len(events) == limit else max(newest, last))


def read_position(reader: EventReader, project: int) -> str:
    """Return the id of the project's newest public event, as the moment of the read in which it is called.

    The feed after this id has all changes that the read does not show. If the newest event is no longer stored, the result
    is an id between the pruned events and the later ones.
    """
    return _stored(reader, project, reader.event_id_at(project, _LAST) or NO_EVENT_ID)


def logged_read_position(reader: EventReader, project: int) -> str:
    """Return the id of the project's newest event for any audience; otherwise as `read_position`."""
    return _stored(reader, project, reader.newest_id_of_any_event(project) or NO_EVENT_ID)


def _stored(reader: EventReader, project: int, newest: str) -> str:
    """Return `newest`, or an id after the pruned events if that event was pruned."""
    pruned, last = reader.event_window(project)
    if pruned is None or newest > pruned:
        return newest
    behind = id_before("evt", id_time_ms(pruned) + 1)  # `pruned` may be another project's event
    return behind if last is not None and behind <= last else pruned
