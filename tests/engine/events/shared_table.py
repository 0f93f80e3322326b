"""The shared events' table as a list, and nodes that follow it, each with a log and a bus that loses messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.values import replace
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.ports import Advance, LogSegment, ProjectHead
from deskwire.engine.events.shared_log import SharedLog
from deskwire.engine.events.types import ERASURE, AgentsSource, StoredEvent, Topic
from deskwire.engine.ports import Commit, Reader, Transaction
from tests.engine.events.event_table import internal, laned

T = TypeVar("T")
SHIFT = 40


@dataclass
class SharedTable:
    """The committed events of all projects, and the projects' heads."""

    rows: list[StoredEvent] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    erased: set[int] = field(default_factory=set)
    history: list[StoredEvent] = field(default_factory=list)

    def commit(
        self, project: int, conversations: Sequence[tuple[int, bool]], erased: frozenset[int] = frozenset()
    ) -> Commit:
        """Commit an event of each of these conversations, optionally an internal event, and erasures of others."""
        before = self.head(project)
        self.rows = [row for row in self.rows if row.project != project or row.conversation not in erased]
        made: list[StoredEvent] = []
        for number in sorted(erased):
            self.rows.append(self._erasure(self._next(project), number))
            made.append(laned(self._next(project), number, project, deleted=True))
        made += [
            (internal if hidden else laned)(self._next(project), conversation, project)
            for conversation, hidden in conversations
        ]
        self.rows += made
        self.history += made
        self.erased |= erased
        self.rows.sort(key=lambda row: row.position)
        return Commit(tuple(made), (), erased, advances=(Advance(before, self.head(project)),))

    def head(self, project: int) -> ProjectHead:
        return ProjectHead(project, self.ends.get(project, project << SHIFT), 0)

    def _next(self, project: int) -> int:
        self.ends[project] = self.ends.get(project, project << SHIFT) + 1
        return self.ends[project]

    @staticmethod
    def _erasure(position: int, conversation: int) -> StoredEvent:
        return StoredEvent(position, f"evt_{position:026}", ERASURE, 0, None, None, b"%d" % conversation)

    # The reader's queries

    def heads(self, projects: Sequence[int]) -> Sequence[ProjectHead]:
        return [self.head(project) for project in projects]

    def newest_event(self, project: int) -> tuple[int, str] | None:
        there = [(row.position, row.id) for row in self.rows if row.project == project]
        return there[-1] if there else None

    def is_replaced(self, project: int, position: int, event_id: str) -> bool:
        return any(row.position == position and row.id != event_id for row in self.rows)

    def segments(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        return [self._stretch(project, position, limit, "all") for project, position in after]

    def erasures(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        return [self._stretch(project, position, limit, ERASURE) for project, position in after]

    def _stretch(self, project: int, after: int, limit: int, kind: str) -> LogSegment:
        found = [
            row
            for row in self.rows
            if row.position > after and row.position >> SHIFT == project and kind in ("all", row.type)
        ][:limit]
        upto = found[-1].position if len(found) == limit else self.head(project).events
        gone = frozenset(int(row.body) for row in found if row.type == ERASURE)
        shown = [replace(row, topics=()) for row in found if row.type != ERASURE]
        return LogSegment(project, upto, shown, gone)

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        return [row for row in self.agents_events(project, after, 10_000) if not row.internal][:limit]

    def agents_events(self, project: int, after: int, limit: int) -> Sequence[StoredEvent]:
        return [row for row in self.rows if row.project == project and row.position > after][:limit]

    def topic_events(
        self, topic: Topic, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Sequence[StoredEvent]:
        return [row for row in self.rows if row.position > after and topic in row.topics][:limit]

    def of(self, source: int | Topic | AgentsSource, after: int) -> Sequence[StoredEvent]:
        """Return the events that a reader of a source must get after a position."""
        if isinstance(source, Topic):
            return self.topic_events(source, after, 10_000)
        if isinstance(source, AgentsSource):
            return self.agents_events(source.project, after, 10_000)
        return self.events(source, after, 10_000, frozenset())


@dataclass
class SlowStore:
    """A node's access to the table: a read returns the state of the moment of the call, later or never."""

    table: SharedTable
    delays: list[float] = field(default_factory=list)
    failures: int = 0
    reads: int = 0

    async def read(self, query: Callable[[Reader], T]) -> T:
        await trio.lowlevel.checkpoint()
        self.reads += 1
        if self.failures:
            self.failures -= 1
            raise Unavailable("The database is gone.")
        found = query(cast(Reader, self.table))
        await trio.sleep(self.delays.pop() if self.delays else 0.0)  # virtual time: the mock clock jumps
        return found

    async def write(self, job: Callable[[Transaction], T]) -> T:
        raise NotImplementedError

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        raise NotImplementedError


@dataclass
class PostBus:
    """A bus whose messages stay in `sent` until the test delivers them."""

    listening: bool = True
    sent: list[tuple[str, bytes]] = field(default_factory=list)
    receivers: dict[str, Callable[[bytes], None]] = field(default_factory=dict)
    received: list[Callable[[], None]] = field(default_factory=list)

    def send(self, kind: str, payload: bytes) -> None:
        assert len(payload) <= 4_000
        self.sent.append((kind, payload))

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        self.receivers[kind] = receiver

    def connected(self, receiver: Callable[[], None]) -> None:
        self.received.append(receiver)

    def deliver(self, messages: Iterable[tuple[str, bytes]]) -> None:
        for kind, payload in messages:
            if kind in self.receivers:
                self.receivers[kind](payload)


class Node:
    """A node: its store, log and follower, and its commits whose outcome it does not know yet."""

    def __init__(
        self, table: SharedTable, *, ring_events: int = 100, listening: bool = True, batch_size: int = 256
    ) -> None:
        self.store = SlowStore(table)
        self.bus = PostBus(listening)
        store: Any = self.store
        self.log = SharedLog(store, ring_events=ring_events, ring_bytes=1 << 20)
        self.follower = Follower(store, self.log, self.bus, batch_size=batch_size)
        self.unheard: list[Commit] = []

    def held(self) -> list[StoredEvent]:
        """All events in memory."""
        return [*self.log._order]


@dataclass(eq=False)
class FollowingReader:
    """A reader that reads memory as far as it reaches, otherwise the table, as the stream does."""

    node: Node
    source: int | Topic | AgentsSource
    start: int
    found: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cursor = self.start

    async def turn(self, limit: int) -> bool:
        """Read the available events; return False if there were none."""
        log = self.node.log
        chunk = log.recent(self.source, self.cursor, limit)
        if chunk is None:
            chunk = await log.stored(self.source, self.cursor, limit)
        self.found += [event.position for event in chunk.events]
        assert chunk.upto >= self.cursor
        self.cursor = chunk.upto
        return bool(chunk.events)
