"""The end of a channel's hold on a node that shares the store with others: nothing is written, and then that is stored.

Another node asks for the channel, the consumer leaves, or the node's own lease was lost for too long (ADR 60).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final, assert_never

import structlog
import trio
from msgspec import Struct

from deskwire.engine.cluster.bus import Bus
from deskwire.engine.cluster.cluster import Cluster
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.stream.channel import Channel, named_channel
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.lease_news import LeaseNews
from deskwire.engine.stream.ports import StreamConsumer, StreamReader, StreamTransaction, Wish, WishType
from deskwire.engine.stream.subscription import Loss, Subscription
from deskwire.engine.stream.tenure import Tenure

log: Final = structlog.get_logger(__name__)

PATIENCE_S: Final = 10.0
"""How long another node may take to let a channel go; one that has died is known to be dead well before."""
_LOOK_S: Final = 1.0
"""Pause between two looks for what other nodes want, should nothing be heard of it."""

Wishes = Sequence[tuple[StreamConsumer, Wish]]


class _Release(Struct, frozen=True):
    """A hold that has ended here.

    Args:
        row: as it was stored before.
        after: as it is to be stored, None if it is to be removed.
        lease: this node's; None if it never knew of the hold, as the end of a takeover's commit was not heard of.
        loser: the subscription to which nothing is written any more.
    """

    row: StreamConsumer
    wish: Wish
    after: StreamConsumer | None
    lease: ChannelLease | None
    loser: Subscription | None

    def store(self, tx: StreamTransaction, at: int) -> None:
        """Store it, with what was confirmed up to now."""
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


class LettingGo:
    """The ends of what this node holds, whatever brings them about.

    Args:
        leases: those that this node knows of, by their channels.
        gone: told of each subscription that has lost its channel, before its consumer is.
    """

    def __init__(
        self,
        store: Store[StreamReader, StreamTransaction],
        clock: Clock,
        cluster: Cluster,
        bus: Bus,
        leases: Mapping[Channel, ChannelLease],
        gone: Callable[[Subscription], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._cluster = cluster
        self._leases = leases
        self._gone = gone
        self._departed: dict[Channel, tuple[ChannelLease, int]] = {}
        self._wakeup = trio.Event()
        self.news: Final = LeaseNews(bus, cluster.node.name, leases, lambda: self._wakeup.set())

    async def run(self) -> None:
        """Release channels that other nodes ask for, and store departures, until cancelled."""
        while True:
            with trio.move_on_after(_LOOK_S):
                await self._wakeup.wait()
            self._wakeup = trio.Event()
            self._store_departures()
            try:
                await self.let_go(await self._wishes())
            except Unavailable as error:
                log.warning("stream.not_let_go", error=error.detail)

    async def let_go(self, wishes: Wishes) -> None:
        """Write nothing more to the consumers of these channels, which this node holds, then store it and tell them.

        Raises Unavailable if it is not stored; they are let go all the same.
        """
        if not wishes:
            return
        releases = [self._release(row, wish) for row, wish in wishes]
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
            self.news.tell([release.row for release in releases])
            self._lose([(each.loser, _LOSS[each.wish.what] if stored else "lapsed") for each in releases])

    def leave(self, lease: ChannelLease) -> None:
        """Have it stored soon that the last holder of the channel, which was here, has left it."""
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
            self.leave(lease)  # stored if the node's lease was only late: then the channel is still its own
        self._lose([(holder, "lapsed") for holder in lost])

    async def _wishes(self) -> Wishes:
        incarnation, oldest = self._cluster.node.incarnation, self._clock() - PATIENCE_S * 1000
        rows = await self._store.read(InlineQuery(lambda reader: reader.wished_consumers(incarnation)))
        found = [(row, row.wish) for row in rows if row.wish is not None]
        return [(row, wish) for row, wish in found if wish.what == "forget" or wish.at > oldest]

    def _now(self) -> float:
        return self._clock() / 1000

    def _release(self, row: StreamConsumer, wish: Wish) -> _Release:
        """Stop writing to a channel's consumer, from here on."""
        channel = named_channel(row.project, row.channel)
        lease = None if channel is None else self._leases.get(channel)
        if lease is not None and lease.generation != row.generation:
            lease = None
        loser = None if lease is None else lease.stop()
        return _Release(row, wish, self._after(row, wish, lease), lease, loser)

    def _after(self, row: StreamConsumer, wish: Wish, tenure: Tenure | None) -> StreamConsumer | None:
        """Return the row as it is once the channel was let go; None if there is to be none."""
        freed, now = free(row, self._clock()), self._now()
        match wish.what:
            case "forget":
                return None
            case "end":
                return replace(freed, superseded=(row.consumer_id,))
            case "take":
                if tenure is None:
                    return freed
                superseded = tuple(tenure.after_taking(wish.consumer_id, now))
                times = stored_times(tenure.after_takeover(wish.consumer_id, now))
                return replace(freed, superseded=superseded, takeovers=times)
            case _:
                assert_never(wish.what)

    def _note(self, release: _Release, *, stored: bool) -> None:
        """Have the lease be as it is stored now."""
        lease, now = release.lease, self._now()
        if lease is None or lease.generation != release.row.generation or lease.holder is not None:
            return
        if not stored:
            lease.drop(now, for_good=False)
            self.leave(lease)
        elif release.wish.what == "take":
            lease.yield_to(release.wish.consumer_id, now)
        else:
            lease.expel(now)

    def _store_departures(self) -> None:
        """Have departures stored without waiting; those that are not are tried again."""
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
        """Store that the holder of that generation has left; return the row as it was, None if it is another's."""
        channel = lease.channel
        row = tx.stream_consumer(channel.project, channel.name)
        mine = row is not None and row.connected and row.incarnation == self._cluster.node.incarnation
        if row is None or not mine or row.generation != generation or lease.held:
            return None
        dropped_at = 0 if lease.dropped_at == -inf else int(lease.dropped_at * 1000)
        after = replace(
            free(row, dropped_at), superseded=tuple(lease.superseded), takeovers=stored_times(lease.takeovers)
        )
        kept = None if row.forgotten else after
        _Release(row, Wish("take"), kept, lease, None).store(tx, self._clock())
        return row

    def _note_departure(
        self, lease: ChannelLease, generation: int, outcome: StreamConsumer | Exception | None
    ) -> None:
        if isinstance(outcome, Unavailable):
            self._departed.setdefault(lease.channel, (lease, generation))
        elif isinstance(outcome, Exception):
            log.error("stream.departure_failed", channel=lease.channel.name, exc_info=outcome)
        elif outcome is not None:
            self.news.tell([outcome])

    def _lose(self, lost: Sequence[tuple[Subscription | None, Loss]]) -> None:
        told = [(subscription, loss) for subscription, loss in lost if subscription is not None]
        for subscription, _ in told:
            self._gone(subscription)
        for (
            subscription,
            loss,
        ) in told:  # once all are over, so that each can see what is left of its connection
            subscription.lost(loss)


_LOSS: Final[Mapping[WishType, Loss]] = {"take": "superseded", "end": "ended", "forget": "lapsed"}


def free(row: StreamConsumer, dropped_at: int) -> StreamConsumer:
    """Return the row as it is while nobody holds the channel."""
    return replace(row, node="", incarnation=0, connected=False, dropped_at=dropped_at, wish=None)


def stored_times(times: tuple[float, ...]) -> tuple[int, ...]:
    """Return times in the milliseconds that are stored."""
    return tuple(int(time * 1000) for time in times)
