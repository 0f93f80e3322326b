"""The events' table as a list, and a log over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

import orjson
import trio

from deskwire.engine.events.log import EventLog, Source
from deskwire.engine.events.types import StoredEvent, Topic, topics_of
from deskwire.engine.ports import Reader, Store, Transaction

T = TypeVar("T")


@dataclass
class Table:
    """The events' table as a list, with a store and reader of that table only."""

    rows: list[StoredEvent] = field(default_factory=list)
    reads: int = 0

    async def write(self, job: Callable[[Transaction], T]) -> T:
        raise NotImplementedError

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        raise NotImplementedError

    async def read(self, query: Callable[[Reader], T]) -> T:
        self.reads += 1
        await trio.lowlevel.checkpoint()
        return query(cast(Reader, self))

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        found = [row for row in self.agents_events(project, after, len(self.rows)) if not row.internal]
        return [row for row in found if not types or row.type in types][:limit]

    def agents_events(self, project: int, after: int, limit: int) -> Sequence[StoredEvent]:
        return [row for row in self.rows if row.project == project and row.position > after][:limit]

    def named_events(
        self, project: int, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        found = [row for row in self.rows if row.project == project and row.position > after]
        return [row for row in found if row.type in types][:limit]

    def topic_events(
        self, topic: Topic, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Sequence[StoredEvent]:
        found = [row for row in self.rows if row.position > after and topic in row.topics]
        return [row for row in found if not types or row.type in types][:limit]

    def erase(self, conversations: frozenset[int]) -> None:
        self.rows = [row for row in self.rows if row.conversation not in conversations]


def event(
    position: int, project: int = 1, conversation: int = 1, kind: str = "message.created"
) -> StoredEvent:
    return StoredEvent(position, f"evt_{position:026}", kind, project, conversation, position, b"x" * 10)


def internal(position: int, conversation: int, project: int = 1) -> StoredEvent:
    """Return an internal event, which has no topics."""
    return event(position, project, conversation, "note.created")


def laned(position: int, conversation: int, project: int = 1, *, deleted: bool = False) -> StoredEvent:
    """Return an event with an envelope; a deletion belongs to no stored conversation."""
    about = {"conversation": {"id": f"cnv_{conversation}", "contact": {"userId": f"u{conversation % 2}"}}}
    body = orjson.dumps({"data": about})
    kind = "conversation.deleted" if deleted else "message.created"
    owner = None if deleted else conversation
    return StoredEvent(
        position,
        f"evt_{position:026}",
        kind,
        project,
        owner,
        position,
        body,
        topics=topics_of(project, about),
    )


LANES: Final = [
    *(Topic(1, "conversation", f"cnv_{number}") for number in range(1, 5)),
    Topic(2, "conversation", "cnv_1"),
    Topic(1, "contact", "u0"),
    Topic(1, "contact", "u1"),
    Topic(1, "contact", "nobody"),
]


def opened(table: Table, ring_events: int = 100, ring_bytes: int = 1 << 20) -> EventLog:
    start = table.rows[-1].position if table.rows else 0
    store: Store = table
    return EventLog(store, start, ring_events=ring_events, ring_bytes=ring_bytes)


def publish(table: Table, log: EventLog, *events: StoredEvent, erased: frozenset[int] = frozenset()) -> None:
    table.erase(erased)
    table.rows.extend(events)
    log.publish(events, erased)


async def read_all(
    log: EventLog, source: Source, after: int, limit: int, types: frozenset[str] = frozenset()
) -> list[int]:
    """Return all events that a reader gets that continues from each chunk's `upto` to the end."""
    found: list[int] = []
    while after < log.position(source if isinstance(source, int) else source.project):
        chunk = await log.read(source, after, limit, types)
        assert chunk.upto > after, "no progress"
        assert all(after < event.position <= chunk.upto for event in chunk.events)
        found += [event.position for event in chunk.events]
        after = chunk.upto
    return found
