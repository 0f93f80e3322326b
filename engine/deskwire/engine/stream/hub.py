"""The hub of the realtime stream: subscribing, taking over, confirming and leaving channels (decisions 5; ADR 8)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import ClassVar, Final

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.cluster.bus import Bus
from deskwire.engine.cluster.cluster import Cluster
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Conflict, NotFound, Unavailable
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.tail import Tail
from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.stream.channel import Channel, Kind, open_channel
from deskwire.engine.stream.checkpoints import Checkpoints
from deskwire.engine.stream.lag import LAG_MAX, Lag, SubscriptionCounters, find_lags
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.letting_go import PATIENCE_S, LettingGo
from deskwire.engine.stream.ports import StreamConsumer, StreamReader, StreamTransaction
from deskwire.engine.stream.resume import find_start
from deskwire.engine.stream.shared_leases import SharedLeases, is_held
from deskwire.engine.stream.subscription import LeasedSubscription, Loss, Start, Subscription
from deskwire.engine.stream.suspension import Suspension
from deskwire.engine.stream.token import Grant

log: Final = structlog.get_logger(__name__)

_COMMIT_S: Final = 10.0
"""How long a takeover may wait for its commit, shielded from cancellation."""
_LOOK_S: Final = 5.0
"""Pause between two looks at a channel that a consumer waits for, should nothing be heard of other nodes."""
_LEASES: Final = 10_000
"""Channels held in memory; beyond that, those that nobody holds or waits for are forgotten."""


class ConsumerSuperseded(Conflict):
    """Another consumer took the channel over from this one and still holds it."""

    code: ClassVar[str] = "consumer_superseded"


class TooManyTakeovers(Conflict):
    """Consumers take the channel from each other too often; its holder keeps it for now."""

    code: ClassVar[str] = "too_many_takeovers"


class ConsumerStatus(Struct, frozen=True):
    """One channel as `GET /s2s/stream/consumers` shows it.

    Args:
        connected: whether the consumer holds the channel now; if not, it was the last to.
        since: when it took the channel, in milliseconds since the epoch.
        confirmed: id of the project's newest event that is confirmed, None if there is none.
        lag: events of the project that are not confirmed, counted up to 10,000.
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
        lease_s: how long a dropped consumer is protected from those it superseded.
        resume_window_s: age of the oldest missed event up to which `auto` goes back for it.
        save_s: pause between two saves of confirmed positions; after a crash the events of that time come again.
        nodes: those that share the store, and their bus; None for one that has it to itself.
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
        self._leases: dict[Channel, ChannelLease] = {}
        self._typing_subscribers: dict[int, set[Subscription]] = {}
        self.counters: Final = SubscriptionCounters()
        self._cluster: Cluster | None = None
        self._shared: SharedLeases | None = None
        self._suspension: Suspension | None = None
        if nodes is not None:
            self._cluster, bus = nodes
            letting_go = LettingGo(store, clock, self._cluster, bus, self._leases, self._forget_subscriber)
            self._shared = SharedLeases(store, clock, self._cluster, letting_go)
            self._suspension = Suspension(self._cluster, self._leases, self._shared, self.counters)

    async def subscribe(
        self, project: Project, channel: Channel, grant: Grant, lost: Callable[[Loss], None]
    ) -> Subscription:
        """Take the channel over for the grant's consumer; on return it is the one holder.

        Args:
            lost: called when the consumer has lost the channel to the next one, or by `end`.

        Raises:
            ConsumerSuperseded: the consumer is fenced.
            TooManyTakeovers: the channel is held, and has been taken from its holder too often of late.
            Unavailable: the takeover could not be stored; nothing has changed.

        Cancellation: not while the takeover is being committed, for at most 10 s; after that the
        caller owns the subscription and must `leave` it.
        """
        lease = await self._lease(channel)
        async with lease.lock:
            lease.channel = channel  # one that was found by its name alone may not know its contact's userId
            give_up_at = trio.current_time() + PATIENCE_S
            while (holder := await self._subscribe(lease, grant, lost, give_up_at)) is None:
                await trio.lowlevel.checkpoint()
            return holder

    async def _subscribe(
        self, lease: ChannelLease, grant: Grant, lost: Callable[[Loss], None], give_up_at: float
    ) -> Subscription | None:
        """Take the channel over, or return None once another node has changed something about it."""
        channel = lease.channel
        if self._shared is not None:
            await self._shared.look(lease)
        self._admit(lease, grant.consumer_id)
        if self._shared is not None and lease.elsewhere:
            await self._shared.ask(lease, grant.consumer_id, give_up_at)
            return None
        with ExitStack() as undo:
            # Before the start is found: what is committed meanwhile is in memory then.
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
        if now < lease.crowded_until(consumer_id):
            raise TooManyTakeovers("The channel is taken over too often; its consumer keeps it for now.")

    def _subscription(
        self, tail: Tail, channel: Channel, grant: Grant, start: Start, lost: Callable[[Loss], None]
    ) -> Subscription:
        consumer_id, typing = grant.consumer_id, grant.typing
        if self._cluster is None:
            return Subscription(self._log, tail, channel, consumer_id, start, lost, typing=typing)
        return LeasedSubscription(
            self._cluster, self._log, tail, channel, consumer_id, start, lost, typing=typing
        )

    def _now(self) -> float:
        """Return the time by which the rules of takeover go: with several nodes it is that of a clock of all."""
        return trio.current_time() if self._shared is None else self._shared.now()

    def leave(self, holder: Subscription, *, for_good: bool) -> None:
        """End a subscription: `for_good` if the consumer unsubscribed, else its connection has ended."""
        holder.close()
        lease = self._leases.get(holder.channel)
        self._forget_subscriber(holder)
        if lease is not None and lease.leave(holder, self._now(), for_good=for_good):
            self._checkpoints.touch(lease)
            if self._shared is not None:
                self._shared.letting_go.leave(lease)

    def confirm(self, holder: Subscription, position: int) -> None:
        """Note that the consumer has everything up to `position`; from a superseded one this means nothing."""
        lease = self._leases.get(holder.channel)
        if lease is not None and lease.holder is holder and position > lease.confirmed:
            lease.confirmed, lease.event = position, None
            self._checkpoints.touch(lease)

    def log_replaced(self, project: int) -> None:
        """Note that a project's log is another than it was: its consumers here begin anew, and are told of a gap."""
        assert self._shared is not None, "only a database that has others can be replaced by its copy"
        for channel, lease in self._leases.items():
            if channel.project != project:
                continue
            lease.replaced = True
            holder = lease.stop()
            if holder is not None:
                lease.drop(self._now(), for_good=False)
                self._shared.letting_go.leave(lease)
                self._shared.letting_go.lose(holder)

    @property
    def typing_projects(self) -> Collection[int]:
        """The projects with a consumer here that asked for typing events, by their storage keys."""
        return [project for project, holders in self._typing_subscribers.items() if holders]

    def offer_ephemeral(self, event: EphemeralEvent) -> None:
        """Give a typing event to those consumers of its project that asked for them (contract 6.1)."""
        for holder in self._typing_subscribers.get(event.project, ()):
            holder.offer(event)

    async def until_unfenced(self, channel: Channel, consumer_id: str) -> None:
        """Return once the consumer may take the channel."""
        lease = await self._lease(channel)
        lease.waiting += 1
        try:
            while True:
                changed = lease.changed  # before the look, so that nothing is missed that comes during it
                if (wait_s := await self._wait_s(lease, consumer_id)) <= 0:
                    return
                with trio.move_on_after(wait_s):
                    await changed.wait()
        finally:
            lease.waiting -= 1

    async def _wait_s(self, lease: ChannelLease, consumer_id: str) -> float:
        """Return for how long the consumer is to wait before the next look; 0 once it may take the channel."""
        if self._shared is None:
            return max(0.0, lease.admitted_at(consumer_id) - trio.current_time())
        try:
            async with lease.lock:
                await self._shared.look(lease)
        except Unavailable:
            return _LOOK_S
        return max(0.0, min(_LOOK_S, lease.admitted_at(consumer_id) - self._now()))

    async def consumers(
        self, project: Project, channels: Collection[str] | None = None
    ) -> Sequence[ConsumerStatus]:
        """Return every channel of the project that was ever held, by name; or of these those that were."""

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
        """End a consumer on all channels of the project, or on that one; return those that it was connected to.

        Its confirmed positions stay: the next consumer of a channel begins there.

        Raises NotFound (`consumer_not_found`) if it holds no such channel, and was not the last to.
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
        for holder in ended:  # once all are over, so that each can see what is left of its connection
            holder.lost("ended")
        return [holder.channel.name for holder in ended]

    async def _end_on(self, channel: Channel, consumer_id: str) -> Subscription | None:
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
        """Send consumers to another node, which is ready, if this one can't write to them for lack of its lease."""
        if self._suspension is not None:
            self._suspension.send_away_nowait()

    def count_paused(self) -> int:
        """Return the number of consumers to which nothing may be written, because the node's lease is in doubt."""
        return sum(lease.paused for lease in self._leases.values())

    async def lags(self) -> Mapping[Kind, Lag]:
        """Return how far the connected consumers are behind, by the kind of their channels."""
        held = [
            (channel, lease.confirmed) for channel, lease in self._leases.items() if lease.holder is not None
        ]
        return await find_lags(self._store, self._log, held)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Save confirmed positions until cancelled, then once more; forget channels that nobody uses.

        Cancellation: the last save may take 5 s.
        """
        if self._shared is None:
            await self._checkpoints.run(self._in_use, task_status=task_status)
            return
        assert self._suspension is not None, "it shares its leases"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._shared.letting_go.run)
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
            reader.events_behind(row.project, position, LAG_MAX),
        )

    async def _lease(self, channel: Channel) -> ChannelLease:
        if channel not in self._leases and self._shared is not None:
            self._forget_idle()
            self._leases[channel] = ChannelLease(channel, self._lease_s)
        elif channel not in self._leases:
            row = await self._store.read(lambda reader: reader.stream_consumer(channel.project, channel.name))
            if channel not in self._leases:
                self._forget_idle()
                self._leases[channel] = self._restored(channel, row)
        return self._leases[channel]

    def _restored(self, channel: Channel, row: StreamConsumer | None) -> ChannelLease:
        """Return a lease as it was left. After a restart its last holder is protected as if it had just dropped off."""
        lease = ChannelLease(channel, self._lease_s)
        if row is not None:
            lease.consumer_id, lease.generation = row.consumer_id, row.generation
            lease.confirmed, lease.since = row.position, row.since
            lease.superseded = dict.fromkeys(row.superseded)
            gone_ms = max(0, self._clock() - max(self._started_ms, row.updated_at))
            lease.dropped_at = trio.current_time() - gone_ms / 1000
        return lease

    def _forget_idle(self) -> None:
        if len(self._leases) < _LEASES:
            return
        for channel, lease in list(self._leases.items()):
            if not lease.busy and not self._checkpoints.unsaved(lease):
                del self._leases[channel]

    async def _start(self, lease: ChannelLease, grant: Grant) -> Start:
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
        self, lease: ChannelLease, consumer_id: str, start: Start, position: int, *, continues: bool
    ) -> tuple[int, int] | None:
        """Store the takeover; return generation and time, None if another node has changed something about the channel."""
        if self._shared is not None:
            event = "" if start.lost else None
            return await self._shared.take(lease, consumer_id, position, event, moves=not continues)
        channel, at = lease.channel, self._clock()
        superseded = tuple(lease.after_taking(consumer_id, trio.current_time()))

        def job(tx: StreamTransaction) -> int:
            return tx.take_channel(channel.project, channel.name, consumer_id, position, superseded, at)

        # Shielded: were the generation stored but not the lease's, the holder's positions could not be saved.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _COMMIT_S):
            return await self._store.write(InlineJob(job)), at
        raise Unavailable("The takeover could not be stored in time.", code="storage_failed")

    def _set_confirmed(self, lease: ChannelLease, stored: int, *, continues: bool) -> None:
        """Set the position that counts as confirmed from here on; `stored` is the one in the takeover's commit.

        A consumer that continues leaves it where it is, even with a gap: until it has confirmed something, nobody
        knows whether it was told of the gap, and the next one must be told again. The previous holder may have
        confirmed more during the commit.
        """
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
            self._forget_subscriber(previous)
            log.info(
                "stream.superseded",
                channel=lease.channel.name,
                consumer=previous.consumer_id,
                by=holder.consumer_id,
                generation=generation,
            )
            previous.lost("superseded")

    def _forget_subscriber(self, subscription: Subscription) -> None:
        """Tell a subscription no longer of who types."""
        self._typing_subscribers.get(subscription.channel.project, set()).discard(subscription)
