"""The lease of one channel as this node has it: the rules of takeover, and the subscription that they are about."""

from __future__ import annotations

from math import inf

import trio

from deskwire.engine.core.tasks.mutex import Mutex
from deskwire.engine.stream.channel import Channel
from deskwire.engine.stream.ports import StreamConsumer
from deskwire.engine.stream.subscription import Subscription
from deskwire.engine.stream.tenure import Tenure


class ChannelLease(Tenure):
    """The right to consume a channel, which one subscription at a time holds.

    Args:
        confirmed: the log position that the holder, present or last, has confirmed.
        holder: the subscription that holds the channel here.
        seen: the stored row that this rests on, where other nodes may change it.
        elsewhere: whether another node holds the channel.
        event: id of the newest event at the confirmed position when that was stored; see `StreamConsumer.event`.
        replaced: whether the log is another than the one that was confirmed, and nobody has been told so far.
    """

    __slots__ = (
        "_changed",
        "channel",
        "confirmed",
        "elsewhere",
        "event",
        "generation",
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
        self.elsewhere = False
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
        if self.expel(now):
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
