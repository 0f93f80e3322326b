"""One agent's stream: all events of a project, ephemeral events, and changes of other agents' presence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from deskwire.engine.agents.presence import NOTHING, Agent, View
from deskwire.engine.agents.rights import LostRight, Viewer
from deskwire.engine.events.event_stream import Ephemeral, EventStream
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.tail import Tail
from deskwire.engine.events.types import AgentsSource, StoredEvent

Bye = Literal["shutdown", LostRight, "too_many_streams"]  # the reason for the end of a stream


class AgentStreamBatch(NamedTuple):
    """The next items to write: events in commit order, ephemeral events, agents with changed presence, or the end."""

    events: Sequence[StoredEvent] = ()
    ephemeral: Sequence[Ephemeral] = ()
    present: Sequence[Agent] = ()
    bye: Bye | None = None


class AgentStream(EventStream[Bye]):
    """An open stream, made by `AgentStreams.open` and closed by its reader; see `EventStream`."""

    __slots__ = ("_present", "id", "view", "viewer")

    def __init__(
        self, log: EventLog, tail: Tail, stream_id: str, viewer: Viewer, drop: Callable[[], None]
    ) -> None:
        super().__init__(log, tail, AgentsSource(viewer.project.rowid), drop)
        self.id = stream_id
        self.viewer = viewer
        self.view: View = NOTHING
        self._present: dict[Agent, None] = {}

    @property
    def agent(self) -> Agent:
        """The agent who opened the stream."""
        return Agent(self.viewer.id, self.viewer.name)

    def queue_presence(self, agent: Agent) -> None:
        """Queue a presence update for an agent; the reader sends the presence of the time of sending."""
        self._present[agent] = None
        self.wake()

    @property
    def _queued(self) -> bool:
        return super()._queued or bool(self._present)

    async def next(self) -> AgentStreamBatch:
        """Return the next items to write, once there are any. See `EventStream.next_items`."""
        events, ephemeral, bye = await self.next_items()
        present, self._present = tuple(self._present), {}
        return AgentStreamBatch(events, ephemeral, present, bye)
