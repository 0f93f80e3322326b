"""The event log of a node that shares its store: memory has the events of open projects only.

Memory may lack commits of other nodes that have not reached this node yet. So `read`, which promises every acknowledged event,
reads the table. Followers read memory, which may be late but is never wrong.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import orjson

from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.log import Chunk, EventLog, Source
from deskwire.engine.events.ports import EventReader, EventTransaction, HeadReader
from deskwire.engine.events.tail import MemoryHead, Tail
from deskwire.engine.events.types import StoredEvent, Topic, topics_of


class SharedLogReader(EventReader, HeadReader, Protocol):
    """Queries on events and on the heads of projects."""


class SharedLog(EventLog):
    """The event log of a node that shares its store; a `Follower` applies the commits of all nodes to it.

    A project stays in memory for a while after its last reader has closed it, until `evict_unused` finds it unused twice.

    Args:
        ring_events, ring_bytes: as for `EventLog`.
    """

    def __init__(
        self, store: Store[SharedLogReader, EventTransaction], *, ring_events: int, ring_bytes: int
    ) -> None:
        super().__init__(store, 0, ring_events=ring_events, ring_bytes=ring_bytes)
        self._shared = store
        self._opening: dict[int, int] = {}
        self._published_count = 0
        self._topics = Counter[int]()
        self._unused: set[int] = set()
        self._on_gap: Callable[[int, int], object] = _ignore_gap
        self._newest: dict[int, tuple[int, str]] = {}

    def on_gap(self, listener: Callable[[int, int], object]) -> None:
        """Call `listener` with a project and a position if its memory lacks events up to there when it opens."""
        self._on_gap = listener

    @property
    def progress(self) -> int:
        """See `EventLog.progress`: the number of events that this node has published."""
        return self._published_count

    @property
    def open_projects(self) -> Mapping[int, int]:
        """The open projects, each with the position up to which memory is complete."""
        return {project: tail.head.position for project, tail in self._tails.items()}

    @property
    def newest_events(self) -> Sequence[tuple[int, int, str]]:
        """The newest known event of each open project: project, position and event id."""
        return [(project, *self._newest[project]) for project in self._tails if project in self._newest]

    def is_open(self, project: int) -> bool:
        """Return whether the project is in memory."""
        return project in self._tails

    async def newest(self, project: int) -> int:
        """See `EventLog.newest`."""
        return await self._shared.read(InlineQuery(lambda reader: _newest(reader, project)))

    async def open(self, source: Source) -> Tail:
        """See `EventLog.open`. The project's new events stay in memory while any source of it is open."""
        project = source if isinstance(source, int) else source.project
        if project not in self._tails:
            await self._load_project(project)
        tail = self._open(source)
        self._tails[project].readers += 1
        self._topics[project] += isinstance(source, Topic)
        return tail

    async def _load_project(self, project: int) -> None:
        self._opening.setdefault(project, 0)
        try:
            position, newest = await self._shared.read(InlineQuery(lambda reader: _end(reader, project)))
        finally:
            latest = self._opening.pop(project, 0)
        if project not in self._tails:  # no other task was quicker
            self._tails[project] = Tail(MemoryHead(position), position)
            if newest is not None:
                self._newest[project] = newest
            if latest > position:
                self._on_gap(project, latest)

    def close(self, source: Source) -> None:
        """See `EventLog.close`."""
        super().close(source)
        project = source if isinstance(source, int) else source.project
        self._tails[project].readers -= 1
        self._topics[project] -= isinstance(source, Topic)

    @asynccontextmanager
    async def waiting(self, source: Source) -> AsyncIterator[None]:
        """See `EventLog.waiting`."""
        if not isinstance(source, int):
            async with super().waiting(source):
                yield
            return
        if source not in self._tails:
            await self._load_project(source)
        tail = self._tails[source]
        tail.readers += 1
        try:
            yield
        finally:
            tail.readers -= 1

    def note(self, project: int, position: int) -> None:
        """Note that the project has an event at this position, in case it is being opened at the moment."""
        if project in self._opening:
            self._opening[project] = max(self._opening[project], position)

    def apply(
        self,
        project: int,
        upto: int,
        events: Sequence[StoredEvent],
        erased: frozenset[int] = frozenset(),
        rewritten: Sequence[StoredEvent] = (),
    ) -> None:
        """Publish a contiguous segment of an open project's events. Events that memory already has are skipped.

        Args:
            upto: position up to which the segment is complete.
            events: all stored events after the project's position in memory, up to `upto`.
            erased: storage keys of the conversations that were erased in the segment.
            rewritten: current versions of events that were rewritten in the segment.
        """
        tail = self._tails[project]
        before, tail.head.position = tail.head.position, max(upto, tail.head.position)
        new = [event for event in events if event.position > before]
        self._published_count += len(new)
        if new:
            self._newest[project] = new[-1].position, new[-1].id
        shown = [self._with_topics(event) for event in new] if self._opened else new
        self.publish(shown, erased, rewritten)

    def erase(self, conversations: frozenset[int]) -> None:
        """Evict the events of erased conversations, at whatever position their erasure is stored."""
        self.publish((), conversations)

    def rewrite(self, events: Sequence[StoredEvent]) -> None:
        """Replace redacted events by these versions, at whatever position their redaction is stored."""
        self.publish((), frozenset(), events)

    def evict_unused(self) -> None:
        """Evict the projects that have had no reader since the previous call."""
        unused = {project for project, tail in self._tails.items() if not tail.readers}
        gone = unused & self._unused
        self._unused = unused - gone
        if not gone:
            return
        for project in gone:
            del self._tails[project], self._topics[project]
            self._newest.pop(project, None)
        self._order = deque(event for event in self._order if event.project not in gone)
        self._bytes = sum(len(event.body) for event in self._order)

    def rewind(self, project: int, position: int) -> None:
        """Evict an open project's events because the database has lost commits; `position` is its newest event now.

        Its readers continue from the table at their own positions.
        """
        tail = self._tails[project]
        ours = [each for source, each in self._opened.items() if source.project == project]
        for event in [event for event in self._order if event.project == project]:
            self._in_opened.pop(event.position, None)
        self._order = deque(event for event in self._order if event.project != project)
        self._bytes = sum(len(event.body) for event in self._order)
        tail.head.position = position
        self._newest.pop(project, None)
        for each in (tail, *ours):
            each.clear(position)

    async def read(
        self, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Chunk:
        """See `EventLog.read`."""
        return await self.stored(source, after, limit, types)

    def _tail(self, source: Source) -> Tail | None:
        return self._tails.get(source) if isinstance(source, int) else self._opened.get(source)

    def _project(self, project: int) -> Tail:
        return self._tails[project]

    def _with_topics(self, event: StoredEvent) -> StoredEvent:
        """Return the event with its topics, if any topic of its project is open."""
        if event.topics or event.internal or not self._topics[event.project]:
            return event
        return replace(event, topics=topics_of(event.project, orjson.loads(event.body)["data"]))


def _ignore_gap(_project: int, _position: int) -> None:
    """Do nothing: the listener before a follower sets its own."""


def _newest(reader: HeadReader, project: int) -> int:
    return next((head.events for head in reader.heads([project])), 0)


def _end(reader: SharedLogReader, project: int) -> tuple[int, tuple[int, str] | None]:
    """Return the position of a project's head, and position and id of its newest event, which may be before the head."""
    return _newest(reader, project), reader.newest_event(project)
