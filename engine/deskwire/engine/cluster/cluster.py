"""The port to the other nodes, and its form for a node that is the only one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Protocol

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

    async def on_duty(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run `work` while this node holds the duties, which one node at a time does; wait while it does not.

        `work` is cancelled when the duties are lost, and begun again when they come back. Returns when it returns.
        """

    async def everywhere(self) -> None:
        """Return once every node with a valid lease has forgotten what commits before this call have changed.

        A node that does not say so is waited for until its lease is over. Raises Unavailable if that can't be told.
        """


class Alone:
    """The cluster of a node that has the store to itself: it always holds everything, and waits for nobody."""

    node = Node("", 0)
    size = 1
    live = (node,)
    valid_until = inf

    async def until_valid(self) -> None:
        """See `Cluster.until_valid`."""

    async def on_duty(self, work: Callable[[], Awaitable[object]]) -> None:
        """See `Cluster.on_duty`."""
        await work()

    async def everywhere(self) -> None:
        """See `Cluster.everywhere`."""
