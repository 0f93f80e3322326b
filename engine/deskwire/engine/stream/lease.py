"""The lease of one channel: the rules of takeover, the node's state of the lease, and notification of other nodes.

Rules of takeover (decisions 5; ADR 8):

- At most one subscription holds the channel; each new holder has the next generation.
- A consumer from which another one takes over, connected or not, is superseded. While its successor holds the channel, or
  within the lease time after the successor dropped off, the superseded consumer is fenced: it may not return.
- The same consumer on another socket replaces itself and is not fenced.
- A holder that unsubscribes lifts the fence at once. One that drops off keeps the fence for the lease time.
- A consumer that is ended by a call is fenced itself, for the lease time or while another one holds the channel; all other
  consumers may take the channel at once.
- Consumers that take a channel from each other with ever new ids, as supervisors that restart them do, are throttled: the
  number of takeovers from a connected holder within a minute is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Final

import orjson
import trio

from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.core.tasks.mutex import Mutex
from deskwire.engine.stream.channel import StreamChannel, named_channel
from deskwire.engine.stream.ports import StreamConsumer
from deskwire.engine.stream.subscription import Subscription

# Maximum superseded ids of one channel: more than can be alive at once, and few enough for one row.
_SUPERSEDED_MAX: Final = 100
# Maximum takeovers from a connected holder within the window below (Pusher protocol, takeover).
_TAKEOVERS_MAX: Final = 10
_TAKEOVER_WINDOW_S: Final = 60.0

MESSAGE_KIND: Final = "seats"
_CHANNELS_PER_MESSAGE: Final = 16  # channels per message, so that even the longest names fit


class LeaseRules:
    """The rules of takeover for one channel, without I/O. Times are seconds of any one clock.

    Attributes:
        consumer_id: the consumer that holds the channel, or held it last.
        held: whether that consumer holds the channel now.
        superseded: ids of superseded consumers that may be fenced, oldest first.
        dropped_at: time at which the last holder's connection ended.
        takeovers: times of the last takeovers from a connected holder.
        released: True if the last holder unsubscribed, so that the next consumer does not supersede it.
    """

    __slots__ = ("consumer_id", "dropped_at", "held", "lease_s", "released", "superseded", "takeovers")

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self.consumer_id: str | None = None
        self.held = False
        self.superseded: dict[str, None] = {}
        self.dropped_at = -inf
        self.takeovers: tuple[float, ...] = ()
        self.released = False

    def free_at(self) -> float:
        """Return the time at which the fence is lifted unless the state changes."""
        return inf if self.held else self.dropped_at + self.lease_s

    def fenced(self, consumer_id: str, now: float) -> bool:
        """Return whether this consumer may not take the channel now."""
        return consumer_id in self.superseded and now < self.free_at()

    def throttled_until(self, consumer_id: str) -> float:
        """Return the time until which this consumer may not take the channel because of too many takeovers.

        It is -inf if the consumer is not throttled.
        """
        if not self.held or self.consumer_id == consumer_id:
            return -inf  # no other consumer is disturbed
        return self.takeovers[0] + _TAKEOVER_WINDOW_S if len(self.takeovers) == _TAKEOVERS_MAX else -inf

    def admitted_at(self, consumer_id: str) -> float:
        """Return the time from which this consumer may take the channel unless the state changes."""
        fenced_until = self.free_at() if consumer_id in self.superseded else -inf
        return max(fenced_until, self.throttled_until(consumer_id))

    def after_taking(self, consumer_id: str, now: float) -> dict[str, None]:
        """Return the superseded ids after `consumer_id` takes the channel."""
        kept = dict(self.superseded) if now < self.free_at() else {}
        if self.consumer_id is not None and not self.released:
            kept.pop(self.consumer_id, None)
            kept[self.consumer_id] = None
        kept.pop(consumer_id, None)
        return dict(list(kept.items())[-_SUPERSEDED_MAX:])

    def after_takeover(self, consumer_id: str, now: float) -> tuple[float, ...]:
        """Return the times of takeovers after `consumer_id` takes the channel."""
        disturbed = self.held and self.consumer_id != consumer_id
        return (*self.takeovers, now)[-_TAKEOVERS_MAX:] if disturbed else self.takeovers

    def yield_to(self, consumer_id: str, now: float) -> None:
        """Release the channel for `consumer_id`, as in a takeover that is not finished: no consumer holds it yet."""
        self.superseded, self.takeovers = (
            self.after_taking(consumer_id, now),
            self.after_takeover(consumer_id, now),
        )
        self.held, self.dropped_at, self.released = False, now, False

    def drop(self, now: float, *, for_good: bool) -> None:
        """Release the channel: `for_good` if the holder unsubscribed, otherwise its connection ended."""
        self.held = False
        self.dropped_at = -inf if for_good else now
        self.released = for_good
        if for_good:
            self.superseded = {}

    def fence_holder(self, now: float) -> bool:
        """Release the channel and fence the consumer that holds it, or held it last.

        Return False if that was already the state.
        """
        ended = {} if self.consumer_id is None else {self.consumer_id: None}
        if not self.held and self.superseded == ended:
            return False
        self.held, self.superseded, self.dropped_at, self.released = False, ended, now, False
        return True


class ChannelLease(LeaseRules):
    """This node's state of the right to consume a channel, which one subscription at a time holds.

    Attributes:
        confirmed: the log position that the present or last holder has confirmed.
        holder: the subscription that holds the channel on this node.
        seen: the stored row that this state is based on, if other nodes may change it.
        held_remotely: whether another node holds the channel.
        event: id of the newest event at the confirmed position when that was stored (see `StreamConsumer.event`).
        replaced: True if the log was replaced since the position was confirmed, and no consumer was notified yet.
        waiting: number of tasks that wait for a change.
    """

    __slots__ = (
        "_changed",
        "channel",
        "confirmed",
        "event",
        "generation",
        "held_remotely",
        "holder",
        "lock",
        "replaced",
        "seen",
        "since",
        "waiting",
    )

    def __init__(self, channel: StreamChannel, lease_s: float) -> None:
        super().__init__(lease_s)
        self.channel = channel
        self.holder: Subscription | None = None
        self.generation = 0
        self.confirmed = 0
        self.since = 0
        self.seen: StreamConsumer | None = None
        self.held_remotely = False
        self.event: str | None = None
        self.replaced = False
        self.waiting = 0
        self.lock = Mutex()
        self._changed: trio.Event | None = None  # exists only while a task waits for it

    @property
    def busy(self) -> bool:
        """True if the lease is held, waited for, or about to be taken."""
        return self.holder is not None or self.waiting > 0 or self.lock.held

    @property
    def paused(self) -> bool:
        """True if a subscription holds the channel here but may not write, because the node's own lease is in doubt."""
        return self.holder is not None and not self.holder.current

    @property
    def changed(self) -> trio.Event:
        """The event that is set when a consumer takes or leaves the channel."""
        if self._changed is None:
            self._changed = trio.Event()
        return self._changed

    def take(self, holder: Subscription, generation: int, since: int, now: float) -> Subscription | None:
        """Assign the lease to a new holder, and return the previous one, which is no longer current."""
        taker = holder.consumer_id
        self.superseded, self.takeovers = self.after_taking(taker, now), self.after_takeover(taker, now)
        previous, self.holder = self.holder, holder
        if previous is not None:
            previous.current = False
        self.held, self.consumer_id, self.generation, self.since = True, taker, generation, since
        self.released = False
        self.notify()
        return previous

    def leave(self, holder: Subscription, now: float, *, for_good: bool) -> bool:
        """Release the channel if this subscription holds it; return whether it did.

        Args:
            for_good: True if the consumer unsubscribed, False if its connection ended.
        """
        holder.current = False
        if self.holder is not holder:
            return False
        self.holder = None
        self.drop(now, for_good=for_good)
        self.notify()
        return True

    def end(self, now: float) -> Subscription | None:
        """End and fence the consumer that holds the channel or held it last; return the holder."""
        holder = self.stop()
        if self.fence_holder(now):
            self.notify()
        return holder

    def stop(self) -> Subscription | None:
        """Take the lease from its holder on this node, which may no longer write, and return the holder."""
        holder, self.holder = self.holder, None
        if holder is not None:
            holder.current = False
        return holder

    def load(self, row: StreamConsumer) -> None:
        """Set the state from the stored row, whose times are of the clock that all nodes share."""
        if row.generation != self.generation or row.position > self.confirmed:
            self.confirmed = row.position
        self.event = row.event if row.position == self.confirmed else None
        self.consumer_id, self.generation, self.since = row.consumer_id, row.generation, row.since
        self.superseded = dict.fromkeys(row.superseded)
        self.takeovers = tuple(time / 1000 for time in row.takeovers)
        self.held = row.connected
        self.released = not row.connected and not row.dropped_at
        self.dropped_at = row.dropped_at / 1000 if row.dropped_at else -inf

    def notify(self) -> None:
        """Wake the tasks that wait for a change."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None


class LeaseNotifications:
    """Notifies other nodes, and waiting tasks of this node, that channels have changed.

    A lost notification costs time only, because waiting tasks also poll the store.

    Args:
        node: the name of this node.
        leases: the leases in this node's memory.
        on_request: called when another node may have asked this node for a channel.
    """

    def __init__(
        self,
        bus: Bus,
        node: str,
        leases: Mapping[StreamChannel, ChannelLease],
        on_request: Callable[[], None],
    ) -> None:
        self._bus = bus
        self._node = node
        self._leases = leases
        self._on_request = on_request
        bus.receive(MESSAGE_KIND, self._receive)

    def notify(self, rows: Sequence[StreamConsumer]) -> None:
        """Notify of changes to these channels, and of requests to the nodes that hold them."""
        for start in range(0, len(rows), _CHANNELS_PER_MESSAGE):
            changed = rows[start : start + _CHANNELS_PER_MESSAGE]
            self._bus.send(
                MESSAGE_KIND, orjson.dumps([[row.project, row.channel, row.node] for row in changed])
            )
            self._notify((row.project, row.channel) for row in changed)

    def _receive(self, payload: bytes) -> None:
        changed = orjson.loads(payload)
        self._notify((project, name) for project, name, _ in changed)
        if any(node == self._node for _, _, node in changed):
            self._on_request()

    def _notify(self, names: Iterable[tuple[int, str]]) -> None:
        for project, name in names:
            channel = named_channel(project, name)
            if channel is not None and channel in self._leases:
                self._leases[channel].notify()
