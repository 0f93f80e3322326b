"""The parts of the cluster that other rooms use: `Cluster`, `Bus`, both for a single node, and `GracePeriod`.

`membership.ClusterMembership` is the `Cluster` of several nodes. Storage implements the `Bus`, by PostgreSQL's NOTIFY.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Final, Protocol

import trio
from msgspec import Struct

# A lease lasts 4.5 s without the database. Together this covers an outage of 10 s, such as a restart or a fail-over.
GRACE_PERIOD_S: Final = 6.0
# A load balancer notices an unready node about this late; before that, the database may be down for all nodes.
REDIRECT_DELAY_S: Final = 1.5
_CHECK_INTERVAL_S: Final = 1.0  # a lease may end early, as after a machine's sleep


class Node(Struct, frozen=True):
    """One incarnation of a node: each start and each loss of the lease begins another one.

    Args:
        incarnation: a number that is unique among all nodes and never reused; 0 for a single node.
    """

    name: str
    incarnation: int


class Cluster(Protocol):
    """The nodes that share one database, as seen by one of them."""

    @property
    def node(self) -> Node:
        """The name and the present incarnation of this node."""

    @property
    def size(self) -> int:
        """The number of nodes with a valid lease, this one included; at least 1."""

    @property
    def live(self) -> Sequence[Node]:
        """The nodes with a lease as of the last heartbeat, in the order in which they joined."""

    @property
    def valid_until(self) -> float:
        """The time of Trio's clock until which this node surely has its lease; exclusive work stops at this time."""

    async def until_valid(self) -> None:
        """Return once this node surely has its lease."""

    async def while_leader(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run `work` while this node is the leader, and wait while it is not; at most one node is the leader.

        `work` is cancelled when the node is no longer the leader, and restarted when it is the leader again. The call returns
        when `work` returns.
        """

    async def wait_for_all_nodes(self) -> None:
        """Return once every node with a lease has invalidated its caches of data that was changed before this call.

        A node that does not confirm it delays the call until its lease is over. Raises Unavailable if it takes too long.
        """


class SingleNode:
    """The cluster of a single node: it is always the leader, and never waits."""

    node = Node("", 0)
    size = 1
    live = (node,)
    valid_until = inf

    async def until_valid(self) -> None:
        """See `Cluster.until_valid`."""

    async def while_leader(self, work: Callable[[], Awaitable[object]]) -> None:
        """See `Cluster.while_leader`."""
        await work()

    async def wait_for_all_nodes(self) -> None:
        """See `Cluster.wait_for_all_nodes`."""


class Bus(Protocol):
    """Sends small messages to the other nodes at once.

    Messages may be lost, delayed or duplicated. Data that must not be lost is in the store; a message only says that there is
    something to read.
    """

    @property
    def listening(self) -> bool:
        """False if no message of other nodes can arrive at present, so that receivers must poll more often."""

    def connected(self, receiver: Callable[[], None]) -> None:
        """Call `receiver` on Trio's thread after each connect and reconnect of the bus; it must not raise."""

    def send(self, kind: str, payload: bytes) -> None:
        """Queue a message to all other nodes without waiting; if the queue is full, the oldest message is dropped.

        Args:
            payload: at most 4,000 bytes; a longer one is dropped.
        """

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """Call `receiver` on Trio's thread with the payload of each message of this kind; it must not raise."""


class NoBus:
    """The bus of a single node, or of a node without a bus: messages go nowhere."""

    listening = False

    def connected(self, receiver: Callable[[], None]) -> None:
        """See `Bus.connected`."""

    def send(self, kind: str, payload: bytes) -> None:
        """See `Bus.send`."""

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """See `Bus.receive`."""


class GracePeriod:
    """The limit on a node's wait for its lease, after which clients are disconnected to go to other nodes (ADR 60).

    Until then their streams stay open in silence.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._began = 0.0
        self._scope: trio.CancelScope | None = None

    async def until_check_due(self) -> None:
        """Return when the next check of the lease is due: at its end, and each second before."""
        await trio.sleep_until(min(self._cluster.valid_until, trio.current_time() + _CHECK_INTERVAL_S))

    async def run(self, wait: Callable[[], Awaitable[None]]) -> bool:
        """Run `wait` for at most `GRACE_PERIOD_S`; return whether it returned in time."""
        self._began = trio.current_time()
        with trio.move_on_after(GRACE_PERIOD_S) as self._scope:
            await wait()
        ended, self._scope = self._scope, None
        return not ended.cancelled_caught

    def end_nowait(self) -> None:
        """End a wait that has lasted for `REDIRECT_DELAY_S`, because another node is ready."""
        if self._scope is not None and trio.current_time() >= self._began + REDIRECT_DELAY_S:
            self._scope.cancel()
