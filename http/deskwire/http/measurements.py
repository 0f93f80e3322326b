"""Sources of the metrics' values: counters of HTTP, the process and the engine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import trio
from msgspec import Struct, field

from deskwire.engine.core.counters import CommitCounters, DiskSpace, Histogram, SharedCommitCounters
from deskwire.engine.core.database_identity import DatabaseIdentity
from deskwire.engine.core.http1 import METHODS
from deskwire.engine.mail.queue import MailCounters
from deskwire.engine.privacy.retention import RetentionCounters
from deskwire.engine.push.sending import PushCounters
from deskwire.engine.search.indexer import Progress
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.http.transport.connection_slots import Connections

_STALL_S: Final = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_TURN_S: Final = 0.25


class RequestCounts:
    """Responses by method, route and status, and the time to make them.

    A request without a route counts for the route None. Its method is chosen by the client, so an uncommon
    one counts as `other`: the number of time series must not depend on clients.
    """

    def __init__(self) -> None:
        self.responses: Final[dict[tuple[str, str | None, int], int]] = {}
        self.seconds: Final[dict[tuple[str, str | None], Histogram]] = {}

    def note(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a response.

        `route` is the rule of the matching route.
        """
        if route is None and method not in METHODS:
            method = "other"
        key = (method, route, status)
        self.responses[key] = self.responses.get(key, 0) + 1
        taken = self.seconds.get((method, route))
        if taken is None:
            taken = self.seconds[method, route] = Histogram()
        taken.observe(seconds)


class Traffic(Struct):
    """Counters of the stream since the start: frames written, and connections ended.

    Args:
        events, typing: frames that were written completely.
        write_timeouts: connections whose peer did not read in time.
        no_pong: connections whose peer did not answer pings.
        flooded: connections that exceeded a rate limit.
        crowded: connections that were refused because too many of their network had not subscribed.
        unauthorized: connections ended because the authorization of a channel was temporarily refused.
    """

    events: int = 0
    typing: int = 0
    write_timeouts: int = 0
    no_pong: int = 0
    flooded: int = 0
    crowded: int = 0
    unauthorized: int = 0


class Stalls:
    """Pauses of the process.

    `collections` are the garbage collections by generation, each of which stops all tasks. `turns` is the
    delay of a task that is due every `_TURN_S`, which shows any work that blocks Trio's thread.
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
        lease_s: seconds until its lease may have expired, 0 if it has.
        clock_offset_s: offset of its clock against the database's.
        live: the number of nodes with a valid lease, to its knowledge.
        is_leader: True if it is the leader.
        behind: events that its memory is known to lack.
        hints: announcements of new heads by other nodes, by whether they were `new` or `known`.
        messages: messages to and from other nodes, by outcome: `sent`, `received`, `dropped`.
        barrier_s: time spent waiting until all nodes had invalidated their caches.
    """

    commits: SharedCommitCounters
    lease_s: Callable[[], float]
    clock_offset_s: Callable[[], float]
    live: Callable[[], int]
    is_leader: Callable[[], bool]
    behind: Callable[[], int]
    hints: Callable[[], Mapping[str, int]]
    messages: Callable[[], Mapping[str, int]]
    barrier_s: Histogram


class Measurements(Struct, frozen=True):
    """The sources of the metrics' values.

    Args:
        commits: the writer's.
        waiting: the number of jobs that wait for the writer.
        scrubbing: True if the file may still have bytes of erased data.
        scrub_delay: the age of the oldest such bytes in seconds.
        indexed: the progress of the search index.
        room: the disk space of the database, None if it is on another machine; raises OSError.
        threads: the limiter of a scrape's threads.
        connections: all connections of clients.
        consumers: the number of open stream connections.
        deaf: the number of connections that have had no subscription for long.
        log_dropped: the number of log lines that were dropped because the output was blocked.
        certificate_ends: the expiry of the certificate in use, in milliseconds since the epoch; None
            without one.
        identity: whether the database is the expected one.
        mails: counters of the mails that this node sent.
        pushes: counters of the web pushes that this node sent.
        node: the figures of a node that shares its database; None for a single node.
    """

    commits: CommitCounters
    waiting: Callable[[], int]
    scrubbing: Callable[[], bool]
    scrub_delay: Callable[[], float]
    indexed: Progress
    room: Callable[[], DiskSpace | None]
    dispatcher: Dispatcher
    connections: Connections
    consumers: Callable[[], int]
    traffic: Traffic
    deaf: Callable[[], int] = lambda: 0
    log_dropped: Callable[[], int] = lambda: 0
    certificate_ends: Callable[[], int | None] = lambda: None
    identity: DatabaseIdentity = field(default_factory=DatabaseIdentity)
    node: NodeMeasurements | None = None
    mails: MailCounters = field(default_factory=MailCounters)
    pushes: PushCounters = field(default_factory=PushCounters)
    pruned: RetentionCounters = field(default_factory=RetentionCounters)
    stalls: Stalls = field(default_factory=Stalls)
    requests: RequestCounts = field(default_factory=RequestCounts)
    threads: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(1))
