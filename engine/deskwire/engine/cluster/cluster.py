"""The port to the other nodes, and its form for a node that is the only one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Final, Protocol

import trio
from msgspec import Struct


class Node(Struct, frozen=True):
    """A life of a node: each start, and each loss of its lease, begins another incarnation.

    Args:
        incarnation: another number for each life of any node, never given again; 0 for a node that is alone.
    """

    name: str
    incarnation: int


class Cluster(Protocol):
    """The nodes that share one database, as one of them sees them."""

    @property
    def node(self) -> Node:
        """The name of this node, with its present incarnation."""

    @property
    def size(self) -> int:
        """The number of nodes with a valid lease, this one included; at least 1."""

    @property
    def live(self) -> Sequence[Node]:
        """The nodes with a lease as of the newest beat, in the order in which they have come."""

    @property
    def valid_until(self) -> float:
        """The time, by Trio's clock, up to which this node's lease is surely its own; nothing exclusive is done after it."""

    async def until_valid(self) -> None:
        """Return when the lease is surely this node's; at once if it is."""

    async def while_leader(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run `work` while this node holds the duties, which one node at a time does; wait while it does not.

        `work` is cancelled when the duties are lost, and begun again when they come back. Returns when it returns.
        """

    async def wait_for_all_nodes(self) -> None:
        """Return once every node with a valid lease has forgotten what commits before this call have changed.

        A node that does not say so is waited for until its lease is over. Raises Unavailable if that can't be told.
        """


class SingleNode:
    """The cluster of a node that has the store to itself: it always holds everything, and waits for nobody."""

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
    """Tells the other nodes something at once. What must not be lost is in the store; the bus only says when to look."""

    @property
    def listening(self) -> bool:
        """False if nothing that other nodes send comes here at present: who waits for it must look by itself, and often."""

    def connected(self, receiver: Callable[[], None]) -> None:
        """Have `receiver` called, on Trio's thread, each time that messages begin to come, again or first; it must not raise."""

    def send(self, kind: str, payload: bytes) -> None:
        """Send to all other nodes, without waiting; the oldest of too many is dropped.

        Args:
            payload: at most 4,000 bytes; a longer one is dropped.
        """

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """Have `receiver` called, on Trio's thread, with what other nodes send of this kind; it must not raise."""


class NoBus:
    """The bus of a node that is alone, or has no way to tell others anything."""

    listening = False

    def connected(self, receiver: Callable[[], None]) -> None:
        """See `Bus.connected`."""

    def send(self, kind: str, payload: bytes) -> None:
        """See `Bus.send`."""

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """See `Bus.receive`."""


# With the 4.5 s that a lease lasts without the database this covers an outage of some 10 s, as a restart or a fail-over takes.
GRACE_PERIOD_S: Final = 6.0
# A balancer knows so late that a node is not ready; before that, the database may be away for all nodes.
REDIRECT_DELAY_S: Final = 1.5
_CHECK_INTERVAL_S: Final = 1.0  # a lease may end early, as after a machine's sleep


class GracePeriod:
    """The bound on a node's wait for its lease, after which clients are sent to other nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._began = 0.0
        self._scope: trio.CancelScope | None = None

    async def until_check_due(self) -> None:
        """Return when the lease is to be checked: at its end, and each second before."""
        await trio.sleep_until(min(self._cluster.valid_until, trio.current_time() + _CHECK_INTERVAL_S))

    async def run(self, wait: Callable[[], Awaitable[None]]) -> bool:
        """Run `wait` for `GRACE_PERIOD_S` at most; return whether it has returned by itself."""
        self._began = trio.current_time()
        with trio.move_on_after(GRACE_PERIOD_S) as self._scope:
            await wait()
        ended, self._scope = self._scope, None
        return not ended.cancelled_caught

    def end_nowait(self) -> None:
        """End a wait that has lasted for `REDIRECT_DELAY_S`, because another node is ready."""
        if self._scope is not None and trio.current_time() >= self._began + REDIRECT_DELAY_S:
            self._scope.cancel()
