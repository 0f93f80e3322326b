"""The store as leases need it: who is there by the database's clock, and how far each has forgotten.

A lease is over when its row is gone, and only then. The row is removed by `expire_nodes`, once its time is over by the
database's clock; it locks the row, as a beat does, so that of the two one has its way and the other finds out. So whoever
asks whether a lease is over looks for a row, and compares no clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class JoiningNode(Struct, frozen=True):
    """A node that wants a lease.

    Args:
        run: its process's own, so that another of the same name is told from it.
        files: the place of its uploads.
    """

    name: str
    run: str
    version: str
    files: str = ""

    def refusal(self, other: str, files: str) -> NotAdmitted:
        """Return why there is no lease while another node of this name and with this place of uploads lives."""
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
    """Another node lives beside which this one can't; the message says which, and what to do."""


class NodeLease(Struct, frozen=True):
    """A node's lease.

    Args:
        left_ms: the rest of it by the database's clock; it may be over, and nobody has noticed yet.
        epoch_seen: the epoch up to which the node has forgotten what is outdated; -1 before it has begun to work.
    """

    name: str
    incarnation: int
    left_ms: int
    epoch_seen: int


class HeartbeatResult(Struct, frozen=True):
    """The answer to a beat.

    Args:
        now: the database's clock, in milliseconds.
        epoch: how often something was changed that other nodes remember and must not.
        leases: all that there are, in the order in which they were given.
        is_leader: True if this node is the leader.
    """

    now: int
    epoch: int
    leases: Sequence[NodeLease]
    is_leader: bool


class ClusterReader(Protocol):
    """Queries on leases."""

    def epoch(self) -> int:
        """Return how often something was changed that other nodes remember and must not."""

    def leases(self) -> Sequence[NodeLease]:
        """Return the leases that there are, in the order in which they were given."""

    def is_live(self, incarnation: int) -> bool:
        """Tell whether the lease of this life of a node is not over."""


class ClusterTransaction(ClusterReader, Protocol):
    """Changes of leases."""

    def join(self, candidate: JoiningNode, lease_ms: int) -> int:
        """Begin a lease, and return its incarnation; done twice by one process, the first one is over.

        Raises NotAdmitted while another node has the same name, or sees other uploads. Of two at once one is first.
        """

    def beat(self, incarnation: int, lease_ms: int, epoch_seen: int) -> HeartbeatResult | None:
        """Renew a lease from now on, and take the duties if they are free; None if the lease is over."""

    def expire_nodes(self) -> Sequence[str]:
        """End the leases whose time is over; return the names of their nodes."""

    def leave(self, incarnation: int) -> None:
        """End this node's own lease, with all that it holds."""
