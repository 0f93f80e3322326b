"""Consumers whose node has lost its lease: kept in silence, then resumed or sent away (ADR 60).

- In doubt: a subscription pauses as soon as the lease may belong to another node (`LeasedSubscription`).
- Back: the row of each paused channel is read. If no other consumer has had the channel since, its consumer continues
  where it was, under the node's present lease; otherwise the consumer is notified as in any other takeover.
- Not back in time: the consumer is asked to connect again, because another node may have a lease.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import structlog
import trio

from deskwire.engine.cluster.cluster import Cluster
from deskwire.engine.cluster.grace_period import GracePeriod
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.stream.channel import Channel
from deskwire.engine.stream.lag import SubscriptionCounters
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.shared_leases import SharedLeases

log: Final = structlog.get_logger(__name__)

_RETRY_DELAY_S: Final = 0.25
_WORKERS_MAX: Final = 16  # channels read together: the store puts them into a few round trips


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
        self._grace_period = GracePeriod(cluster)

    @property
    def paused(self) -> Sequence[ChannelLease]:
        """The channels whose consumer here may get no events now."""
        return [lease for lease in self._leases.values() if lease.paused]

    def send_away_nowait(self) -> None:
        """End a pause that has lasted for a moment: paused consumers can go to another node, which is ready."""
        self._grace_period.end_nowait()

    async def run(self) -> None:
        """Resume paused subscriptions once the lease is back, and end them if that takes too long, until cancelled."""
        while True:
            await self._grace_period.until_check_due()
            if paused := self.paused:
                log.warning("stream.paused", channels=len(paused))
                await self._grace_period.run(self._resume)
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
                await trio.sleep(_RETRY_DELAY_S)  # the store may be away; `_resume` tries again
