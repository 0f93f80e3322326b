"""The rules of takeover for one channel, without time or I/O of its own (decisions 5; ADR 8).

- At most one subscription holds the channel; each new one has the next generation.
- A consumer that another takes over from, connected or not, is superseded. While its successor holds the
  channel, or within the lease after the successor dropped off, it is fenced: it may not come back.
- The same consumer on another socket replaces itself and is not fenced.
- A holder that unsubscribes lifts the fence at once; one that drops off keeps it for the lease.
- One that is ended is fenced itself, for the lease or while another holds the channel; all others may take it at once.
- Consumers that take a channel from each other with ever new ids, as supervisors that restart them make them
  do, are slowed down: only so many takeovers from a connected holder within a minute.
"""

from __future__ import annotations

from math import inf
from typing import Final

import trio

from deskwire.engine.core.tasks.mutex import Mutex
from deskwire.engine.stream.channel import Channel
from deskwire.engine.stream.subscription import Subscription

_REMEMBERED: Final = 100
"""Superseded ids of one channel: more than can be alive at once, and few enough for one row."""
_TAKEOVERS: Final = 10
"""Takeovers from a connected holder that a channel sees within the time below (Pusher protocol, takeover)."""
_TAKEOVERS_S: Final = 60.0


class ChannelLease:
    """The right to consume a channel, which one subscription at a time holds. Times are in seconds on Trio's clock.

    Args:
        confirmed: the log position that the holder, present or last, has confirmed.
        dropped_at: when the last holder's connection ended.
        takeovers: times of the last takeovers from a connected holder.
        released: whether the last holder unsubscribed, so that nobody takes over from it.
    """

    __slots__ = (
        "_changed",
        "channel",
        "confirmed",
        "consumer_id",
        "dropped_at",
        "generation",
        "holder",
        "lease_s",
        "lock",
        "released",
        "since",
        "superseded",
        "takeovers",
        "waiting",
    )

    def __init__(self, channel: Channel, lease_s: float) -> None:
        self.channel = channel
        self.lease_s = lease_s
        self.holder: Subscription | None = None
        self.consumer_id: str | None = None
        self.generation = 0
        self.confirmed = 0
        self.since = 0
        self.released = False
        self.dropped_at = -inf
        self.superseded: dict[str, None] = {}
        self.takeovers: tuple[float, ...] = ()
        self.waiting = 0
        self.lock = Mutex()
        self._changed: trio.Event | None = None  # set while somebody waits for it

    @property
    def busy(self) -> bool:
        """The lease is held, waited for, or about to be taken."""
        return self.holder is not None or self.waiting > 0 or self.lock.held

    @property
    def changed(self) -> trio.Event:
        """The event that is set when somebody takes the channel, or leaves it."""
        if self._changed is None:
            self._changed = trio.Event()
        return self._changed

    def free_at(self) -> float:
        """Return when the fence falls if nothing happens before."""
        return inf if self.holder is not None else self.dropped_at + self.lease_s

    def fenced(self, consumer_id: str, now: float) -> bool:
        """Return whether this consumer may not take the channel now."""
        return consumer_id in self.superseded and now < self.free_at()

    def crowded_until(self, consumer_id: str) -> float:
        """Return until when this consumer may not take the channel from its holder, as that happened too often.

        It is -inf if there is no such time.
        """
        if self.holder is None or self.holder.consumer_id == consumer_id:
            return -inf  # no other consumer is disturbed
        return self.takeovers[0] + _TAKEOVERS_S if len(self.takeovers) == _TAKEOVERS else -inf

    def admitted_at(self, consumer_id: str) -> float:
        """Return when this consumer may take the channel if nothing happens before."""
        fenced_until = self.free_at() if consumer_id in self.superseded else -inf
        return max(fenced_until, self.crowded_until(consumer_id))

    def after_taking(self, consumer_id: str, now: float) -> dict[str, None]:
        """Return the superseded ids as they will be once `consumer_id` holds the channel."""
        kept = dict(self.superseded) if now < self.free_at() else {}
        if self.consumer_id is not None and not self.released:
            kept.pop(self.consumer_id, None)
            kept[self.consumer_id] = None
        kept.pop(consumer_id, None)
        return dict(list(kept.items())[-_REMEMBERED:])

    def take(self, holder: Subscription, generation: int, since: int, now: float) -> Subscription | None:
        """Give the lease to the new holder; return the previous one, which from here on is not current."""
        self.superseded = self.after_taking(holder.consumer_id, now)
        previous, self.holder = self.holder, holder
        if previous is not None:
            previous.current = False
            if previous.consumer_id != holder.consumer_id:
                self.takeovers = (*self.takeovers, now)[-_TAKEOVERS:]
        self.consumer_id, self.generation, self.since = holder.consumer_id, generation, since
        self.released = False
        self._notify()
        return previous

    def leave(self, holder: Subscription, now: float, *, for_good: bool) -> bool:
        """Let the holder go: `for_good` if it asked to, else its connection ended. Return False if it was not the holder."""
        holder.current = False
        if self.holder is not holder:
            return False
        self.holder = None
        self.dropped_at = -inf if for_good else now
        self.released = for_good
        if for_good:
            self.superseded = {}
        self._notify()
        return True

    def end(self, now: float) -> Subscription | None:
        """End the consumer that holds the channel or was the last to, and fence it; return the holder."""
        holder, self.holder = self.holder, None
        if holder is not None:
            holder.current = False
        ended = {} if self.consumer_id is None else {self.consumer_id: None}
        if holder is not None or self.superseded != ended:  # ending it a second time changes nothing
            self.superseded, self.dropped_at, self.released = ended, now, False
            self._notify()
        return holder

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
