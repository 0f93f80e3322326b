"""Leader election: the leader runs the work that only one node at a time may do.

Each heartbeat makes its node the leader if there is none (`ClusterTransaction.heartbeat`); a leader stays the leader while it has its
lease.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio

log: Final = structlog.get_logger(__name__)


class Leadership:
    """The leadership of this node, and the work that it runs while it is the leader."""

    def __init__(self) -> None:
        self._elected = trio.Event()
        self._running: set[trio.CancelScope] = set()

    @property
    def held(self) -> bool:
        """True if this node is the leader."""
        return self._elected.is_set()

    def note(self, *, held: bool) -> None:
        """Set whether this node is the leader: start all work, or cancel it."""
        if held and not self.held:
            log.info("duties.taken")
            self._elected.set()
        elif self.held and not held:
            log.info("duties.lost")
            self._elected = trio.Event()
            for scope in self._running:
                scope.cancel()

    async def run(self, work: Callable[[], Awaitable[object]]) -> None:
        """See `Cluster.while_leader`."""
        while True:
            await self._elected.wait()
            with trio.CancelScope() as scope:
                self._running.add(scope)
                try:
                    await work()
                finally:
                    self._running.discard(scope)
            if not scope.cancelled_caught:
                return
