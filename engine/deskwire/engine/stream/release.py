"""Release of channels on a node that shares its store: the node stops writing to the consumer, then stores the release.

A channel is released when another node requests it, when its consumer leaves, or when the node has been without its own lease
for too long (ADR 60).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final, assert_never

import structlog
import trio
from msgspec import Struct

from deskwire.engine.cluster.cluster import Bus, Cluster
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.stream.channel import StreamChannel, named_channel
from deskwire.engine.stream.lease import ChannelLease, LeaseNotifications, LeaseRules
from deskwire.engine.stream.ports import (
    HolderRequest,
    HolderRequestType,
    StreamConsumer,
    StreamReader,
    StreamTransaction,
)
from deskwire.engine.stream.subscription import Loss, Subscription

log: Final = structlog.get_logger(__name__)

# Time that another node may take to release a channel; a dead node's lease ends well before.
RELEASE_TIMEOUT_S: Final = 10.0
_POLL_INTERVAL_S: Final = 1.0  # interval between polls for requests, in case a notification was lost

Requests = Sequence[tuple[StreamConsumer, HolderRequest]]


class _Release(Struct, frozen=True):
    """A channel that this node no longer holds.

    Args:
        row: the stored row before the release.
        request: the request that caused the release.
        after: the row to store; None to delete it.
        lease: this node's lease; None if the node never learned that it held the channel, because the outcome of the takeover's
            commit was unknown.
        loser: the subscription that held the channel here, which may no longer write.
    """

    row: StreamConsumer
    request: HolderRequest
    after: StreamConsumer | None
    lease: ChannelLease | None
    loser: Subscription | None

    def store(self, tx: StreamTransaction, at: int) -> None:
        """Store the release together with the confirmed position."""
        row = self.row
        if self.after is None:
            tx.remove_consumer(row)
            return
        position = row.position if self.lease is None else max(row.position, self.lease.confirmed)
        event = tx.event_id_at(row.project, position) if position > row.position else row.event
        if self.lease is not None and self.lease.replaced:
            event = ""
        if tx.change_consumer(row, self.after):
            tx.save_position(row.project, row.channel, row.generation, position, event, at)


class ChannelReleaser:
    """Releases the channels that this node holds, and stores that.

    Args:
        leases: the leases in this node's memory, by channel.
        on_lost: called with each subscription that has lost its channel, before the subscription's own callback.
    """

    def __init__(
        self,
        store: Store[StreamReader, StreamTransaction],
        clock: Clock,
        cluster: Cluster,
        bus: Bus,
        leases: Mapping[StreamChannel, ChannelLease],
        on_lost: Callable[[Subscription], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._cluster = cluster
        self._leases = leases
        self._on_lost = on_lost
        self._departed: dict[StreamChannel, tuple[ChannelLease, int]] = {}
        self._wakeup = trio.Event()
        self.notifications: Final = LeaseNotifications(
            bus, cluster.node.name, leases, lambda: self._wakeup.set()
        )

    async def run(self) -> None:
        """Release channels that other nodes request, and store departures, until cancelled."""
        while True:
            with trio.move_on_after(_POLL_INTERVAL_S):
                await self._wakeup.wait()
            self._wakeup = trio.Event()
            self._store_departures()
            try:
                await self.release(await self._requests())
            except Unavailable as error:
                log.warning("stream.not_let_go", error=error.detail)

    async def release(self, requests: Requests) -> None:
        """Stop writing to the consumers of these channels, store the releases, then notify the consumers.

        Raises Unavailable if the releases could not be stored; this node stops writing nevertheless.
        """
        if not requests:
            return
        releases = [self._stop(row, request) for row, request in requests]
        at, stored = self._clock(), False

        def job(tx: StreamTransaction) -> None:
            for release in releases:
                release.store(tx, at)

        try:
            await self._store.write(InlineJob(job))
            stored = True
        finally:
            for release in releases:
                self._note(release, stored=stored)
            self.notifications.notify([release.row for release in releases])
            self._lose([(each.loser, _LOSS[each.request.what] if stored else "lapsed") for each in releases])

    def leave(self, lease: ChannelLease) -> None:
        """Schedule the departure of a channel's last holder, which was on this node, to be stored."""
        self._departed[lease.channel] = lease, lease.generation
        self._store_departures()

    def lose(self, subscription: Subscription, loss: Loss = "lapsed") -> None:
        """Notify a subscription that it has lost its channel."""
        self._lose([(subscription, loss)])

    def give_up(self, leases: Sequence[ChannelLease]) -> None:
        """End the holds of these channels while the node has no lease, and notify their subscriptions."""
        lost = [holder for lease in leases if (holder := lease.stop()) is not None]
        for lease in leases:
            lease.drop(self._now(), for_good=False)
            self.leave(
                lease
            )  # takes effect if the node's lease was only late, because the channel is still its own then
        self._lose([(holder, "lapsed") for holder in lost])

    async def _requests(self) -> Requests:
        incarnation, oldest = self._cluster.node.incarnation, self._clock() - RELEASE_TIMEOUT_S * 1000
        rows = await self._store.read(InlineQuery(lambda reader: reader.consumers_with_requests(incarnation)))
        found = [(row, row.request) for row in rows if row.request is not None]
        return [(row, request) for row, request in found if request.what == "forget" or request.at > oldest]

    def _now(self) -> float:
        return self._clock() / 1000

    def _stop(self, row: StreamConsumer, request: HolderRequest) -> _Release:
        """Stop writing to a channel's consumer."""
        channel = named_channel(row.project, row.channel)
        lease = None if channel is None else self._leases.get(channel)
        if lease is not None and lease.generation != row.generation:
            lease = None
        loser = None if lease is None else lease.stop()
        return _Release(row, request, self._released_row(row, request, lease), lease, loser)

    def _released_row(
        self, row: StreamConsumer, request: HolderRequest, rules: LeaseRules | None
    ) -> StreamConsumer | None:
        """Return the row to store after the release; None to delete it."""
        freed, now = without_holder(row, self._clock()), self._now()
        match request.what:
            case "forget":
                return None
            case "end":
                return replace(freed, superseded=(row.consumer_id,))
            case "take":
                if rules is None:
                    return freed
                superseded = tuple(rules.after_taking(request.consumer_id, now))
                times = stored_times(rules.after_takeover(request.consumer_id, now))
                return replace(freed, superseded=superseded, takeovers=times)
            case _:
                assert_never(request.what)

    def _note(self, release: _Release, *, stored: bool) -> None:
        """Update the lease in memory after a release."""
        lease, now = release.lease, self._now()
        if lease is None or lease.generation != release.row.generation or lease.holder is not None:
            return
        if not stored:
            lease.drop(now, for_good=False)
            self.leave(lease)
        elif release.request.what == "take":
            lease.yield_to(release.request.consumer_id, now)
        else:
            lease.fence_holder(now)

    def _store_departures(self) -> None:
        """Submit departures to the store without waiting; departures that fail are retried."""
        departed, self._departed = self._departed, {}
        for channel, (lease, generation) in departed.items():
            if lease.generation == generation and not lease.held:
                try:
                    self._store.submit(
                        InlineJob(partial(self._departure, lease, generation)),
                        partial(self._note_departure, lease, generation),
                    )
                except Unavailable:
                    self._departed[channel] = lease, generation

    def _departure(
        self, lease: ChannelLease, generation: int, tx: StreamTransaction
    ) -> StreamConsumer | None:
        """Store the departure of the holder of this generation; return the row before, None if the holder has changed."""
        channel = lease.channel
        row = tx.stream_consumer(channel.project, channel.name)
        mine = row is not None and row.connected and row.incarnation == self._cluster.node.incarnation
        if row is None or not mine or row.generation != generation or lease.held:
            return None
        dropped_at = 0 if lease.dropped_at == -inf else int(lease.dropped_at * 1000)
        after = replace(
            without_holder(row, dropped_at),
            superseded=tuple(lease.superseded),
            takeovers=stored_times(lease.takeovers),
        )
        kept = None if row.forgotten else after
        _Release(row, HolderRequest("take"), kept, lease, None).store(tx, self._clock())
        return row

    def _note_departure(
        self, lease: ChannelLease, generation: int, outcome: StreamConsumer | Exception | None
    ) -> None:
        if isinstance(outcome, Unavailable):
            self._departed.setdefault(lease.channel, (lease, generation))
        elif isinstance(outcome, Exception):
            log.error("stream.departure_failed", channel=lease.channel.name, exc_info=outcome)
        elif outcome is not None:
            self.notifications.notify([outcome])

    def _lose(self, lost: Sequence[tuple[Subscription | None, Loss]]) -> None:
        losses = [(subscription, loss) for subscription, loss in lost if subscription is not None]
        for subscription, _ in losses:
            self._on_lost(subscription)
        # Callbacks run after all removals, so that each one sees which subscriptions its connection still has.
        for subscription, loss in losses:
            subscription.lost(loss)


_LOSS: Final[Mapping[HolderRequestType, Loss]] = {"take": "superseded", "end": "ended", "forget": "lapsed"}


def without_holder(row: StreamConsumer, dropped_at: int) -> StreamConsumer:
    """Return the row of a channel without a holder."""
    return replace(row, node="", incarnation=0, connected=False, dropped_at=dropped_at, request=None)


def stored_times(times: tuple[float, ...]) -> tuple[int, ...]:
    """Return times in seconds as stored milliseconds."""
    return tuple(int(time * 1000) for time in times)
