"""A barrier that waits until all nodes have invalidated their caches of data that a commit has changed.

Such a commit raises the installation's epoch, a number in the database (by a trigger). Each node invalidates its caches, then stores the epoch that it has seen with its
next heartbeat. The waiting callers are notified over the bus, and their node polls as well, at increasing intervals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog
import trio

from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.cluster.ports import ClusterReader, ClusterTransaction, NodeLease
from deskwire.engine.core.counters import Histogram
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store

log: Final = structlog.get_logger(__name__)

# Maximum time that a caller waits. A lease ends much sooner, unless the database can't be reached.
_WAIT_TIMEOUT_S: Final = 20.0

_POLL_INTERVAL_MIN_S: Final = 0.002
_POLL_INTERVAL_MAX_S: Final = 0.25
_SEEN: Final = b"seen"


class Barrier:
    """The callers that wait for other nodes, and one task that polls for all of them.

    Args:
        expire_nodes: removes expired leases, if this node may judge that.

    Attributes:
        waited_s: histogram of completed waits.
    """

    def __init__(
        self,
        store: Store[ClusterReader, ClusterTransaction],
        bus: Bus,
        expire_nodes: Callable[[Sequence[NodeLease]], Awaitable[None]],
    ) -> None:
        self.waited_s = Histogram()
        self._store = store
        self._expire_nodes = expire_nodes
        self._bus = bus
        self._waiting: dict[trio.Event, int] = {}
        self._poll_due = trio.Event()
        bus.receive("epoch", lambda payload: self._poll_due.set() if payload == _SEEN else None)

    async def reached(self, epoch: int) -> None:
        """Return once each node has seen this epoch or has lost its lease. Raises Unavailable if that takes too long."""
        began, over = trio.current_time(), trio.Event()
        self._waiting[over] = epoch
        self._poll_due.set()
        try:
            with trio.move_on_after(_WAIT_TIMEOUT_S):
                await over.wait()
                self.waited_s.observe(trio.current_time() - began)
                return
        finally:
            self._waiting.pop(over, None)
        raise Unavailable(
            "The change is stored, but not all nodes have confirmed it yet. Send it again to be sure.",
            code="not_confirmed",
            retry_after_s=5,
        )

    def notify_seen(self) -> None:
        """Notify waiting callers on all nodes that this node has seen a later epoch."""
        self._bus.send("epoch", _SEEN)
        self._poll_due.set()

    async def run(self) -> None:
        """Poll while callers wait, until cancelled."""
        while True:
            await self._poll_due.wait()
            pause_s = _POLL_INTERVAL_MIN_S
            while self._waiting:
                self._poll_due = trio.Event()
                try:
                    leases = await self._store.read(lambda reader: reader.leases())
                    self._release(min((lease.epoch_seen for lease in leases), default=None))
                    await self._expire_nodes(leases)
                except Unavailable as refusal:
                    log.warning("barrier.not_read", reason=refusal.reason)
                    pause_s = _POLL_INTERVAL_MAX_S
                if self._waiting:
                    with trio.move_on_after(pause_s):
                        await self._poll_due.wait()
                pause_s = min(2 * pause_s, _POLL_INTERVAL_MAX_S)
            self._poll_due = trio.Event()

    def _release(self, seen: int | None) -> None:
        for over, epoch in list(self._waiting.items()):
            if seen is None or epoch <= seen:
                del self._waiting[over]
                over.set()
