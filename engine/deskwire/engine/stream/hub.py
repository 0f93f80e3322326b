"""The hub of the realtime stream: subscribe to, take over, confirm and leave channels (decisions 5; ADR 8)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import ClassVar, Final

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.cluster.cluster import Bus, Cluster
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Conflict, NotFound, Unavailable
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.tail import Tail
from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.stream.channel import ChannelKind, StreamChannel, open_channel
from deskwire.engine.stream.checkpoints import Checkpoints
from deskwire.engine.stream.lag import LAG_MAX, Lag, SubscriptionCounters, find_lags
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.ports import StreamConsumer, StreamReader, StreamTransaction
from deskwire.engine.stream.release import RELEASE_TIMEOUT_S, ChannelReleaser
from deskwire.engine.stream.shared_leases import SharedLeases, Suspension, is_held
from deskwire.engine.stream.subscription import (
    LeasedSubscription,
    Loss,
    ResumePoint,
    Subscription,
    find_start,
)
from deskwire.engine.stream.token import Grant

log: Final = structlog.get_logger(__name__)

_COMMIT_TIMEOUT_S: Final = 10.0  # time that a takeover may wait for its commit, shielded from cancellation
# Interval between polls of a channel that a consumer waits for, in case a notification was lost.
_POLL_INTERVAL_S: Final = 5.0
_LEASES_MAX: Final = 10_000  # maximum leases in memory; beyond that, idle ones are evicted


class ConsumerSuperseded(Conflict):
    """Another consumer took the channel over from this one and still holds it."""

    code: ClassVar[str] = "consumer_superseded"


class TooManyTakeovers(Conflict):
    """Consumers take the channel from each other too often; the present holder keeps it for now."""

    code: ClassVar[str] = "too_many_takeovers"


class ConsumerStatus(Struct, frozen=True):
    """One channel as `GET /s2s/stream/consumers` shows it.

    Args:
        connected: True if the consumer holds the channel now, False if it held it last.
        since: time at which it took the channel, in milliseconds since the epoch.
        confirmed: id of the project's newest confirmed event, None if there is none.
        lag: number of the project's unconfirmed events, counted up to 10,000.
    """

    channel: str
    consumer_id: str
    connected: bool
    since: int
    confirmed: str | None
    lag: int


class Hub:
    """The channels of this node, and the consumers that hold them.

    Args:
        lease_s: time for which a dropped consumer is protected from the consumers it superseded.
        resume_window_s: maximum age of the oldest missed event with which `auto` resumes without a gap.
        save_s: pause between two saves of confirmed positions; after a crash the events of that time are sent again.
        nodes: the cluster and its bus if several nodes share the store, otherwise None.
    """

    def __init__(
        self,
        store: Store[StreamReader, StreamTransaction],
        event_log: EventLog,
        clock: Clock,
        *,
        lease_s: float = 60.0,
        resume_window_s: float = 7200.0,
        save_s: float = 1.0,
        nodes: tuple[Cluster, Bus] | None = None,
    ) -> None:
        self._store = store
        self._log = event_log
        self._clock = clock
        self._lease_s = lease_s
        self._window_ms = int(resume_window_s * 1000)
        self._started_ms = clock()
        self._checkpoints = Checkpoints(store, clock, save_s, shared=nodes is not None)
        self._leases: dict[StreamChannel, ChannelLease] = {}
        self._typing_subscribers: dict[int, set[Subscription]] = {}
        self.counters: Final = SubscriptionCounters()
        self._cluster: Cluster | None = None
        self._shared: SharedLeases | None = None
        self._suspension: Suspension | None = None
        if nodes is not None:
            self._cluster, bus = nodes
            releaser = ChannelReleaser(
                store, clock, self._cluster, bus, self._leases, self._remove_typing_subscriber
            )
            self._shared = SharedLeases(store, clock, self._cluster, releaser)
            self._suspension = Suspension(self._cluster, self._leases, self._shared, self.counters)

    async def subscribe(
        self, project: Project, channel: StreamChannel, grant: Grant, lost: Callable[[Loss], None]
    ) -> Subscription:
        """Take the channel over for the grant's consumer, which is the only holder on return.

        Args:
            lost: called when the consumer has lost the channel, with the reason.

        Raises:
            ConsumerSuperseded: the consumer is fenced.
            TooManyTakeovers: the channel is held, and there were too many takeovers within the last minute.
            Unavailable: the takeover could not be stored; nothing has changed.

        Cancellation: has no effect during the commit, which takes at most 10 s. After the commit the caller owns the
        subscription and must `leave` it.
        """
        lease = await self._lease(channel)
        async with lease.lock:
            lease.channel = channel  # a lease that was found by name may lack the contact's userId
            give_up_at = trio.current_time() + RELEASE_TIMEOUT_S
            while (holder := await self._subscribe(lease, grant, lost, give_up_at)) is None:
                await trio.lowlevel.checkpoint()
            return holder

    async def _subscribe(
        self, lease: ChannelLease, grant: Grant, lost: Callable[[Loss], None], give_up_at: float
    ) -> Subscription | None:
        """Take the channel over; return None if another node has changed its row, to try again."""
        channel = lease.channel
        if self._shared is not None:
            await self._shared.refresh(lease)
        self._admit(lease, grant.consumer_id)
        if self._shared is not None and lease.held_remotely:
            await self._shared.request_release(lease, grant.consumer_id, give_up_at)
            return None
        with ExitStack() as undo:
            # Opened before the start is found, so that memory has the events that are committed in between.
            tail = await self._log.open(channel.source)
            undo.callback(self._log.close, channel.source)
            start = await self._start(lease, grant)
            continues = grant.resume == "auto" and lease.consumer_id is not None and not start.lost
            position = lease.confirmed if continues else start.position
            taken = await self._commit(lease, grant.consumer_id, start, position, continues=continues)
            if taken is None:
                return None
            holder = self._subscription(tail, channel, grant, start, lost)
            self._hand_over(lease, holder, *taken)
            undo.pop_all()
        self._set_confirmed(lease, position, continues=continues)
        self.counters.note(start)
        return holder

    def _admit(self, lease: ChannelLease, consumer_id: str) -> None:
        now = self._now()
        if lease.fenced(consumer_id, now):
            self.counters.fenced += 1
            raise ConsumerSuperseded("Superseded by another consumer, which still holds the channel.")
        if now < lease.throttled_until(consumer_id):
            raise TooManyTakeovers("The channel is taken over too often; its consumer keeps it for now.")

    def _subscription(
        self,
        tail: Tail,
        channel: StreamChannel,
        grant: Grant,
        start: ResumePoint,
        lost: Callable[[Loss], None],
    ) -> Subscription:
        consumer_id, typing = grant.consumer_id, grant.typing
        if self._cluster is None:
            return Subscription(self._log, tail, channel, consumer_id, start, lost, typing=typing)
        return LeasedSubscription(
            self._cluster, self._log, tail, channel, consumer_id, start, lost, typing=typing
        )

    def _now(self) -> float:
        """Return the time for the rules of takeover; with several nodes it is of the clock that all nodes share."""
        return trio.current_time() if self._shared is None else self._shared.now()

    def leave(self, holder: Subscription, *, for_good: bool) -> None:
        """End a subscription: `for_good` if the consumer unsubscribed, otherwise its connection has ended."""
        holder.close()
        lease = self._leases.get(holder.channel)
        self._remove_typing_subscriber(holder)
        if lease is not None and lease.leave(holder, self._now(), for_good=for_good):
            self._checkpoints.touch(lease)
            if self._shared is not None:
                self._shared.releaser.leave(lease)

    def confirm(self, holder: Subscription, position: int) -> None:
        """Confirm a consumer's events up to `position`; ignored if the consumer no longer holds the channel."""
        lease = self._leases.get(holder.channel)
        if lease is not None and lease.holder is holder and position > lease.confirmed:
            lease.confirmed, lease.event = position, None
            self._checkpoints.touch(lease)

    def log_replaced(self, project: int) -> None:
        """Disconnect a project's consumers, because its log was replaced; they begin again with a gap."""
        assert self._shared is not None, "only a shared database can be replaced by its replica"
        for channel, lease in self._leases.items():
            if channel.project != project:
                continue
            lease.replaced = True
            holder = lease.stop()
            if holder is not None:
                lease.drop(self._now(), for_good=False)
                self._shared.releaser.leave(lease)
                self._shared.releaser.lose(holder)

    @property
    def typing_projects(self) -> Collection[int]:
        """The projects with a consumer here that asked for typing events, by their storage keys."""
        return [project for project, holders in self._typing_subscribers.items() if holders]

    def offer_ephemeral(self, event: EphemeralEvent) -> None:
        """Pass a typing event to the consumers of its project that asked for typing events (contract 6.1)."""
        for holder in self._typing_subscribers.get(event.project, ()):
            holder.offer(event)

    async def until_unfenced(self, channel: StreamChannel, consumer_id: str) -> None:
        """Return once the consumer may take the channel."""
        lease = await self._lease(channel)
        lease.waiting += 1
        try:
            while True:
                changed = lease.changed  # read before the poll, so that no change during the poll is missed
                if (wait_s := await self._wait_s(lease, consumer_id)) <= 0:
                    return
                with trio.move_on_after(wait_s):
                    await changed.wait()
        finally:
            lease.waiting -= 1

    async def _wait_s(self, lease: ChannelLease, consumer_id: str) -> float:
        """Return the time until the next poll in seconds; 0 once the consumer may take the channel."""
        if self._shared is None:
            return max(0.0, lease.admitted_at(consumer_id) - trio.current_time())
        try:
            async with lease.lock:
                await self._shared.refresh(lease)
        except Unavailable:
            return _POLL_INTERVAL_S
        return max(0.0, min(_POLL_INTERVAL_S, lease.admitted_at(consumer_id) - self._now()))

    async def consumers(
        self, project: Project, channels: Collection[str] | None = None
    ) -> Sequence[ConsumerStatus]:
        """Return the status of the project's channels that were ever held, sorted by name.

        Args:
            channels: names of the only channels to include; None for all.
        """

        def query(reader: StreamReader) -> list[ConsumerStatus]:
            return [self._status(reader, row, live.get(row.channel)) for row in held(reader)]

        def held(reader: StreamReader) -> Sequence[StreamConsumer]:
            if channels is None:
                return reader.stream_consumers(project.rowid)
            rows = (reader.stream_consumer(project.rowid, name) for name in sorted(channels))
            return [row for row in rows if row is not None]

        live = {
            channel.name: (lease.confirmed, lease.holder is not None)
            for channel, lease in self._leases.items()
            if channel.project == project.rowid
        }
        return await self._store.read(query)

    async def end(self, project: Project, consumer_id: str, channel: str | None = None) -> Sequence[str]:
        """End a consumer on one or all channels of the project; return the channels to which it was connected.

        Its confirmed positions stay, and the next consumer of a channel begins there.

        Raises NotFound (`consumer_not_found`) if it is neither the present nor the last consumer of such a channel.
        """

        def query(reader: StreamReader) -> list[str]:
            rows = reader.stream_consumers(project.rowid)
            return [
                row.channel
                for row in rows
                if row.consumer_id == consumer_id and channel in (None, row.channel)
            ]

        names, ended = await self._store.read(query), list[Subscription]()
        if not names:
            raise NotFound("No channel has this consumer.", code="consumer_not_found")
        if self._shared is not None:
            return await self._shared.end(project.rowid, names, consumer_id)
        for name in names:
            holder = await self._end_on(open_channel(project, name), consumer_id)
            ended += [] if holder is None else [holder]
        for holder in ended:  # after all are ended, so that each callback sees what is left of its connection
            holder.lost("ended")
        return [holder.channel.name for holder in ended]

    async def _end_on(self, channel: StreamChannel, consumer_id: str) -> Subscription | None:
        lease = await self._lease(channel)
        async with lease.lock:
            if lease.consumer_id != consumer_id:
                return None  # another consumer has just taken it
            holder = lease.end(trio.current_time())
        self._checkpoints.touch(lease)
        if holder is not None:
            self._typing_subscribers.get(channel.project, set()).discard(holder)
            log.info("stream.ended", channel=channel.name, consumer=consumer_id)
        return holder

    def send_away_nowait(self) -> None:
        """Disconnect paused consumers, so that they connect to another node, which is ready."""
        if self._suspension is not None:
            self._suspension.send_away_nowait()

    def count_paused(self) -> int:
        """Return the number of consumers that are paused because the node's lease is in doubt."""
        return sum(lease.paused for lease in self._leases.values())

    async def lags(self) -> Mapping[ChannelKind, Lag]:
        """Return the lags of the connected consumers, by the kind of their channels."""
        held = [
            (channel, lease.confirmed) for channel, lease in self._leases.items() if lease.holder is not None
        ]
        return await find_lags(self._store, self._log, held)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Save confirmed positions until cancelled, with a final save, and delete rows of unused channels.

        Cancellation: the final save may take 5 s.
        """
        if self._shared is None:
            await self._checkpoints.run(self._in_use, task_status=task_status)
            return
        assert self._suspension is not None, "it shares its leases"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._shared.releaser.run)
            nursery.start_soon(self._suspension.run)
            await self._checkpoints.run(self._in_use, task_status=task_status)

    def _in_use(self) -> set[tuple[int, str]]:
        return {(channel.project, channel.name) for channel, lease in self._leases.items() if lease.busy}

    def _status(
        self, reader: StreamReader, row: StreamConsumer, live: tuple[int, bool] | None
    ) -> ConsumerStatus:
        position, connected = live or (row.position, False)
        if self._cluster is not None and row.incarnation != self._cluster.node.incarnation:
            position, connected = row.position, is_held(reader, row)
        return ConsumerStatus(
            row.channel,
            row.consumer_id,
            connected,
            row.since,
            reader.event_id_at(row.project, position),
            reader.count_events_after(row.project, position, LAG_MAX),
        )

    async def _lease(self, channel: StreamChannel) -> ChannelLease:
        if channel not in self._leases and self._shared is not None:
            self._evict_idle()
            self._leases[channel] = ChannelLease(channel, self._lease_s)
        elif channel not in self._leases:
            row = await self._store.read(lambda reader: reader.stream_consumer(channel.project, channel.name))
            if channel not in self._leases:
                self._evict_idle()
                self._leases[channel] = self._restored(channel, row)
        return self._leases[channel]

    def _restored(self, channel: StreamChannel, row: StreamConsumer | None) -> ChannelLease:
        """Return a lease from its row. After a restart the last holder is protected as if it had just dropped off."""
        lease = ChannelLease(channel, self._lease_s)
        if row is not None:
            lease.consumer_id, lease.generation = row.consumer_id, row.generation
            lease.confirmed, lease.since = row.position, row.since
            lease.superseded = dict.fromkeys(row.superseded)
            gone_ms = max(0, self._clock() - max(self._started_ms, row.updated_at))
            lease.dropped_at = trio.current_time() - gone_ms / 1000
        return lease

    def _evict_idle(self) -> None:
        if len(self._leases) < _LEASES_MAX:
            return
        for channel, lease in list(self._leases.items()):
            if not lease.busy and not self._checkpoints.unsaved(lease):
                del self._leases[channel]

    async def _start(self, lease: ChannelLease, grant: Grant) -> ResumePoint:
        confirmed = lease.confirmed if lease.consumer_id is not None else None
        oldest_ms = self._clock() - self._window_ms
        return await find_start(
            self._store,
            self._log,
            lease.channel,
            grant.resume,
            confirmed,
            oldest_ms=oldest_ms,
            known="" if lease.replaced else lease.event,
            shared=self._shared is not None,
        )

    async def _commit(
        self, lease: ChannelLease, consumer_id: str, start: ResumePoint, position: int, *, continues: bool
    ) -> tuple[int, int] | None:
        """Store the takeover; return generation and time in ms, or None if another node has changed the row."""
        if self._shared is not None:
            event = "" if start.lost else None
            return await self._shared.take(lease, consumer_id, position, event, moves=not continues)
        channel, at = lease.channel, self._clock()
        superseded = tuple(lease.after_taking(consumer_id, trio.current_time()))

        def job(tx: StreamTransaction) -> int:
            return tx.take_channel(channel.project, channel.name, consumer_id, position, superseded, at)

        # Shielded: if the generation were stored but not set in the lease, the holder's positions could not be saved.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _COMMIT_TIMEOUT_S):
            return await self._store.write(InlineJob(job)), at
        raise Unavailable("The takeover could not be stored in time.", code="storage_failed")

    def _set_confirmed(self, lease: ChannelLease, stored: int, *, continues: bool) -> None:
        """Set the confirmed position after a takeover; `stored` is the position in the takeover's commit."""
        # A consumer that continues keeps the position, even with a gap. Until it confirms a later one, it may not have
        # received the notification of the gap, so the next consumer must get it again. The previous holder may have
        # confirmed more during the commit.
        if not continues:
            lease.confirmed, lease.event, lease.replaced = stored, None, False
        elif lease.confirmed != stored:
            self._checkpoints.touch(lease)

    def _hand_over(self, lease: ChannelLease, holder: Subscription, generation: int, since: int) -> None:
        self._checkpoints.drop(lease)
        previous = lease.take(holder, generation, since, self._now())
        if holder.typing:
            self._typing_subscribers.setdefault(holder.channel.project, set()).add(holder)
        if previous is not None:
            self.counters.note_takeover(previous.consumer_id, holder.consumer_id)
            self._remove_typing_subscriber(previous)
            log.info(
                "stream.superseded",
                channel=lease.channel.name,
                consumer=previous.consumer_id,
                by=holder.consumer_id,
                generation=generation,
            )
            previous.lost("superseded")

    def _remove_typing_subscriber(self, subscription: Subscription) -> None:
        """Stop passing typing events to a subscription."""
        self._typing_subscribers.get(subscription.channel.project, set()).discard(subscription)
