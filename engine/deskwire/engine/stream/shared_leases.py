"""The leases of channels where several nodes share the store: the stored row decides which node has one (ADR 60).

A channel that nobody holds, or this node, is taken in one commit, which compares what it rests on. One that another
node holds is asked for: that node lets its consumer go, and from then on writes nothing to it, before it says so in
the store. So at any moment at most one node writes. What is told over the bus only makes that quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import structlog
import trio

from deskwire.engine.cluster.cluster import Cluster, GracePeriod
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Brief, Inline, Store
from deskwire.engine.core.values import replace
from deskwire.engine.stream.channel import Channel
from deskwire.engine.stream.lag import SubscriptionCounters
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.ports import HolderRequest, StreamConsumer, StreamReader, StreamTransaction
from deskwire.engine.stream.release import RELEASE_TIMEOUT_S, ChannelReleaser, free, stored_times
from deskwire.engine.stream.subscription import LeasedSubscription, Loss

log: Final = structlog.get_logger(__name__)

_POLL_INTERVAL_S: Final = 0.25
"""Pause between two looks for what another node was asked for, should nothing be heard of it."""
_END_POLL_INTERVAL_S: Final = 0.05
"""The same for a consumer that is to be ended."""
_COMMIT_TIMEOUT_S: Final = 10.0
"""How long a takeover may wait for its commit, shielded from cancellation."""
_RETRY_DELAY_S: Final = 0.25
_WORKERS_MAX: Final = 16  # channels read together: the store puts them into a few round trips


class SharedLeases:
    """This node's way to channels that others may hold.

    Args:
        releaser: ends the holds of this node.
    """

    def __init__(
        self,
        store: Store[StreamReader, StreamTransaction],
        clock: Clock,
        cluster: Cluster,
        releaser: ChannelReleaser,
    ) -> None:
        self._store = store
        self._clock = clock
        self._cluster = cluster
        self.releaser: Final = releaser
        self._notifications: Final = releaser.notifications

    def now(self) -> float:
        """Return the time that all nodes go by, in seconds."""
        return self._clock() / 1000

    async def refresh(self, lease: ChannelLease) -> None:
        """Have the lease be as it is stored. Raises Unavailable, also while this node has no lease of its own.

        A paused holder here resumes if no other consumer has had the channel since; otherwise it loses the channel.
        """
        while True:
            self._check()
            row, live = await self._read(lease.channel)
            if row is not None and not live and self._is_renewable(lease, row):
                await self._renew(lease, row)
            elif row is None or live or not row.connected:
                self._adopt(lease, row)
                return
            await self._clear(row)  # its node is no more

    async def request_release(self, lease: ChannelLease, consumer_id: str, give_up_at: float) -> None:
        """Return once the node that holds the channel has let it go, or has died, or it is held otherwise.

        Raises Unavailable if that takes too long; then nothing has changed.
        """
        assert lease.seen is not None, "it is held"
        request = self._request("take", consumer_id)
        try:
            await self._send_requests([lease.seen], request)
            await self._wait_until_released(lease, lease.seen, give_up_at)
        except BaseException:  # re-raised: a failed or cancelled call leaves no request
            self._withdraw_request(lease.seen, request)
            raise

    async def take(
        self, lease: ChannelLease, consumer_id: str, position: int, event: str | None, *, moves: bool
    ) -> tuple[int, int] | None:
        """Store that a consumer of this node has the channel; None if it is no longer as it was looked at.

        Return the generation, and the time in milliseconds.

        Args:
            event: id of the newest event at `position`; None to refresh for it.
            moves: whether the position is to be stored as well.

        Raises Unavailable if that could not be stored, or nobody knows. Cancellation: not for at most 10 s.
        """
        seen, now, at, node = lease.seen, self.now(), self._clock(), self._cluster.node
        project, name = lease.channel.project, lease.channel.name
        row = StreamConsumer(
            project,
            name,
            consumer_id,
            1 if seen is None else seen.generation + 1,
            position,
            tuple(lease.after_taking(consumer_id, now)),
            at,
            at,
            node.name,
            node.incarnation,
            connected=True,
            takeovers=stored_times(lease.after_takeover(consumer_id, now)),
        )

        def job(tx: StreamTransaction) -> bool:
            there = tx.event_id_at(project, position) if event is None else event
            taken = tx.change_consumer(seen, replace(row, event=there))
            if taken and moves:
                tx.save_position(project, name, row.generation, position, there, at)
            return taken

        with trio.CancelScope(shield=True, deadline=trio.current_time() + _COMMIT_TIMEOUT_S):
            taken = await self._store.write(Brief(job))
            if taken:
                self._notifications.notify([row])
            return (row.generation, at) if taken else None
        raise Unavailable("The takeover could not be stored in time.", code="storage_failed")

    async def end(self, project: int, names: Sequence[str], consumer_id: str) -> Sequence[str]:
        """End a consumer on those of these channels that it has; return those that it was connected to.

        Raises Unavailable if a node that holds one does not let it go.
        """
        ended, asked = dict[str, None](), set[tuple[str, int]]()
        give_up_at, request = trio.current_time() + RELEASE_TIMEOUT_S, self._request("end", consumer_id)
        while True:
            self._check()
            rows = await self._not_ended(project, names, consumer_id)
            if not rows:
                return [name for name in names if name in ended]
            held = [row for row, live in rows if live]
            ended.update(dict.fromkeys(row.channel for row in held))
            for row, live in rows:
                if not live:
                    await self._fence(row)
            mine = [row for row in held if row.incarnation == self._cluster.node.incarnation]
            await self.releaser.release([(row, request) for row in mine])
            others = [row for row in held if row not in mine]
            await self._send_requests(
                [row for row in others if (row.channel, row.generation) not in asked], request
            )
            asked |= {(row.channel, row.generation) for row in others}
            if others:
                await trio.sleep(_END_POLL_INTERVAL_S)
            if trio.current_time() >= give_up_at:
                raise _not_released()

    def _check(self) -> None:
        if trio.current_time() >= self._cluster.valid_until:
            raise _lease_lost()

    def _request(self, what: Literal["take", "end"], consumer_id: str) -> HolderRequest:
        node = self._cluster.node
        return HolderRequest(what, node.name, node.incarnation, consumer_id, self._clock())

    async def _read(self, channel: Channel) -> tuple[StreamConsumer | None, bool]:
        """Return who has the channel, and whether the node that holds it lives."""

        def query(reader: StreamReader) -> tuple[StreamConsumer | None, bool]:
            row = reader.stream_consumer(channel.project, channel.name)
            return row, row is not None and is_held(reader, row)

        return await self._store.read(Inline(query))

    def _adopt(self, lease: ChannelLease, row: StreamConsumer | None) -> None:
        """Have the lease be as it is stored, but for what this node itself has not stored yet."""
        mine = row is not None and row.connected and row.incarnation == self._cluster.node.incarnation
        lease.seen, lease.held_remotely = row, row is not None and row.connected and not mine
        if row is not None and mine and lease.generation == row.generation:
            lease.event = row.event if row.position == lease.confirmed else None
            if isinstance(lease.holder, LeasedSubscription):
                lease.holder.resume()
            return
        stopped, loss = lease.stop(), self._loss(lease, row)
        if row is None:
            lease.consumer_id, lease.held, lease.superseded, lease.takeovers = None, False, {}, ()
        else:
            lease.load(row)
            if mine:  # taken here by a commit of which nobody has heard the end
                lease.drop(self.now(), for_good=False)
                self.releaser.leave(lease)
        if stopped is not None:
            self.releaser.lose(stopped, loss)

    def _loss(self, lease: ChannelLease, row: StreamConsumer | None) -> Loss:
        """Return how the holder here has lost the channel, according to the stored row."""
        # The channel was forgotten, or taken over here in a commit whose outcome is unknown.
        if row is None or row.node == self._cluster.node.name:
            return "lapsed"
        if row.generation > lease.generation:
            return "superseded"
        return "ended" if _is_ended(row) else "lapsed"

    def _is_renewable(self, lease: ChannelLease, row: StreamConsumer) -> bool:
        """Return whether the holder here was the last one, under a lease of this node that has ended."""
        if lease.holder is None or row.generation != lease.generation or row.forgotten:
            return False
        return row.incarnation != self._cluster.node.incarnation and not _is_ended(row)

    async def _renew(self, lease: ChannelLease, row: StreamConsumer) -> None:
        """Store that the holder here has its channel under this node's present lease, unless the row has changed.

        Raises Unavailable. Cancellation: not for at most 10 s.
        """
        node, at, position = self._cluster.node, self._clock(), lease.confirmed
        generation = row.generation + 1
        renewed = replace(
            row,
            generation=generation,
            node=node.name,
            incarnation=node.incarnation,
            connected=True,
            dropped_at=0,
            updated_at=at,
        )

        def job(tx: StreamTransaction) -> bool:
            if not tx.is_live(node.incarnation):
                raise _lease_lost()
            changed = tx.change_consumer(row, renewed)
            if changed and position > row.position:
                there = tx.event_id_at(row.project, position)
                tx.save_position(row.project, row.channel, generation, position, there, at)
            return changed

        with trio.CancelScope(shield=True, deadline=trio.current_time() + _COMMIT_TIMEOUT_S):
            if await self._store.write(Brief(job)):
                lease.generation = generation
                if lease.holder is None:  # its connection has ended during the commit
                    self.releaser.leave(lease)
            return
        raise _lease_lost()

    async def _clear(self, row: StreamConsumer) -> None:
        """Store that a node that is no more has let the channel go: as if its consumer had dropped off now."""
        await self._free(row, free(row, self._clock()))

    async def _fence(self, row: StreamConsumer) -> None:
        """Store that the consumer, for which nobody holds the channel any more, was ended."""
        await self._free(row, replace(free(row, self._clock()), superseded=(row.consumer_id,)))

    async def _free(self, row: StreamConsumer, after: StreamConsumer) -> None:
        """Store a channel that nobody holds any more, unless it is to be forgotten."""

        def job(tx: StreamTransaction) -> None:
            if row.forgotten:
                tx.remove_consumer(row)
            else:
                tx.change_consumer(row, after)

        await self._store.write(Brief(job))
        self._notifications.notify([row])

    async def _send_requests(self, rows: Sequence[StreamConsumer], request: HolderRequest) -> None:
        def job(tx: StreamTransaction) -> None:
            for row in rows:
                tx.request_holder(row, request)

        if rows:
            await self._store.write(Brief(job))
            self._notifications.notify(rows)

    def _withdraw_request(self, row: StreamConsumer, request: HolderRequest) -> None:
        """Have the request forgotten, if it still is there; without waiting, as whoever wished may be gone."""

        def job(tx: StreamTransaction) -> None:
            stored = tx.stream_consumer(row.project, row.channel)
            if stored is not None and stored.request == request:
                tx.request_holder(stored, None)

        try:
            self._store.submit(Brief(job), lambda _: None)
        except Unavailable:
            log.debug("stream.wish_not_withdrawn", channel=row.channel)  # it is too old soon

    async def _wait_until_released(self, lease: ChannelLease, row: StreamConsumer, give_up_at: float) -> None:
        while True:
            changed = lease.changed
            stored, live = await self._read(lease.channel)
            same = stored is not None and stored.generation == row.generation
            if not (live and same):
                return
            if trio.current_time() >= give_up_at:
                raise _not_released()
            with trio.move_on_at(min(give_up_at, trio.current_time() + _POLL_INTERVAL_S)):
                await changed.wait()

    async def _not_ended(
        self, project: int, names: Iterable[str], consumer_id: str
    ) -> Sequence[tuple[StreamConsumer, bool]]:
        """Return those channels that the consumer has and was not ended on, and whether a node that lives holds them."""

        def query(reader: StreamReader) -> list[tuple[StreamConsumer, bool]]:
            rows = (reader.stream_consumer(project, name) for name in names)
            return [
                (row, is_held(reader, row))
                for row in rows
                if row is not None and row.consumer_id == consumer_id
                if row.connected or row.superseded != (consumer_id,)
            ]

        return await self._store.read(query)


def is_held(reader: StreamReader, row: StreamConsumer) -> bool:
    """Return whether a node that lives holds the channel."""
    return row.connected and reader.is_live(row.incarnation)


def _is_ended(row: StreamConsumer) -> bool:
    """Return whether the consumer was ended by a call, and no node holds the channel for it."""
    return not row.connected and row.consumer_id in row.superseded


def _lease_lost() -> Unavailable:
    return Unavailable("This node has lost touch with the others; try again.", code="storage_failed")


def _not_released() -> Unavailable:
    return Unavailable(
        "Another node holds the channel and does not let it go; try again.", code="channel_not_released"
    )


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
                    self._shared.releaser.give_up(lost)
            await self._cluster.until_valid()

    async def _resume(self) -> None:
        """Return once no subscription is paused."""
        while paused := self.paused:
            await self._cluster.until_valid()
            channels = iter(paused)
            async with trio.open_nursery() as nursery:
                for _ in range(min(_WORKERS_MAX, len(paused))):
                    nursery.start_soon(self._resume_channels, channels)

    async def _resume_channels(self, channels: Iterator[ChannelLease]) -> None:
        for lease in channels:
            try:
                async with lease.lock:
                    await self._shared.refresh(lease)
            except Unavailable as error:
                log.warning("stream.not_resumed", channel=lease.channel.name, error=error.detail)
                await trio.sleep(_RETRY_DELAY_S)  # the store may be away; `_resume` tries again
