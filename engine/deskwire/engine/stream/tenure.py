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

_REMEMBERED: Final = 100
"""Superseded ids of one channel: more than can be alive at once, and few enough for one row."""
_TAKEOVERS: Final = 10
"""Takeovers from a connected holder that a channel sees within the time below (Pusher protocol, takeover)."""
_TAKEOVERS_S: Final = 60.0


class Tenure:
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

    def crowded_until(self, consumer_id: str) -> float:
        """Return until when this consumer may not take the channel from its holder, as that happened too often.

        It is -inf if there is no such time.
        """
        if not self.held or self.consumer_id == consumer_id:
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

    def after_takeover(self, consumer_id: str, now: float) -> tuple[float, ...]:
        """Return the times of takeovers as they will be once `consumer_id` holds the channel."""
        disturbed = self.held and self.consumer_id != consumer_id
        return (*self.takeovers, now)[-_TAKEOVERS:] if disturbed else self.takeovers

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

    def expel(self, now: float) -> bool:
        """End the consumer that holds the channel or was the last to, and fence it.

        Return False if that changes nothing, as it is so already.
        """
        ended = {} if self.consumer_id is None else {self.consumer_id: None}
        if not self.held and self.superseded == ended:
            return False
        self.held, self.superseded, self.dropped_at, self.released = False, ended, now, False
        return True
