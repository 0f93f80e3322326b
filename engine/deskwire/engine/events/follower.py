"""The follower: tails the event log of a shared store, merging local commits with those of other nodes (ADR 60).

A project's events are numbered without holes, and so are its deliveries; the project's head holds both newest positions. A
local commit that continues the events in memory is applied directly. Everything else only marks the project as behind: a local
commit after a gap, a hint from another node, or a poll of the heads, which runs every few seconds because hints may be lost.
Missing events are read from the table by position. So no event is skipped, duplicated or out of order, whichever of the three
arrives first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

import orjson
import structlog
import trio
from msgspec import Struct

from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.events.ports import HeadCommit, HeadReader, LogSegment, ProjectHead
from deskwire.engine.events.shared_log import SharedLog
from deskwire.engine.events.types import StoredEvent

log: Final = structlog.get_logger(__name__)

MESSAGE_KIND: Final = "events"  # the kind of the hints on the bus

POLL_INTERVAL_S: Final = 5.0  # interval between polls of the heads while the bus delivers hints
POLL_INTERVAL_WITHOUT_BUS_S: Final = 0.25  # poll interval when there is no message bus
# Time for which hints are collected, so that a busy node sends few messages.
_HINT_BATCH_DELAY_S: Final = 0.002
_RETRY_DELAY_S: Final = 0.2  # pause before a read that the store refused is repeated
_HINTS_MAX: Final = 60  # maximum heads per message (about 60 bytes each)
_PROJECT_BATCH_SIZE: Final = 64  # projects in one read of missing events
# Events in one read, divided among its projects: they take about half a millisecond of Trio's thread.
EVENT_BATCH_SIZE: Final = 256
# Interval between checks that the log was not replaced, as long as no database session was lost.
_CHECK_INTERVAL_S: Final = 60.0
_HEAD_BATCH_SIZE: Final = 1_000  # heads in one read


class Deliverer(Protocol):
    """The deliveries of this node: it receives the commits of other nodes."""

    @property
    def positions(self) -> Mapping[int, int]:
        """The projects with an endpoint of this node, each with the position up to which its deliveries are known."""

    def note_hints(self, heads: Iterable[ProjectHead]) -> None:
        """Note heads from a hint; projects without an endpoint of this node may be among them."""

    def note_heads(self, heads: Iterable[ProjectHead], before: Mapping[int, int]) -> None:
        """Note heads that were read after `positions` had the value `before`."""

    def forget(self, conversations: frozenset[int]) -> None:
        """Drop the deliveries of erased conversations."""

    def rewrite(self, events: Sequence[StoredEvent]) -> None:
        """Replace the bodies of pending deliveries of these events."""


class FollowerCounters(Struct):
    """Counts of the ways in which events came into memory.

    Args:
        own: local commits that were applied directly.
        read: events that were read from the table.
        hints: heads that came from other nodes.
        new: heads from other nodes that were ahead of memory.
    """

    own: int = 0
    read: int = 0
    hints: int = 0
    new: int = 0


class Follower:
    """Keeps a `SharedLog` and the deliveries of this node current; `run` reads from the store.

    Args:
        deliverer: notified of heads, erasures and redactions; None if this node delivers nothing.
        poll_interval_s, poll_interval_without_bus_s: intervals between polls of the heads, with a bus and without one.
        batch_size: number of events in one read, divided among its projects.
    """

    def __init__(
        self,
        store: Store[HeadReader, object],
        event_log: SharedLog,
        bus: Bus,
        deliverer: Deliverer | None = None,
        *,
        poll_interval_s: float = POLL_INTERVAL_S,
        poll_interval_without_bus_s: float = POLL_INTERVAL_WITHOUT_BUS_S,
        batch_size: int = EVENT_BATCH_SIZE,
    ) -> None:
        self._store = store
        self._log = event_log
        self._bus = bus
        self._deliverer = deliverer
        self._poll_interval_s = poll_interval_s
        self._poll_interval_without_bus_s = poll_interval_without_bus_s
        self._batch_size = batch_size
        self._behind: dict[int, int] = {}
        self._due = trio.Event()
        self._moved = trio.Event()
        self._poll_due = trio.Event()
        self._erasures_read: dict[int, int] = {}
        self._unsent: dict[int, ProjectHead] = {}
        self._send_due = trio.Event()
        self._evicted_at = trio.current_time()
        self._failing = False
        self._replaced_listeners: list[Callable[[int], object]] = []
        self._suspect = False
        self._checked_at = trio.current_time()
        self.counters: Final = FollowerCounters()
        event_log.on_gap(self._mark)
        bus.receive(MESSAGE_KIND, self._receive_hints)
        bus.connected(self._connected)

    @property
    def missing_events(self) -> int:
        """The number of events of open projects that are known to be missing from memory."""
        positions = self._log.open_projects
        return sum(max(0, upto - positions.get(project, upto)) for project, upto in self._behind.items())

    def on_log_replaced(self, listener: Callable[[int], object]) -> None:
        """Call `listener` with each project whose log was replaced, because the database lost commits."""
        self._replaced_listeners.append(listener)

    def follow(self, commits: Commits[HeadCommit]) -> None:
        """Apply this node's commits from now on, and send hints about them to other nodes."""
        commits.subscribe(self.commit_nowait, "advances")

    def commit_nowait(self, commit: HeadCommit) -> None:
        """Apply a local commit if it continues the events in memory, and send a hint to other nodes."""
        if commit.erased:
            self._log.erase(commit.erased)
        if commit.rewritten:
            self._log.rewrite(commit.rewritten)
        made = _by_project(commit)
        for before, after in commit.advances:
            project = after.project
            self._unsent[project] = after
            if not self._log.is_open(project):
                self._log.note(project, after.events)
            elif self._log.position(project) == before.events:
                self._log.apply(project, after.events, made.get(project, ()))
                self.counters.own += 1
            else:
                self._mark(project, after.events)
        self._send_due.set()

    async def catch_up(self) -> None:
        """Return once memory has every commit that preceded the call, and lacks every erased event.

        Raises Unavailable.
        """
        heads = await self._poll()
        for head in heads:
            while head.project in self._behind and self._log.position(head.project) < head.events:
                await self._moved.wait()

    async def run(self) -> None:
        """Read missing events, poll the heads and send hints, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read_behind)
            nursery.start_soon(self._keep_polling)
            nursery.start_soon(self._send_hints)

    # Reading missing events

    def _mark(self, project: int, position: int) -> None:
        """Mark an open project as behind if memory does not reach this position."""
        if self._log.position(project) < position and self._behind.get(project, 0) < position:
            self._behind[project] = position
            self._due.set()

    async def _read_behind(self) -> None:
        while True:
            await self._due.wait()
            wanted = self._next_reads()
            if not wanted:
                self._due = trio.Event()
                self._notify_moved()  # a local commit may have filled the gap, or the project was closed
                continue
            marks = {project: self._behind[project] for project, _ in wanted}
            limit = max(1, self._batch_size // len(wanted))
            try:
                read: Sequence[LogSegment] = await self._store.read(
                    InlineQuery(lambda reader, wanted=wanted, limit=limit: reader.segments(wanted, limit))  # type: ignore[misc]
                )
            except Unavailable as refusal:
                await self._back_off(refusal)
                continue
            self._failing = False
            reached = {segment.project: segment.upto for segment in read}
            for segment in read:
                self._apply(segment)
            self._unmark(marks, {project for project, upto in wanted if reached.get(project, 0) > upto})
            self._notify_moved()

    def _notify_moved(self) -> None:
        moved, self._moved = self._moved, trio.Event()
        moved.set()

    def _next_reads(self) -> Sequence[tuple[int, int]]:
        """Return the open projects that are behind, each with its position in memory; unmark all others."""
        positions = self._log.open_projects
        self._behind = {
            project: upto
            for project, upto in self._behind.items()
            if project in positions and positions[project] < upto
        }
        return [(project, positions[project]) for project in islice(self._behind, _PROJECT_BATCH_SIZE)]

    def _apply(self, segment: LogSegment) -> None:
        project = segment.project
        if not self._log.is_open(project):
            return
        before = self._log.position(project)
        self._log.apply(project, segment.upto, segment.events, segment.erased, segment.rewritten)
        self.counters.read += sum(event.position > before for event in segment.events)
        if self._deliverer is not None:
            _notify_deliverer(self._deliverer, segment)

    def _unmark(self, marks: Mapping[int, int], moved: Collection[int]) -> None:
        """Remove these marks, except newer ones and those that a project in `moved` has not reached yet.

        The remaining marks go to the end of the queue. A project that has not moved is at its head, so the database has lost
        the event of its mark.
        """
        for project, upto in marks.items():
            now = self._behind.pop(project, 0)
            if now > upto or (
                project in moved and self._log.is_open(project) and self._log.position(project) < now
            ):
                self._behind[project] = now

    async def _back_off(self, refusal: Unavailable) -> None:
        if not self._failing:
            log.warning("events.not_followed", reason=refusal.reason)
        self._failing = self._suspect = True
        await trio.sleep(_RETRY_DELAY_S)

    # Polling the heads

    async def _keep_polling(self) -> None:
        while True:
            with trio.move_on_after(
                self._poll_interval_s if self._bus.listening else self._poll_interval_without_bus_s
            ):
                await self._poll_due.wait()
            self._poll_due = trio.Event()
            if trio.current_time() >= self._evicted_at + self._poll_interval_s:
                self._evicted_at = trio.current_time()
                self._log.evict_unused()
            try:
                await self._poll()
            except Unavailable as refusal:
                await self._back_off(refusal)
                self._poll_due.set()

    async def _poll(self) -> Sequence[ProjectHead]:
        """Mark projects that are behind, apply erasures, and return the heads of this node's projects."""
        positions = self._log.open_projects
        served = {} if self._deliverer is None else self._deliverer.positions
        heads: list[ProjectHead] = []
        projects = [*(positions.keys() | served.keys())]
        for start in range(0, len(projects), _HEAD_BATCH_SIZE):
            part = projects[start : start + _HEAD_BATCH_SIZE]
            heads += await self._store.read(InlineQuery(lambda reader, part=part: reader.heads(part)))  # type: ignore[misc]
        replaced = await self._find_replaced()
        for head in heads:
            if not self._log.is_open(head.project):
                continue
            if head.events < positions.get(head.project, 0) or head.project in replaced:
                self._replace(head)
            self._mark(head.project, head.events)
        if self._deliverer is not None:
            concerned = [head for head in heads if head.project in served]
            self._deliverer.note_heads(concerned, served)
            await self._apply_erasures(self._deliverer, concerned)
        return heads

    def _replace(self, head: ProjectHead) -> None:
        """Evict the events of a log that was replaced, and notify the listeners."""
        log.error("events.went_back", project=head.project, position=head.events)
        self._behind.pop(head.project, None)
        self._log.rewind(head.project, head.events)
        for listener in self._replaced_listeners:
            listener(head.project)

    async def _find_replaced(self) -> Collection[int]:
        """Return the projects whose newest event in memory differs from the database's event at that position.

        The check runs only if the database may have been replaced. A replica that became the primary lacks the newest events,
        and may have assigned their positions to other events by now.
        """
        if not self._suspect and trio.current_time() < self._checked_at + _CHECK_INTERVAL_S:
            return ()
        suspect, self._suspect = self._suspect, False
        lost: list[int] = []
        known = self._log.newest_events
        try:
            for start in range(0, len(known), _PROJECT_BATCH_SIZE):
                part = known[start : start + _PROJECT_BATCH_SIZE]
                lost += await self._store.read(
                    InlineQuery(
                        lambda reader, part=part: [  # type: ignore[misc]
                            each[0] for each in part if reader.is_replaced(*each)
                        ]
                    )
                )
        except Unavailable:
            self._suspect = suspect
            raise
        self._checked_at = trio.current_time()
        return lost

    def _connected(self) -> None:
        self._suspect = True
        self._poll_due.set()

    async def _apply_erasures(self, deliverer: Deliverer, heads: Iterable[ProjectHead]) -> None:
        """Read the erasures up to these heads, and notify the deliverer of them."""
        ends = {head.project: head.events for head in heads}
        self._erasures_read = {project: self._erasures_read.get(project, 0) for project in ends}
        while behind := [each for each in self._erasures_read.items() if each[1] < ends.get(each[0], 0)][
            :_PROJECT_BATCH_SIZE
        ]:
            read: Sequence[LogSegment] = await self._store.read(
                InlineQuery(lambda reader, behind=behind: reader.erasures(behind, self._batch_size))  # type: ignore[misc]
            )
            for segment in read:
                self._erasures_read[segment.project] = segment.upto
                _notify_deliverer(deliverer, segment)
            for project in {project for project, _ in behind} - {segment.project for segment in read}:
                self._erasures_read[project] = ends[project]

    # Hints

    def _receive_hints(self, payload: bytes) -> None:
        heads = [ProjectHead(*numbers) for numbers in _numbers(payload)]
        self.counters.hints += len(heads)
        for head in heads:
            if not self._log.is_open(head.project):
                self._log.note(head.project, head.events)
            elif head.events > self._log.position(head.project):
                self.counters.new += 1
                self._mark(head.project, head.events)
        if self._deliverer is not None:
            self._deliverer.note_hints(heads)

    async def _send_hints(self) -> None:
        while True:
            await self._send_due.wait()
            self._send_due = trio.Event()
            heads, self._unsent = [[*head] for head in self._unsent.values()], {}
            for start in range(0, len(heads), _HINTS_MAX):
                self._bus.send(MESSAGE_KIND, orjson.dumps(heads[start : start + _HINTS_MAX]))
            await trio.sleep(_HINT_BATCH_DELAY_S)


def _notify_deliverer(deliverer: Deliverer, segment: LogSegment) -> None:
    if segment.erased:
        deliverer.forget(segment.erased)
    if segment.rewritten:
        deliverer.rewrite(segment.rewritten)


def _by_project(commit: HeadCommit) -> Mapping[int, Sequence[StoredEvent]]:
    if len(commit.advances) == 1:  # the usual case
        return {commit.advances[0].after.project: commit.events}
    made: dict[int, list[StoredEvent]] = {}
    for event in commit.events:
        made.setdefault(event.project, []).append(event)
    return made


def _numbers(payload: bytes) -> list[Any]:
    found: list[Any] = orjson.loads(payload)
    return found
