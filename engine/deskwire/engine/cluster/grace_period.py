"""The time for which streams are kept in silence while this node's lease is in doubt (ADR 60)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from deskwire.engine.cluster.cluster import Cluster

# With the 4.5 s that a lease lasts without the database this covers an outage of some 10 s, as a restart or a fail-over takes.
KEPT_S: Final = 6.0
# A balancer knows so late that a node is not ready; before that, the database may be away for all nodes.
ELSEWHERE_S: Final = 1.5
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
        """Run `wait` for `KEPT_S` at most; return whether it has returned by itself."""
        self._began = trio.current_time()
        with trio.move_on_after(KEPT_S) as self._scope:
            await wait()
        ended, self._scope = self._scope, None
        return not ended.cancelled_caught

    def end_nowait(self) -> None:
        """End a wait that has lasted for `ELSEWHERE_S`, because another node is ready."""
        if self._scope is not None and trio.current_time() >= self._began + ELSEWHERE_S:
            self._scope.cancel()
