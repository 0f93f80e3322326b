"""The follower: how a node that shares the store learns of what was committed, wherever that was (ADR 60).

A project's events stand in one line without a hole, and so do its deliveries; a head says where both end. An own commit
that is next in line goes straight into memory. All else only says that a project is behind: an own commit out of line, a
hint from another node, a look at the heads, which is taken every few seconds as hints may be lost. What is behind is read from
the table by position. So no event is skipped, doubled or out of order, whichever of the three comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

import orjson
import structlog
import trio
from msgspec import Struct

from deskwire.engine.cluster.bus import Bus
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.events.ports import HeadCommit, HeadReader, ProjectHead, Stretch
from deskwire.engine.events.shared import SharedLog
from deskwire.engine.events.types import StoredEvent

log: Final = structlog.get_logger(__name__)

KIND: Final = "events"
"""The kind of message that hints are on the bus."""

LOOK_S: Final = 5.0
"""Time between two looks at the heads while hints come."""
LOOK_OFTEN_S: Final = 0.25
"""Time between two looks without a bus."""
_GATHER_S: Final = 0.002
"""Time in which hints are gathered: the commits of a busy node are one message."""
_AGAIN_S: Final = 0.2
"""Pause before the store is asked again after it has refused."""
_HINTS: Final = 60
"""Heads in one message at most: three numbers of up to 20 digits each."""
_AT_ONCE: Final = 64
"""Projects that are read together."""
EVENTS: Final = 256
"""Events that are read together, shared out among the projects: half a millisecond of Trio's thread, or a bit more."""
_CHECK_S: Final = 60.0
"""Time between two looks whether the log is still the same while no session is lost."""
_HEADS: Final = 1_000
"""Heads that are read together."""


class Deliverer(Protocol):
    """The deliveries of this node, as they are told of what other nodes have committed."""

    @property
    def positions(self) -> Mapping[int, int]:
        """The projects with an endpoint that this node delivers to, each with the position up to which it knows of deliveries."""

    def hinted(self, heads: Iterable[ProjectHead]) -> None:
        """Take note of a hint at where the lines of these projects end; any project may be among them."""

    def looked(self, heads: Iterable[ProjectHead], before: Mapping[int, int]) -> None:
        """Take note of where the lines of projects end, as was read after the `positions` were those of `before`."""

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations."""

    def rewrite(self, events: Sequence[StoredEvent]) -> None:
        """Send these events as they are now."""


class FollowerCounters(Struct):
    """Counts of how events came into memory.

    Args:
        own: own commits that went straight in.
        read: events that were read from the table.
        hints: heads that other nodes have told of, and of them those that said something `new`.
    """

    own: int = 0
    read: int = 0
    hints: int = 0
    new: int = 0


class Follower:
    """Keeps a `SharedLog`, and the deliveries, up with the store; `run` does the reading.

    Args:
        deliverer: is told of deliveries and erasures; None if nothing is delivered here.
        look_s, look_often_s: times between two looks at the heads, with a bus and without.
        at_once: number of events that are read together, shared out among their projects.
    """

    def __init__(
        self,
        store: Store[HeadReader, object],
        event_log: SharedLog,
        bus: Bus,
        deliverer: Deliverer | None = None,
        *,
        look_s: float = LOOK_S,
        look_often_s: float = LOOK_OFTEN_S,
        at_once: int = EVENTS,
    ) -> None:
        self._store = store
        self._log = event_log
        self._bus = bus
        self._deliverer = deliverer
        self._look_s = look_s
        self._look_often_s = look_often_s
        self._at_once = at_once
        self._marked: dict[int, int] = {}
        self._due = trio.Event()
        self._moved = trio.Event()
        self._look_due = trio.Event()
        self._forgotten: dict[int, int] = {}
        self._untold: dict[int, ProjectHead] = {}
        self._tell_due = trio.Event()
        self._swept_at = trio.current_time()
        self._failing = False
        self._replaced: list[Callable[[int], object]] = []
        self._doubtful = False
        self._checked_at = trio.current_time()
        self.counters: Final = FollowerCounters()
        event_log.tell(self._mark)
        bus.receive(KIND, self._hinted)
        bus.connected(self._connected)

    @property
    def behind(self) -> int:
        """The number of events that memory is known to lack, of projects that are open."""
        positions = self._log.open_projects
        return sum(max(0, upto - positions.get(project, upto)) for project, upto in self._marked.items())

    def when_replaced(self, told: Callable[[int], object]) -> None:
        """Have `told` called with a project whose log is another than it was: the database has lost commits."""
        self._replaced.append(told)

    def follow(self, commits: Commits[HeadCommit]) -> None:
        """Take in this node's own commits from now on, and tell other nodes of them."""
        commits.subscribe(self.commit_nowait, "advances")

    def commit_nowait(self, commit: HeadCommit) -> None:
        """Take in an own commit that is next in line, and tell other nodes."""
        if commit.erased:
            self._log.erase(commit.erased)
        if commit.rewritten:
            self._log.rewrite(commit.rewritten)
        made = _by_project(commit)
        for before, after in commit.advances:
            project = after.project
            self._untold[project] = after
            if not self._log.is_open(project):
                self._log.note(project, after.events)
            elif self._log.position(project) == before.events:
                self._log.take_in(project, after.events, made.get(project, ()))
                self.counters.own += 1
            else:
                self._mark(project, after.events)
        self._tell_due.set()

    async def catch_up(self) -> None:
        """Return once all that was committed before the call is taken in, and all that was erased is forgotten.

        Raises Unavailable.
        """
        heads = await self._look()
        for head in heads:
            while head.project in self._marked and self._log.position(head.project) < head.events:
                await self._moved.wait()

    async def run(self) -> None:
        """Read what is behind, look at the heads and tell other nodes, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read_marked)
            nursery.start_soon(self._keep_looking)
            nursery.start_soon(self._tell)

    # What is behind

    def _mark(self, project: int, position: int) -> None:
        """Take note that a project that is open has an event at this position, or had."""
        if self._log.position(project) < position and self._marked.get(project, 0) < position:
            self._marked[project] = position
            self._due.set()

    async def _read_marked(self) -> None:
        while True:
            await self._due.wait()
            wanted = self._wanted()
            if not wanted:
                self._due = trio.Event()
                self._tell_moved()  # an own commit may have brought it, or nobody has the project open any more
                continue
            marks = {project: self._marked[project] for project, _ in wanted}
            limit = max(1, self._at_once // len(wanted))
            try:
                read: Sequence[Stretch] = await self._store.read(
                    InlineQuery(lambda reader, wanted=wanted, limit=limit: reader.stretches(wanted, limit))  # type: ignore[misc]
                )
            except Unavailable as refusal:
                await self._refused(refusal)
                continue
            self._failing = False
            reached = {stretch.project: stretch.upto for stretch in read}
            for stretch in read:
                self._take(stretch)
            self._unmark(marks, {project for project, upto in wanted if reached.get(project, 0) > upto})
            self._tell_moved()

    def _tell_moved(self) -> None:
        moved, self._moved = self._moved, trio.Event()
        moved.set()

    def _wanted(self) -> Sequence[tuple[int, int]]:
        """Return what to read: projects that are open and behind, each with its position. Others lose their marks."""
        positions = self._log.open_projects
        self._marked = {
            project: upto
            for project, upto in self._marked.items()
            if project in positions and positions[project] < upto
        }
        return [(project, positions[project]) for project in islice(self._marked, _AT_ONCE)]

    def _take(self, stretch: Stretch) -> None:
        project = stretch.project
        if not self._log.is_open(project):
            return
        before = self._log.position(project)
        self._log.take_in(project, stretch.upto, stretch.events, stretch.erased, stretch.rewritten)
        self.counters.read += sum(event.position > before for event in stretch.events)
        if self._deliverer is not None:
            _tell_deliverer(self._deliverer, stretch)

    def _unmark(self, marks: Mapping[int, int], moved: Collection[int]) -> None:
        """Take these marks away, but for newer ones, and those of projects that have `moved` without reaching them; put these last.

        A project that has not moved is at its end: the database has lost what the mark was about.
        """
        for project, upto in marks.items():
            now = self._marked.pop(project, 0)
            if now > upto or (
                project in moved and self._log.is_open(project) and self._log.position(project) < now
            ):
                self._marked[project] = now

    async def _refused(self, refusal: Unavailable) -> None:
        if not self._failing:
            log.warning("events.not_followed", reason=refusal.reason)
        self._failing = self._doubtful = True
        await trio.sleep(_AGAIN_S)

    # Looking at the heads

    async def _keep_looking(self) -> None:
        while True:
            with trio.move_on_after(self._look_s if self._bus.listening else self._look_often_s):
                await self._look_due.wait()
            self._look_due = trio.Event()
            if trio.current_time() >= self._swept_at + self._look_s:
                self._swept_at = trio.current_time()
                self._log.sweep()
            try:
                await self._look()
            except Unavailable as refusal:
                await self._refused(refusal)
                self._look_due.set()

    async def _look(self) -> Sequence[ProjectHead]:
        """Mark what is behind, and forget what was erased; return the heads of all projects that concern this node."""
        positions = self._log.open_projects
        served = {} if self._deliverer is None else self._deliverer.positions
        heads: list[ProjectHead] = []
        projects = [*(positions.keys() | served.keys())]
        for start in range(0, len(projects), _HEADS):
            part = projects[start : start + _HEADS]
            heads += await self._store.read(InlineQuery(lambda reader, part=part: reader.heads(part)))  # type: ignore[misc]
        replaced = await self._lost_projects()
        for head in heads:
            if not self._log.is_open(head.project):
                continue
            if head.events < positions.get(head.project, 0) or head.project in replaced:
                self._replace(head)
            self._mark(head.project, head.events)
        if self._deliverer is not None:
            concerned = [head for head in heads if head.project in served]
            self._deliverer.looked(concerned, served)
            await self._forget_erased(self._deliverer, concerned)
        return heads

    def _replace(self, head: ProjectHead) -> None:
        """Forget a log that is not there any more, and tell those who were somewhere in it."""
        log.error("events.went_back", project=head.project, position=head.events)
        self._marked.pop(head.project, None)
        self._log.rewind(head.project, head.events)
        for told in self._replaced:
            told(head.project)

    async def _lost_projects(self) -> Collection[int]:
        """Return the projects whose newest event in memory is another one in the database, if that may have been replaced.

        A copy that has taken over lacks the newest events, and may have given their positions to others by now.
        """
        if not self._doubtful and trio.current_time() < self._checked_at + _CHECK_S:
            return ()
        doubtful, self._doubtful = self._doubtful, False
        lost: list[int] = []
        known = self._log.known
        try:
            for start in range(0, len(known), _AT_ONCE):
                part = known[start : start + _AT_ONCE]
                lost += await self._store.read(
                    InlineQuery(
                        lambda reader, part=part: [  # type: ignore[misc]
                            each[0] for each in part if reader.is_other(*each)
                        ]
                    )
                )
        except Unavailable:
            self._doubtful = doubtful
            raise
        self._checked_at = trio.current_time()
        return lost

    def _connected(self) -> None:
        self._doubtful = True
        self._look_due.set()

    async def _forget_erased(self, deliverer: Deliverer, heads: Iterable[ProjectHead]) -> None:
        """Have deliveries forget what was erased up to these heads. A look that begins meanwhile sees to what is new in it."""
        ends = {head.project: head.events for head in heads}
        self._forgotten = {project: self._forgotten.get(project, 0) for project in ends}
        while behind := [each for each in self._forgotten.items() if each[1] < ends.get(each[0], 0)][
            :_AT_ONCE
        ]:
            read: Sequence[Stretch] = await self._store.read(
                InlineQuery(lambda reader, behind=behind: reader.erasures(behind, self._at_once))  # type: ignore[misc]
            )
            for stretch in read:
                self._forgotten[stretch.project] = stretch.upto
                _tell_deliverer(deliverer, stretch)
            for project in {project for project, _ in behind} - {stretch.project for stretch in read}:
                self._forgotten[project] = ends[project]

    # Hints

    def _hinted(self, payload: bytes) -> None:
        heads = [ProjectHead(*numbers) for numbers in _numbers(payload)]
        self.counters.hints += len(heads)
        for head in heads:
            if not self._log.is_open(head.project):
                self._log.note(head.project, head.events)
            elif head.events > self._log.position(head.project):
                self.counters.new += 1
                self._mark(head.project, head.events)
        if self._deliverer is not None:
            self._deliverer.hinted(heads)

    async def _tell(self) -> None:
        while True:
            await self._tell_due.wait()
            self._tell_due = trio.Event()
            heads, self._untold = [[*head] for head in self._untold.values()], {}
            for start in range(0, len(heads), _HINTS):
                self._bus.send(KIND, orjson.dumps(heads[start : start + _HINTS]))
            await trio.sleep(_GATHER_S)


def _tell_deliverer(deliverer: Deliverer, stretch: Stretch) -> None:
    if stretch.erased:
        deliverer.forget(stretch.erased)
    if stretch.rewritten:
        deliverer.rewrite(stretch.rewritten)


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
