"""One agent's stream: a cursor over all events of a project, and what passes meanwhile.

What waits for a slow reader is the log itself, and a few ephemeral events of which later ones overrule the earlier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Literal, NamedTuple

import trio
from msgspec import Struct, field

from deskwire.engine.agents.presence import NOTHING, Agent, Ephemeral, View
from deskwire.engine.agents.rights import LostRight, Viewer
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.tail import BATCH_SIZE, Tail, count_fitting
from deskwire.engine.events.types import AgentsSource, StoredEvent

_EPHEMERAL_MAX: Final = 32
"""Passing events that wait for a slow reader; the oldest are dropped."""

_MIN_BATCH_INTERVAL_S: Final = 0.05
"""Time between two batches of a reader that keeps up: a busy project costs each of its readers that many turns, not more."""

Bye = Literal["shutdown", LostRight, "too_many_streams"]
"""The reason for which a stream is ended."""


class StreamStart(NamedTuple):
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


class AgentStreamBatch(NamedTuple):
    """The things to be written next: events in commit order, ephemeral ones, agents whose presence is another, or the end."""

    events: Sequence[StoredEvent] = ()
    ephemeral: Sequence[Ephemeral] = ()
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
        "_ephemeral",
        "_log",
        "_next_at",
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
        self.start = StreamStart(0, None)
        self._log = log
        self._tail = tail
        self._source = AgentsSource(viewer.project.rowid)
        self._cursor = 0
        self._next_at = -inf
        self._ephemeral: deque[Ephemeral] | None = None  # most have nothing that waits
        self._present: dict[Agent, None] = {}
        self._wakeup: trio.Event | None = None
        tail.listen(self.wake)

    def begin(self, start: StreamStart) -> None:
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

    def offer(self, event: Ephemeral) -> None:
        """Pass an event on to the reader; the oldest that waits may be dropped for it."""
        if self._ephemeral is None:
            self._ephemeral = deque(maxlen=_EPHEMERAL_MAX)
        self._ephemeral.append(event)
        self.wake()

    def queue_presence(self, agent: Agent) -> None:
        """Have the reader told what an agent looks at, as that is when it is told."""
        self._present[agent] = None
        self.wake()

    async def next(self) -> AgentStreamBatch:
        """Return what is to be written next, once there is something.

        Cancellation: nothing is lost. Raises Unavailable if events must be read from the disk and can't be, and once the
        stream has lapsed.
        """
        await trio.lowlevel.checkpoint()
        while self.bye is None:
            if self.lapsed:
                raise Unavailable("This node has lost touch with the others.", code="out_of_touch")
            reached = self._tail.reaches(self._cursor)
            batch = AgentStreamBatch(
                self._recent() if reached else await self._stored(), *self._take_ephemeral()
            )
            if batch.events or batch.ephemeral or batch.present:
                self._next_at = trio.current_time() + _MIN_BATCH_INTERVAL_S
                return batch
            if reached:
                await self._wait()
                await trio.sleep_until(self._next_at)
        return AgentStreamBatch(bye=self.bye)

    async def _wait(self) -> None:
        self._wakeup = trio.Event()
        try:
            await self._wakeup.wait()
        finally:
            self._wakeup = None

    def _recent(self) -> Sequence[StoredEvent]:
        return self._moved(self._tail.after(self._cursor, BATCH_SIZE), self._tail.head.position)

    async def _stored(self) -> Sequence[StoredEvent]:
        chunk = await self._log.stored(self._source, self._cursor, BATCH_SIZE)
        return self._moved(chunk.events, chunk.upto)

    def _moved(self, events: Sequence[StoredEvent], newest: int) -> Sequence[StoredEvent]:
        """Move on over these events, all that there are up to `newest` or the first of them; return those of one batch."""
        count = count_fitting(events)
        if count == len(events) < BATCH_SIZE:
            self._cursor = max(newest, self._cursor)
            return events
        self._cursor = events[count - 1].position
        return events[:count]

    def _take_ephemeral(self) -> tuple[Sequence[Ephemeral], Sequence[Agent]]:
        """Take what passes."""
        ephemeral, self._ephemeral = tuple(self._ephemeral or ()), None
        present, self._present = tuple(self._present), {}
        return ephemeral, present

    def close(self) -> None:
        """Listen no longer. The reader must have gone."""
        self._tail.unlisten(self.wake)


class StreamCounters(Struct):
    """Counts since the start: what the readers of agents' streams have taken, and how streams have ended.

    Args:
        events: stored events.
        ephemeral: ephemeral ones, presence among them.
        gaps: streams that began with a gap.
        ended: streams that were ended here, by the reason.
        refused: streams for which there was no place.
    """

    events: int = 0
    ephemeral: int = 0
    gaps: int = 0
    refused: int = 0
    ended: dict[str, int] = field(
        default_factory=lambda: {
            "shutdown": 0,
            "session_ended": 0,
            "permission_lost": 0,
            "too_many_streams": 0,
            "out_of_touch": 0,
        }
    )


BEGINNING: Final = f"evt_{'0' * 26}"
"""Stands for the newest event of a project that has none."""


def find_start(reader: EventReader, project: int, after: str | None) -> StreamStart:
    """Return the place behind the event `after`; or the newest place, with a gap if that event is not known.

    It is not known if it was pruned, erased, or made after the moment that a restored backup is of. What came behind it
    can't be told then, so the page fetches all anew. The one that was pruned last is good: what came behind it is there.
    """
    newest = reader.newest_event(project)
    now = StreamStart(*(newest or (0, BEGINNING)))
    if after is None:
        return now
    pruned, _ = reader.event_window(project)
    if after == BEGINNING:
        return now._replace(gap=True) if pruned else StreamStart(0, now.at, after)
    position = reader.event_position(project, after)
    if after == pruned or reader.is_event_at(project, position, after):
        return StreamStart(position, now.at, after)
    return now._replace(gap=True)
