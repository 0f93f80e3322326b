"""The counts of the HTTP layer and of the process, and the sources of the engine's, for the metrics."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import trio
from msgspec import Struct, field

from deskwire.engine.core.counters import Commits, Histogram, Room, SharedCommits
from deskwire.engine.core.database_identity import DatabaseIdentity
from deskwire.engine.core.http1 import METHODS
from deskwire.engine.privacy.retention import Pruned
from deskwire.engine.search.indexer import Progress
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.http.transport.connection_slots import Connections

_STALL_S: Final = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_TURN_S: Final = 0.25


class RequestCounts:
    """Responses by method, route and status, and the time that they took to make.

    A request that no route takes counts for the route None. Its method is anything that a client may write, so
    an uncommon one counts as `other`: metrics must not grow with what callers send.
    """

    def __init__(self) -> None:
        self.responses: Final[dict[tuple[str, str | None, int], int]] = {}
        self.seconds: Final[dict[tuple[str, str | None], Histogram]] = {}

    def note(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a response; `route` is the rule of the URL map that took the request."""
        if route is None and method not in METHODS:
            method = "other"
        key = (method, route, status)
        self.responses[key] = self.responses.get(key, 0) + 1
        taken = self.seconds.get((method, route))
        if taken is None:
            taken = self.seconds[method, route] = Histogram()
        taken.observe(seconds)


class Traffic(Struct):
    """Counts of frames written to the stream's consumers since the start, and of connections given up.

    Args:
        events, typing: frames that were written whole.
        write_timeouts: connections whose peer did not read in time.
        no_pong: connections whose peer left pings without a pong.
        flooded: connections that sent more than they may.
        crowded: connections that were refused as too many from their address had not subscribed.
        unauthorized: connections ended because the authorization of a channel was refused for now.
    """

    events: int = 0
    typing: int = 0
    write_timeouts: int = 0
    no_pong: int = 0
    flooded: int = 0
    crowded: int = 0
    unauthorized: int = 0


class Stalls:
    """The times in which the process could not go on.

    `collections` are its garbage collections by generation: how long everything stood still. `turns` tells how
    late a task runs that was due, once for each `_TURN_S`: whatever keeps Trio's one thread busy shows here.
    """

    def __init__(self) -> None:
        self.collections: Final = tuple(Histogram(_STALL_S) for _ in gc.get_threshold())
        self.turns: Final = Histogram(_STALL_S)
        self._began = 0.0

    async def run(self) -> None:
        """Observe until cancelled."""
        gc.callbacks.append(self._note)
        try:
            while True:
                due = trio.current_time() + _TURN_S
                await trio.sleep_until(due)
                self.turns.observe(trio.current_time() - due)
        finally:
            gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.collections[info["generation"]].observe(time.perf_counter() - self._began)


class NodeMeasurements(Struct, frozen=True):
    """The sources of a node's figures.

    Args:
        commits: of the batches of its writer.
        lease_s: seconds for which its lease is still surely its own, 0 if it is over.
        clock_offset_s: how far its clock is ahead of the database's.
        live: the number of nodes with a valid lease, as it knows them.
        on_duty: whether it does what only one node does.
        behind: events that its memory is known to lack.
        hints: heads that other nodes have told of, by whether that was `new` or `known`.
        messages: messages to and from other nodes, by what became of them: `sent`, `received`, `dropped`.
        barrier_s: how long it has waited for all nodes to forget something.
    """

    commits: SharedCommits
    lease_s: Callable[[], float]
    clock_offset_s: Callable[[], float]
    live: Callable[[], int]
    on_duty: Callable[[], bool]
    behind: Callable[[], int]
    hints: Callable[[], Mapping[str, int]]
    messages: Callable[[], Mapping[str, int]]
    barrier_s: Histogram


class Measurements(Struct, frozen=True):
    """The sources of the numbers that the metrics show.

    Args:
        commits: the writer's.
        waiting: the number of jobs that wait for the writer.
        scrubbing: whether bytes of something that was erased may still be in the file.
        scrub_delay: seconds for which the oldest of these bytes have been waiting.
        indexed: how far the search index is.
        room: the disk space that the database takes, None if that is somebody else's; raises OSError.
        threads: the limiter of a scrape's threads.
        connections: all connections of clients.
        consumers: the number of open stream connections.
        deaf: the number of connections that have had no subscription for long.
        log_dropped: the number of log lines that nobody took in time.
        certificate_ends: when the certificate in force does, in milliseconds since the epoch; None without one.
        identity: whether the database is the expected one.
        node: the figures of a node that shares its database; None for one that is alone.
    """

    commits: Commits
    waiting: Callable[[], int]
    scrubbing: Callable[[], bool]
    scrub_delay: Callable[[], float]
    indexed: Progress
    room: Callable[[], Room | None]
    dispatcher: Dispatcher
    connections: Connections
    consumers: Callable[[], int]
    traffic: Traffic
    deaf: Callable[[], int] = lambda: 0
    log_dropped: Callable[[], int] = lambda: 0
    certificate_ends: Callable[[], int | None] = lambda: None
    identity: DatabaseIdentity = field(default_factory=DatabaseIdentity)
    node: NodeMeasurements | None = None
    pruned: Pruned = field(default_factory=Pruned)
    stalls: Stalls = field(default_factory=Stalls)
    requests: RequestCounts = field(default_factory=RequestCounts)
    threads: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(1))
