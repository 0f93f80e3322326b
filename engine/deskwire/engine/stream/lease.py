"""The lease of one channel as this node has it: the rules of takeover, and the subscription that they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Final

import orjson
import trio

from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.core.tasks.mutex import Mutex
from deskwire.engine.stream.channel import Channel, named_channel
from deskwire.engine.stream.ports import StreamConsumer
from deskwire.engine.stream.subscription import Subscription

_SUPERSEDED_MAX: Final = 100
"""Superseded ids of one channel: more than can be alive at once, and few enough for one row."""
_TAKEOVERS_MAX: Final = 10
"""Takeovers from a connected holder that a channel sees within the time below (Pusher protocol, takeover)."""
_TAKEOVER_WINDOW_S: Final = 60.0


class LeaseRules:
    """The consumer that has a channel, and those whom that keeps out. Times are seconds of one clock, whichever it is.

    Args:
        consumer_id: the consumer that holds the channel, or held it last.
        held: whether it holds it.
        superseded: ids that were taken over from and may not come back yet, oldest first.
        dropped_at: when the last holder's connection ended.
        takeovers: times of the last takeovers from a connected holder.
        released: whether the last holder unsubscribed, so that nobody takes over from it.
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
        """Return when the fence falls if nothing happens before."""
        return inf if self.held else self.dropped_at + self.lease_s

    def fenced(self, consumer_id: str, now: float) -> bool:
        """Return whether this consumer may not take the channel now."""
        return consumer_id in self.superseded and now < self.free_at()

    def throttled_until(self, consumer_id: str) -> float:
        """Return until when this consumer may not take the channel from its holder, as that happened too often.

        It is -inf if there is no such time.
        """
        if not self.held or self.consumer_id == consumer_id:
            return -inf  # no other consumer is disturbed
        return self.takeovers[0] + _TAKEOVER_WINDOW_S if len(self.takeovers) == _TAKEOVERS_MAX else -inf

    def admitted_at(self, consumer_id: str) -> float:
        """Return when this consumer may take the channel if nothing happens before."""
        fenced_until = self.free_at() if consumer_id in self.superseded else -inf
        return max(fenced_until, self.throttled_until(consumer_id))

    def after_taking(self, consumer_id: str, now: float) -> dict[str, None]:
        """Return the superseded ids as they will be once `consumer_id` holds the channel."""
        kept = dict(self.superseded) if now < self.free_at() else {}
        if self.consumer_id is not None and not self.released:
            kept.pop(self.consumer_id, None)
            kept[self.consumer_id] = None
        kept.pop(consumer_id, None)
        return dict(list(kept.items())[-_SUPERSEDED_MAX:])

    def after_takeover(self, consumer_id: str, now: float) -> tuple[float, ...]:
        """Return the times of takeovers as they will be once `consumer_id` holds the channel."""
        disturbed = self.held and self.consumer_id != consumer_id
        return (*self.takeovers, now)[-_TAKEOVERS_MAX:] if disturbed else self.takeovers

    def yield_to(self, consumer_id: str, now: float) -> None:
        """Let the holder go for `consumer_id`, which is to come: as a takeover, but that nobody holds the channel yet."""
        self.superseded, self.takeovers = (
            self.after_taking(consumer_id, now),
            self.after_takeover(consumer_id, now),
        )
        self.held, self.dropped_at, self.released = False, now, False

    def drop(self, now: float, *, for_good: bool) -> None:
        """Let the holder go: `for_good` if it asked to, else its connection ended."""
        self.held = False
        self.dropped_at = -inf if for_good else now
        self.released = for_good
        if for_good:
            self.superseded = {}

    def fence_holder(self, now: float) -> bool:
        """End the consumer that holds the channel or was the last to, and fence it.

        Return False if that changes nothing, as it is so already.
        """
        ended = {} if self.consumer_id is None else {self.consumer_id: None}
        if not self.held and self.superseded == ended:
            return False
        self.held, self.superseded, self.dropped_at, self.released = False, ended, now, False
        return True


class ChannelLease(LeaseRules):
    """The right to consume a channel, which one subscription at a time holds.

    Args:
        confirmed: the log position that the holder, present or last, has confirmed.
        holder: the subscription that holds the channel here.
        seen: the stored row that this rests on, where other nodes may change it.
        held_remotely: whether another node holds the channel.
        event: id of the newest event at the confirmed position when that was stored; see `StreamConsumer.event`.
        replaced: whether the log is another than the one that was confirmed, and nobody has been told so far.
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

    def __init__(self, channel: Channel, lease_s: float) -> None:
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
        self._changed: trio.Event | None = None  # set while somebody waits for it

    @property
    def busy(self) -> bool:
        """The lease is held, waited for, or about to be taken."""
        return self.holder is not None or self.waiting > 0 or self.lock.held

    @property
    def paused(self) -> bool:
        """True if a subscription holds the channel here and may not write, because the node's lease is in doubt."""
        return self.holder is not None and not self.holder.current

    @property
    def changed(self) -> trio.Event:
        """The event that is set when somebody takes the channel, or leaves it."""
        if self._changed is None:
            self._changed = trio.Event()
        return self._changed

    def take(self, holder: Subscription, generation: int, since: int, now: float) -> Subscription | None:
        """Give the lease to the new holder; return the previous one, which from here on is not current."""
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
        """Let the holder go: `for_good` if it asked to, else its connection ended. Return False if it was not the holder."""
        holder.current = False
        if self.holder is not holder:
            return False
        self.holder = None
        self.drop(now, for_good=for_good)
        self.notify()
        return True

    def end(self, now: float) -> Subscription | None:
        """End the consumer that holds the channel or was the last to, and fence it; return the holder."""
        holder = self.stop()
        if self.fence_holder(now):
            self.notify()
        return holder

    def stop(self) -> Subscription | None:
        """Take the lease from its holder here, for which nothing is written from now on, and return it."""
        holder, self.holder = self.holder, None
        if holder is not None:
            holder.current = False
        return holder

    def load(self, row: StreamConsumer) -> None:
        """Have the lease be as it is stored, where its times are those of a clock that all nodes go by."""
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
        """Wake those who wait for a change."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None


MESSAGE_KIND: Final = "seats"
_CHANNELS_PER_MESSAGE: Final = 16
"""Channels that fit into one message whatever their names are."""


class LeaseNotifications:
    """Tells other nodes, and whoever waits for a lease of this one, to look at channels anew.

    Args:
        node: the name of this one.
        leases: those that this node knows of.
        on_request: called when another node has asked this one for something.
    """

    def __init__(
        self, bus: Bus, node: str, leases: Mapping[Channel, ChannelLease], on_request: Callable[[], None]
    ) -> None:
        self._bus = bus
        self._node = node
        self._leases = leases
        self._on_request = on_request
        bus.receive(MESSAGE_KIND, self._receive)

    def notify(self, rows: Sequence[StreamConsumer]) -> None:
        """Say that these channels have changed, or that something is on_request of the nodes that hold them."""
        for start in range(0, len(rows), _CHANNELS_PER_MESSAGE):
            told = rows[start : start + _CHANNELS_PER_MESSAGE]
            self._bus.send(MESSAGE_KIND, orjson.dumps([[row.project, row.channel, row.node] for row in told]))
            self._notify((row.project, row.channel) for row in told)

    def _receive(self, payload: bytes) -> None:
        told = orjson.loads(payload)
        self._notify((project, name) for project, name, _ in told)
        if any(node == self._node for _, _, node in told):
            self._on_request()

    def _notify(self, names: Iterable[tuple[int, str]]) -> None:
        for project, name in names:
            channel = named_channel(project, name)
            if channel is not None and channel in self._leases:
                self._leases[channel].notify()
