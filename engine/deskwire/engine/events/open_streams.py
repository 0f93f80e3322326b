"""The open streams of one kind on this node: their number, their ends, and the lease that they need (ADR 51)."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import structlog
import trio
from msgspec import Struct

from deskwire.engine.cluster.cluster import Cluster, GracePeriod, SingleNode
from deskwire.engine.events.event_stream import EventStream

log: Final = structlog.get_logger(__name__)

_GOODBYE_TIMEOUT_S: Final = 1.5  # time that readers have at a shutdown to send their goodbye

S = TypeVar("S", bound=EventStream[Any])


class StreamCounters(Struct):
    """Counts since the start, for metrics.

    Args:
        ended: streams that this node ended, by reason.
        events: stored events that were written.
        ephemeral: ephemeral events that were written, presence included.
        gaps: streams that began with a gap.
        refused: streams that were refused because a limit was reached.
    """

    ended: dict[str, int]
    events: int = 0
    ephemeral: int = 0
    gaps: int = 0
    refused: int = 0


class OpenStreams(Generic[S]):
    """Open streams, which end with a goodbye at a shutdown, and without one if the node has lost its lease for long.

    Args:
        kind: names the streams in the log.
        reasons: the reasons in goodbyes.
        cluster: the cluster of nodes that share the store.
    """

    def __init__(self, kind: str, reasons: tuple[str, ...], cluster: Cluster | None = None) -> None:
        self.counters: Final = StreamCounters(dict.fromkeys((*reasons, "out_of_touch"), 0))
        self.kind: Final = kind
        self._cluster = cluster or SingleNode()
        self._grace_period = GracePeriod(self._cluster)
        self._open: dict[S, None] = {}
        self._closing = False
        self._stopped = trio.Event()

    def __len__(self) -> int:
        """Return the number of open streams."""
        return len(self._open)

    @property
    def lag(self) -> int:
        """The largest number of unread events of a stream, as far as they are in memory."""
        return max((stream.lag for stream in self._open), default=0)

    @property
    def stalled(self) -> int:
        """The number of streams that receive no new events, because the node has no lease."""
        return 0 if trio.current_time() < self._cluster.valid_until else len(self._open)

    def end(self, stream: S, bye: str) -> None:
        """End a stream with a goodbye; its reader closes it."""
        if stream.bye is None:
            self.counters.ended[bye] += 1
        stream.end(bye)

    def close_all(self) -> None:
        """End all streams, and any that open later, with a goodbye."""
        self._closing = True
        for stream in self._open:
            self.end(stream, "shutdown")
        if not self._open:
            self._stopped.set()

    async def drain_streams(self) -> None:
        """Wait after `close_all` until all streams are closed, then drop the connections of those that do not read."""
        with trio.move_on_after(_GOODBYE_TIMEOUT_S):
            await self._stopped.wait()
        for stream in self._open:
            stream.drop()

    def send_away_nowait(self) -> None:
        """End all streams if the node has been without its lease for a moment, because another node is ready."""
        self._grace_period.end_nowait()

    def _enter(self, stream: S) -> None:
        self._open[stream] = None

    def close(self, stream: S) -> None:
        """Remove a stream whose reader has finished; called once."""
        del self._open[stream]
        stream.close()
        if self._closing and not self._open:
            self._stopped.set()

    async def _lapse(self) -> None:
        """End all streams once the node has been without its lease for too long, because it may lack new events."""
        while True:
            await self._grace_period.until_check_due()
            if not await self._grace_period.run(self._cluster.until_valid):
                log.warning(f"{self.kind}.streams_lapsed", streams=len(self._open))
                for stream in self._open:
                    stream.lapse()
                self.counters.ended["out_of_touch"] += len(self._open)
                await self._cluster.until_valid()
