"""The port to the store of leases: the live nodes by the database's clock, and the epoch that each has seen.

A lease is over only when its row is deleted. `expire_nodes` deletes the row after the lease has expired by the database's clock.
It locks the row as a heartbeat does, so one of the two wins and the other one notices. So a check whether a lease is over reads
its row and compares no clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class JoiningNode(Struct, frozen=True):
    """A node that requests a lease.

    Args:
        run: a random id of the process, which distinguishes it from another one with the same name.
        files: the place of its uploads.
    """

    name: str
    run: str
    version: str
    files: str = ""

    def refusal(self, other: str, files: str) -> NotAdmitted:
        """Return the error for a live node with this name and place of uploads."""
        if other == self.name:
            return NotAdmitted(
                f"A node named {other} runs on this database already. Give each a DESKWIRE_NODE of its own, or leave it unset: "
                "then each makes one up."
            )
        if files == self.files:
            return NotAdmitted(
                f"DESKWIRE_FILES is {files}, which no other node sees, and there is another ({other}). Set it to database or to "
                "a bucket for all nodes before there are uploads, with all of them stopped."
            )
        return NotAdmitted(
            f"DESKWIRE_FILES is {self.files} here and {files} at the node {other}. All need the same: set it to that, or stop "
            "all nodes to change it while there are no uploads."
        )


class NotAdmitted(Exception):
    """A live node prevents this one from joining; the message names it and the remedy."""


class NodeLease(Struct, frozen=True):
    """A node's lease.

    Args:
        left_ms: remaining time by the database's clock; 0 or less for an expired lease that no node has removed yet.
        epoch_seen: the epoch up to which the node has invalidated its caches; -1 before the first.
    """

    name: str
    incarnation: int
    left_ms: int
    epoch_seen: int


class HeartbeatResult(Struct, frozen=True):
    """The result of a heartbeat.

    Args:
        now: the database's clock, in milliseconds.
        epoch: number of changes so far that invalidate caches of other nodes.
        leases: all leases, in the order in which the nodes joined.
        is_leader: True if this node is the leader.
    """

    now: int
    epoch: int
    leases: Sequence[NodeLease]
    is_leader: bool


class ClusterReader(Protocol):
    """Queries on leases."""

    def epoch(self) -> int:
        """Return the number of changes so far that invalidate caches of other nodes."""

    def leases(self) -> Sequence[NodeLease]:
        """Return all leases, in the order in which the nodes joined."""

    def is_live(self, incarnation: int) -> bool:
        """Return whether this incarnation of a node still has its lease."""


class ClusterTransaction(ClusterReader, Protocol):
    """Changes of leases."""

    def join(self, candidate: JoiningNode, lease_ms: int) -> int:
        """Create a lease, and return its incarnation; an earlier lease of the same process ends.

        Raises NotAdmitted while a live node has the same name or another place of uploads. Concurrent calls are serialized.
        """

    def heartbeat(self, incarnation: int, lease_ms: int, epoch_seen: int) -> HeartbeatResult | None:
        """Renew a lease, and become the leader if there is none; return None if the lease is over."""

    def expire_nodes(self) -> Sequence[str]:
        """Delete expired leases; return the names of their nodes."""

    def leave(self, incarnation: int) -> None:
        """Delete this node's own lease, and so release everything that it holds."""
