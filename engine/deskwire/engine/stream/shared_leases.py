"""The leases of channels where several nodes share the store: the stored row decides which node has one (ADR 60).

A channel that nobody holds, or this node, is taken in one commit, which compares what it rests on. One that another
node holds is asked for: that node lets its consumer go, and from then on writes nothing to it, before it says so in
the store. So at any moment at most one node writes. What is told over the bus only makes that quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import structlog
import trio

from deskwire.engine.cluster.cluster import Cluster
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.stream.channel import Channel
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.letting_go import PATIENCE_S, LettingGo, free, stored_times
from deskwire.engine.stream.ports import StreamConsumer, StreamReader, StreamTransaction, Wish
from deskwire.engine.stream.subscription import LeasedSubscription, Loss

log: Final = structlog.get_logger(__name__)

_LOOK_S: Final = 0.25
"""Pause between two looks for what another node was asked for, should nothing be heard of it."""
_END_LOOK_S: Final = 0.05
"""The same for a consumer that is to be ended."""
_COMMIT_S: Final = 10.0
"""How long a takeover may wait for its commit, shielded from cancellation."""


class SharedLeases:
    """This node's way to channels that others may hold.

    Args:
        letting_go: ends the holds of this node.
    """

    def __init__(
        self,
        store: Store[StreamReader, StreamTransaction],
        clock: Clock,
        cluster: Cluster,
        letting_go: LettingGo,
    ) -> None:
        self._store = store
        self._clock = clock
        self._cluster = cluster
        self.letting_go: Final = letting_go
        self._news: Final = letting_go.news

    def now(self) -> float:
        """Return the time that all nodes go by, in seconds."""
        return self._clock() / 1000

    async def look(self, lease: ChannelLease) -> None:
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

    async def ask(self, lease: ChannelLease, consumer_id: str, give_up_at: float) -> None:
        """Return once the node that holds the channel has let it go, or has died, or it is held otherwise.

        Raises Unavailable if that takes too long; then nothing has changed.
        """
        assert lease.seen is not None, "it is held"
        wish = self._wish("take", consumer_id)
        try:
            await self._wish_for([lease.seen], wish)
            await self._until_let_go(lease, lease.seen, give_up_at)
        except BaseException:  # re-raised: a failed or cancelled call leaves no wish
            self._withdraw(lease.seen, wish)
            raise

    async def take(
        self, lease: ChannelLease, consumer_id: str, position: int, event: str | None, *, moves: bool
    ) -> tuple[int, int] | None:
        """Store that a consumer of this node has the channel; None if it is no longer as it was looked at.

        Return the generation, and the time in milliseconds.

        Args:
            event: id of the newest event at `position`; None to look for it.
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

        with trio.CancelScope(shield=True, deadline=trio.current_time() + _COMMIT_S):
            taken = await self._store.write(InlineJob(job))
            if taken:
                self._news.tell([row])
            return (row.generation, at) if taken else None
        raise Unavailable("The takeover could not be stored in time.", code="storage_failed")

    async def end(self, project: int, names: Sequence[str], consumer_id: str) -> Sequence[str]:
        """End a consumer on those of these channels that it has; return those that it was connected to.

        Raises Unavailable if a node that holds one does not let it go.
        """
        ended, asked = dict[str, None](), set[tuple[str, int]]()
        give_up_at, wish = trio.current_time() + PATIENCE_S, self._wish("end", consumer_id)
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
            await self.letting_go.let_go([(row, wish) for row in mine])
            others = [row for row in held if row not in mine]
            await self._wish_for([row for row in others if (row.channel, row.generation) not in asked], wish)
            asked |= {(row.channel, row.generation) for row in others}
            if others:
                await trio.sleep(_END_LOOK_S)
            if trio.current_time() >= give_up_at:
                raise _not_let_go()

    def _check(self) -> None:
        if trio.current_time() >= self._cluster.valid_until:
            raise _out_of_touch()

    def _wish(self, what: Literal["take", "end"], consumer_id: str) -> Wish:
        node = self._cluster.node
        return Wish(what, node.name, node.incarnation, consumer_id, self._clock())

    async def _read(self, channel: Channel) -> tuple[StreamConsumer | None, bool]:
        """Return who has the channel, and whether the node that holds it lives."""

        def query(reader: StreamReader) -> tuple[StreamConsumer | None, bool]:
            row = reader.stream_consumer(channel.project, channel.name)
            return row, row is not None and is_held(reader, row)

        return await self._store.read(InlineQuery(query))

    def _adopt(self, lease: ChannelLease, row: StreamConsumer | None) -> None:
        """Have the lease be as it is stored, but for what this node itself has not stored yet."""
        mine = row is not None and row.connected and row.incarnation == self._cluster.node.incarnation
        lease.seen, lease.elsewhere = row, row is not None and row.connected and not mine
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
                self.letting_go.leave(lease)
        if stopped is not None:
            self.letting_go.lose(stopped, loss)

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
                raise _out_of_touch()
            changed = tx.change_consumer(row, renewed)
            if changed and position > row.position:
                there = tx.event_id_at(row.project, position)
                tx.save_position(row.project, row.channel, generation, position, there, at)
            return changed

        with trio.CancelScope(shield=True, deadline=trio.current_time() + _COMMIT_S):
            if await self._store.write(InlineJob(job)):
                lease.generation = generation
                if lease.holder is None:  # its connection has ended during the commit
                    self.letting_go.leave(lease)
            return
        raise _out_of_touch()

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

        await self._store.write(InlineJob(job))
        self._news.tell([row])

    async def _wish_for(self, rows: Sequence[StreamConsumer], wish: Wish) -> None:
        def job(tx: StreamTransaction) -> None:
            for row in rows:
                tx.wish(row, wish)

        if rows:
            await self._store.write(InlineJob(job))
            self._news.tell(rows)

    def _withdraw(self, row: StreamConsumer, wish: Wish) -> None:
        """Have the wish forgotten, if it still is there; without waiting, as whoever wished may be gone."""

        def job(tx: StreamTransaction) -> None:
            stored = tx.stream_consumer(row.project, row.channel)
            if stored is not None and stored.wish == wish:
                tx.wish(stored, None)

        try:
            self._store.submit(InlineJob(job), lambda _: None)
        except Unavailable:
            log.debug("stream.wish_not_withdrawn", channel=row.channel)  # it is too old soon

    async def _until_let_go(self, lease: ChannelLease, row: StreamConsumer, give_up_at: float) -> None:
        while True:
            changed = lease.changed
            stored, live = await self._read(lease.channel)
            same = stored is not None and stored.generation == row.generation
            if not (live and same):
                return
            if trio.current_time() >= give_up_at:
                raise _not_let_go()
            with trio.move_on_at(min(give_up_at, trio.current_time() + _LOOK_S)):
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


def _out_of_touch() -> Unavailable:
    return Unavailable("This node has lost touch with the others; try again.", code="storage_failed")


def _not_let_go() -> Unavailable:
    return Unavailable(
        "Another node holds the channel and does not let it go; try again.", code="channel_not_released"
    )
