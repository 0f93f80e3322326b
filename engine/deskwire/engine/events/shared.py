"""The event log of a node that shares the store with others: memory has the events of the projects that somebody has open.

Memory may lag behind the table here, by what other nodes have committed and this one has not heard of yet. So `read`, which
promises all that was acknowledged, looks into the table; whoever follows reads memory, which is never wrong, only late.
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
from deskwire.engine.events.tail import Head, Tail
from deskwire.engine.events.types import StoredEvent, Topic, topics_of


class SharedLogReader(EventReader, HeadReader, Protocol):
    """Queries on events and on the heads of projects."""


class SharedLog(EventLog):
    """The event log of one node of several; a `Follower` tells it what is committed, here and elsewhere.

    A project stays in memory for a while after its last reader has gone, until `sweep` finds it unused a second time.

    Args:
        ring_events, ring_bytes: as for `EventLog`.
    """

    def __init__(
        self, store: Store[SharedLogReader, EventTransaction], *, ring_events: int, ring_bytes: int
    ) -> None:
        super().__init__(store, 0, ring_events=ring_events, ring_bytes=ring_bytes)
        self._shared = store
        self._heard: dict[int, int] = {}
        self._shown = 0
        self._topics = Counter[int]()
        self._unused: set[int] = set()
        self._behind: Callable[[int, int], object] = _nobody
        self._newest: dict[int, tuple[int, str]] = {}

    def tell(self, behind: Callable[[int, int], object]) -> None:
        """Have `behind` called with a project and a position once memory lacks events up to there as it is opened."""
        self._behind = behind

    @property
    def progress(self) -> int:
        """See `EventLog.progress`: the events that this node has had in memory."""
        return self._shown

    @property
    def open_projects(self) -> Mapping[int, int]:
        """The projects that are open, each with the position up to which memory has its events."""
        return {project: tail.head.position for project, tail in self._tails.items()}

    @property
    def known(self) -> Sequence[tuple[int, int, str]]:
        """The newest event that memory knows of each open project: the project, the position, and the event's id."""
        return [(project, *self._newest[project]) for project in self._tails if project in self._newest]

    def is_open(self, project: int) -> bool:
        """Tell whether the project is open."""
        return project in self._tails

    async def newest(self, project: int) -> int:
        """See `EventLog.newest`."""
        return await self._shared.read(InlineQuery(lambda reader: _newest(reader, project)))

    async def open(self, source: Source) -> Tail:
        """See `EventLog.open`. A project's events are in memory from now on, and for as long as anything of it is open."""
        project = source if isinstance(source, int) else source.project
        if project not in self._tails:
            await self._begin(project)
        tail = self._open(source)
        self._tails[project].readers += 1
        self._topics[project] += isinstance(source, Topic)
        return tail

    async def _begin(self, project: int) -> None:
        self._heard.setdefault(project, 0)
        try:
            position, newest = await self._shared.read(InlineQuery(lambda reader: _end(reader, project)))
        finally:
            heard = self._heard.pop(project, 0)
        if project not in self._tails:  # nobody else was quicker
            self._tails[project] = Tail(Head(position), position)
            if newest is not None:
                self._newest[project] = newest
            if heard > position:
                self._behind(project, heard)

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
            await self._begin(source)
        tail = self._tails[source]
        tail.readers += 1
        try:
            yield
        finally:
            tail.readers -= 1

    def note(self, project: int, position: int) -> None:
        """Take note that there is an event at this position, in case that the project is just being opened."""
        if project in self._heard:
            self._heard[project] = max(self._heard[project], position)

    def take_in(
        self,
        project: int,
        upto: int,
        events: Sequence[StoredEvent],
        erased: frozenset[int] = frozenset(),
        rewritten: Sequence[StoredEvent] = (),
    ) -> None:
        """Show events of an open project, which are all that lie behind its position, up to `upto`, but for erasures there.

        Others are shown as they are `rewritten`.

        What is there already is passed over.
        """
        tail = self._tails[project]
        before, tail.head.position = tail.head.position, max(upto, tail.head.position)
        new = [event for event in events if event.position > before]
        self._shown += len(new)
        if new:
            self._newest[project] = new[-1].position, new[-1].id
        shown = [self._with_topics(event) for event in new] if self._opened else new
        self.publish(shown, erased, rewritten)

    def erase(self, conversations: frozenset[int]) -> None:
        """Show no more events of these conversations, wherever their erasure stands."""
        self.publish((), conversations)

    def rewrite(self, events: Sequence[StoredEvent]) -> None:
        """Show these events as they are now, wherever their redaction stands."""
        self.publish((), frozenset(), events)

    def sweep(self) -> None:
        """Forget the projects that nobody has had open since the last call."""
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
        """Forget what memory has of an open project, whose newest event is at this position, before what memory had.

        That happens when the database has lost commits. Readers go on in the table, from wherever they are.
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
        """Return the event with its topics, if anybody may ask for them."""
        if event.topics or event.internal or not self._topics[event.project]:
            return event
        return replace(event, topics=topics_of(event.project, orjson.loads(event.body)["data"]))


def _nobody(_project: int, _position: int) -> None:
    """Be told nothing."""


def _newest(reader: HeadReader, project: int) -> int:
    return next((head.events for head in reader.heads([project])), 0)


def _end(reader: SharedLogReader, project: int) -> tuple[int, tuple[int, str] | None]:
    """Return where a project's log ends, and the position and the id of its newest event, which may lie before that."""
    return _newest(reader, project), reader.newest_event(project)
