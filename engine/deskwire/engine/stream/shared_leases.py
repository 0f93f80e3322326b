"""Channel leases where several nodes share the store: the stored row decides which node holds a channel (ADR 60).

A channel that is free, or held by this node, is taken in one commit, which compares the row with the one that was read. A
channel of another node is requested: that node first stops writing to its consumer, then stores the release. So at any moment
at most one node writes. Messages on the bus only shorten the wait.

While a node has lost its own lease, its consumers are suspended:

- A subscription pauses as soon as another node may have the lease (`LeasedSubscription`).
- Once the lease is back, the row of each paused channel is read. If no other consumer has had the channel since, its consumer
  resumes under the node's present lease; otherwise the consumer is notified as in any other takeover.
- If the lease is not back in time, the consumer is asked to connect again, because another node may have a lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import structlog
import trio

from deskwire.engine.cluster.cluster import Cluster, GracePeriod
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.stream.channel import StreamChannel
from deskwire.engine.stream.lag import SubscriptionCounters
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.ports import HolderRequest, StreamConsumer, StreamReader, StreamTransaction
from deskwire.engine.stream.release import RELEASE_TIMEOUT_S, ChannelReleaser, stored_times, without_holder
from deskwire.engine.stream.subscription import LeasedSubscription, Loss

log: Final = structlog.get_logger(__name__)

# Interval between polls for a requested release, in case a notification was lost.
_POLL_INTERVAL_S: Final = 0.25
_END_POLL_INTERVAL_S: Final = 0.05  # the same interval while a consumer is being ended
_COMMIT_TIMEOUT_S: Final = 10.0  # time that a takeover may wait for its commit, shielded from cancellation
_RETRY_DELAY_S: Final = 0.25
_WORKERS_MAX: Final = 16  # channels read together: the store puts them into a few round trips


class SharedLeases:
    """This node's access to channels that other nodes may hold.

    Args:
        releaser: releases the channels that this node holds.
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
        """Return the time of the clock that all nodes share, in seconds."""
        return self._clock() / 1000

    async def refresh(self, lease: ChannelLease) -> None:
        """Update the lease from the store. Raises Unavailable, also while this node has no lease of its own.

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
            await self._clear(row)  # the node that held it is dead

    async def request_release(self, lease: ChannelLease, consumer_id: str, give_up_at: float) -> None:
        """Request a channel of another node, and return once that node has released it, has died, or the holder changed.

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
        """Store that a consumer of this node holds the channel; return generation and time in milliseconds.

        Return None if the row has changed since it was read. Raises Unavailable if the takeover failed or its outcome is unknown.
        Cancellation: has no effect during the commit, which takes at most 10 s.

        Args:
            event: id of the newest event at `position`; None to read it.
            moves: whether to store the position as well.
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
            taken = await self._store.write(InlineJob(job))
            if taken:
                self._notifications.notify([row])
            return (row.generation, at) if taken else None
        raise Unavailable("The takeover could not be stored in time.", code="storage_failed")

    async def end(self, project: int, names: Sequence[str], consumer_id: str) -> Sequence[str]:
        """End a consumer on those of these channels that it has, and return those to which it was connected.

        Raises Unavailable if another node does not release such a channel in time.
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

    async def _read(self, channel: StreamChannel) -> tuple[StreamConsumer | None, bool]:
        """Return the channel's row, and whether a live node holds the channel."""

        def query(reader: StreamReader) -> tuple[StreamConsumer | None, bool]:
            row = reader.stream_consumer(channel.project, channel.name)
            return row, row is not None and is_held(reader, row)

        return await self._store.read(InlineQuery(query))

    def _adopt(self, lease: ChannelLease, row: StreamConsumer | None) -> None:
        """Update the lease from the row, except for changes that this node has not stored yet."""
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
            if mine:  # taken here by a commit with an unknown outcome
                lease.drop(self.now(), for_good=False)
                self.releaser.leave(lease)
        if stopped is not None:
            self.releaser.lose(stopped, loss)

    def _loss(self, lease: ChannelLease, row: StreamConsumer | None) -> Loss:
        """Return the reason for which the holder here has lost the channel, according to the stored row."""
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

        Raises Unavailable. Cancellation: has no effect during the commit, which takes at most 10 s.
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
            if await self._store.write(InlineJob(job)):
                lease.generation = generation
                if lease.holder is None:  # its connection has ended during the commit
                    self.releaser.leave(lease)
            return
        raise _lease_lost()

    async def _clear(self, row: StreamConsumer) -> None:
        """Release the channel of a dead node, as if its consumer had dropped off now."""
        await self._free(row, without_holder(row, self._clock()))

    async def _fence(self, row: StreamConsumer) -> None:
        """Store that a consumer was ended whose channel no node holds."""
        await self._free(row, replace(without_holder(row, self._clock()), superseded=(row.consumer_id,)))

    async def _free(self, row: StreamConsumer, after: StreamConsumer) -> None:
        """Store the row of a released channel, or delete it if that was requested."""

        def job(tx: StreamTransaction) -> None:
            if row.forgotten:
                tx.remove_consumer(row)
            else:
                tx.change_consumer(row, after)

        await self._store.write(InlineJob(job))
        self._notifications.notify([row])

    async def _send_requests(self, rows: Sequence[StreamConsumer], request: HolderRequest) -> None:
        def job(tx: StreamTransaction) -> None:
            for row in rows:
                tx.request_holder(row, request)

        if rows:
            await self._store.write(InlineJob(job))
            self._notifications.notify(rows)

    def _withdraw_request(self, row: StreamConsumer, request: HolderRequest) -> None:
        """Submit the removal of a request, without waiting, because the caller may be cancelled."""

        def job(tx: StreamTransaction) -> None:
            stored = tx.stream_consumer(row.project, row.channel)
            if stored is not None and stored.request == request:
                tx.request_holder(stored, None)

        try:
            self._store.submit(InlineJob(job), lambda _: None)
        except Unavailable:
            log.debug("stream.wish_not_withdrawn", channel=row.channel)  # the request soon expires

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
        """Return the rows on which the consumer is not ended yet, each with whether a live node holds the channel."""

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
    """Return whether a live node holds the channel."""
    return row.connected and reader.is_live(row.incarnation)


def _is_ended(row: StreamConsumer) -> bool:
    """Return whether a call ended the consumer, and no node holds the channel for it."""
    return not row.connected and row.consumer_id in row.superseded


def _lease_lost() -> Unavailable:
    return Unavailable("This node has lost touch with the others; try again.", code="storage_failed")


def _not_released() -> Unavailable:
    return Unavailable(
        "Another node holds the channel and does not release it; try again.", code="channel_not_released"
    )


class Suspension:
    """The pauses of this node's subscriptions.

    Args:
        leases: the leases in this node's memory.
        shared: updates a lease from the store.
        counters: count the ends of pauses.
    """

    def __init__(
        self,
        cluster: Cluster,
        leases: Mapping[StreamChannel, ChannelLease],
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
        """The leases whose consumer here may receive no events now."""
        return [lease for lease in self._leases.values() if lease.paused]

    def send_away_nowait(self) -> None:
        """End a pause that has lasted for a moment, so that paused consumers connect to another node, which is ready."""
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
                await trio.sleep(_RETRY_DELAY_S)  # the store may be unavailable; `_resume` tries again
