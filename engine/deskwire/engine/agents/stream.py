"""One agent's stream: a cursor over all events of a project, and what passes meanwhile.

What waits for a slow reader is the log itself, and a few passing events of which later ones overrule the earlier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Literal, NamedTuple

import trio

from deskwire.engine.agents.passing import Passing
from deskwire.engine.agents.presence import NOTHING, Agent, View
from deskwire.engine.agents.rights import Lost, Viewer
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.batch import BATCH_EVENTS, fitting
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.tail import Tail
from deskwire.engine.events.types import Agents, StoredEvent

_PASSING: Final = 32
"""Passing events that wait for a slow reader; the oldest are dropped."""

_PACE_S: Final = 0.05
"""Time between two batches of a reader that keeps up: a busy project costs each of its readers that many turns, not more."""

Bye = Literal["shutdown", Lost, "too_many_streams"]
"""The reason for which a stream is ended."""


class Start(NamedTuple):
    """The place at which a stream begins.

    Args:
        position: in the log; what lies behind it is sent.
        at: id of the newest event up to there; None if there is none.
        resumed_after: the event that the reader has said it has; None when starting from now.
        gap: what was missed is no longer stored, or nobody knows what it was.
    """

    position: int
    at: str | None
    resumed_after: str | None = None
    gap: bool = False


class Batch(NamedTuple):
    """The things to be written next: events in commit order, passing ones, agents whose presence is another, or the end."""

    events: Sequence[StoredEvent] = ()
    passing: Sequence[Passing] = ()
    present: Sequence[Agent] = ()
    bye: Bye | None = None


class AgentStream:
    """A stream that is open; made by `AgentStreams.open`, and closed by its reader.

    Args:
        drop: ends the connection at once, whatever still waits in it.

    Attributes:
        lapsed: whether the node has been without its lease for too long, and may miss new events.
    """

    __slots__ = (
        "_cursor",
        "_log",
        "_next_at",
        "_passing",
        "_present",
        "_source",
        "_tail",
        "_wakeup",
        "bye",
        "drop",
        "id",
        "lapsed",
        "start",
        "view",
        "viewer",
    )

    def __init__(
        self, log: EventLog, tail: Tail, stream_id: str, viewer: Viewer, drop: Callable[[], None]
    ) -> None:
        self.id = stream_id
        self.viewer = viewer
        self.drop = drop
        self.view: View = NOTHING
        self.bye: Bye | None = None
        self.lapsed = False
        self.start = Start(0, None)
        self._log = log
        self._tail = tail
        self._source = Agents(viewer.project.rowid)
        self._cursor = 0
        self._next_at = -inf
        self._passing: deque[Passing] | None = None  # most have nothing that waits
        self._present: dict[Agent, None] = {}
        self._wakeup: trio.Event | None = None
        tail.listen(self.wake)

    def begin(self, start: Start) -> None:
        """Begin at this place; called once, before the first batch is taken."""
        self.start, self._cursor = start, start.position
        if start.resumed_after is None:  # nothing lies between the newest event and where the tail begins
            self._cursor = max(start.position, self._tail.floor)

    @property
    def agent(self) -> Agent:
        """The agent whose stream it is."""
        return Agent(self.viewer.id, self.viewer.name)

    @property
    def lag(self) -> int:
        """The number of events in memory that were not taken yet; there may be more on the disk."""
        return self._tail.count_after(self._cursor)

    def wake(self) -> None:
        """Have the reader look whether there is something."""
        if self._wakeup is not None:
            self._wakeup.set()

    def end(self, bye: Bye) -> None:
        """End the stream; what was not taken yet is left to the next one. The first reason counts."""
        self.bye = self.bye or bye
        self.wake()

    def lapse(self) -> None:
        """End the stream without a goodbye, so that its reader connects again, to any node."""
        self.lapsed = True
        self.wake()

    def offer(self, event: Passing) -> None:
        """Pass an event on to the reader; the oldest that waits may be dropped for it."""
        if self._passing is None:
            self._passing = deque(maxlen=_PASSING)
        self._passing.append(event)
        self.wake()

    def tell_presence(self, agent: Agent) -> None:
        """Have the reader told what an agent looks at, as that is when it is told."""
        self._present[agent] = None
        self.wake()

    async def next(self) -> Batch:
        """Return what is to be written next, once there is something.

        Cancellation: nothing is lost. Raises Unavailable if events must be read from the disk and can't be, and once the
        stream has lapsed.
        """
        await trio.lowlevel.checkpoint()
        while self.bye is None:
            if self.lapsed:
                raise Unavailable("This node has lost touch with the others.", code="out_of_touch")
            reached = self._tail.reaches(self._cursor)
            batch = Batch(self._recent() if reached else await self._stored(), *self._passed())
            if batch.events or batch.passing or batch.present:
                self._next_at = trio.current_time() + _PACE_S
                return batch
            if reached:
                await self._wait()
                await trio.sleep_until(self._next_at)
        return Batch(bye=self.bye)

    async def _wait(self) -> None:
        self._wakeup = trio.Event()
        try:
            await self._wakeup.wait()
        finally:
            self._wakeup = None

    def _recent(self) -> Sequence[StoredEvent]:
        return self._moved(self._tail.after(self._cursor, BATCH_EVENTS), self._tail.head.position)

    async def _stored(self) -> Sequence[StoredEvent]:
        chunk = await self._log.stored(self._source, self._cursor, BATCH_EVENTS)
        return self._moved(chunk.events, chunk.upto)

    def _moved(self, events: Sequence[StoredEvent], newest: int) -> Sequence[StoredEvent]:
        """Move on over these events, all that there are up to `newest` or the first of them; return those of one batch."""
        count = fitting(events)
        if count == len(events) < BATCH_EVENTS:
            self._cursor = max(newest, self._cursor)
            return events
        self._cursor = events[count - 1].position
        return events[:count]

    def _passed(self) -> tuple[Sequence[Passing], Sequence[Agent]]:
        """Take what passes."""
        passing, self._passing = tuple(self._passing or ()), None
        present, self._present = tuple(self._present), {}
        return passing, present

    def close(self) -> None:
        """Listen no longer. The reader must have gone."""
        self._tail.unlisten(self.wake)
