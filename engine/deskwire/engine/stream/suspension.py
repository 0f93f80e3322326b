"""Consumers over a lost lease of their node: kept in silence, then resumed or let go (ADR 62).

- In doubt: a subscription pauses by itself when the lease is no longer surely the node's (`LeasedSubscription`).
- Back: each paused channel is looked at in the store. If nobody has had it since, its consumer goes on where it was, by
  the lease that the node has now; else the consumer is notified as in any other takeover.
- Not back in time: the consumer is told to connect again, because another node may have a lease.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import structlog
import trio

from deskwire.engine.cluster.cluster import ELSEWHERE_S, KEPT_S, Cluster
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.stream.channel import Channel
from deskwire.engine.stream.lag import SubscriptionCounters
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.shared_leases import SharedLeases

log: Final = structlog.get_logger(__name__)

_LOOK_INTERVAL_S: Final = 1.0  # a lease may end early, as after a machine's sleep
_RETRY_DELAY_S: Final = 0.25
_WORKERS_MAX: Final = 16  # channels looked at together: the store puts them into a few round trips


class Suspension:
    """The pauses of this node's subscriptions.

    Args:
        leases: the channels that this node knows of.
        shared: looks channels up in the store.
        counters: count how the pauses end.
    """

    def __init__(
        self,
        cluster: Cluster,
        leases: Mapping[Channel, ChannelLease],
        shared: SharedLeases,
        counters: SubscriptionCounters,
    ) -> None:
        self._cluster = cluster
        self._leases = leases
        self._shared = shared
        self._counters = counters
        self._pause: trio.CancelScope | None = None
        self._pause_began = 0.0

    @property
    def paused(self) -> Sequence[ChannelLease]:
        """The channels with a consumer here that nothing may be written to now."""
        return [lease for lease in self._leases.values() if lease.paused]

    def send_away_nowait(self) -> None:
        """End a pause that has lasted for a moment: another node is ready, which paused consumers can go to."""
        if self._pause is not None and trio.current_time() >= self._pause_began + ELSEWHERE_S:
            self._pause.cancel()

    async def run(self) -> None:
        """Resume paused subscriptions once the lease is back, and let them go if that takes too long, until cancelled."""
        while True:
            await trio.sleep_until(min(self._cluster.valid_until, trio.current_time() + _LOOK_INTERVAL_S))
            if paused := self.paused:
                log.warning("stream.paused", channels=len(paused))
                self._pause_began = trio.current_time()
                with trio.move_on_after(KEPT_S) as self._pause:
                    await self._resume()
                self._pause = None
                lost = self.paused
                self._counters.kept += max(0, len(paused) - len(lost))
                self._counters.lapsed += len(lost)
                if lost:
                    log.warning("stream.lapsed", channels=len(lost))
                    self._shared.letting_go.give_up(lost)
            await self._cluster.until_valid()

    async def _resume(self) -> None:
        """Return once no subscription is paused."""
        while paused := self.paused:
            await self._cluster.until_valid()
            channels = iter(paused)
            async with trio.open_nursery() as nursery:
                for _ in range(min(_WORKERS_MAX, len(paused))):
                    nursery.start_soon(self._look_at, channels)

    async def _look_at(self, channels: Iterator[ChannelLease]) -> None:
        for lease in channels:
            try:
                async with lease.lock:
                    await self._shared.look(lease)
            except Unavailable as error:
                log.warning("stream.not_resumed", channel=lease.channel.name, error=error.detail)
                await trio.sleep(_RETRY_DELAY_S)
