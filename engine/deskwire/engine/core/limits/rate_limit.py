"""Rate limits: a bucket that refills at a steady pace (GCRA, ITU-T I.371).

A bucket is one number, the time at which it would be full again, so that taking is a comparison. Times are
whole nanoseconds: nothing is lost to rounding, however long a service runs.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

_SECOND_NS: Final = 1_000_000_000

BUCKETS_MAX: Final = 20_000
"""Buckets kept, some 4 MB, before those are dropped that are full again and so as good as none."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A rate: `burst` at once, and on average `per_minute`, at least one.

    Args:
        minutes: the stretch of time that `per_minute` is for, if it is another one.

    `step_ns` is the time in nanoseconds in which one is refilled.
    """

    per_minute: int
    burst: int
    minutes: int = 1
    step_ns: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_ns", -(-60 * self.minutes * _SECOND_NS // self.per_minute))

    def shared(self, nodes: int) -> RateLimit:
        """Return what each of so many nodes allows, so that together they allow this, or less than one more each."""
        if nodes == 1:
            return self
        return RateLimit(-(-self.per_minute // nodes), -(-self.burst // nodes), self.minutes)


class Quota(Struct, frozen=True):
    """The state of a bucket at one look.

    Args:
        limit: what a full bucket holds.
        remaining: what it holds now.
        reset_s: seconds until it is full again.
        retry_after_s: seconds until there is one, if there was none; else 0.
    """

    limit: int
    remaining: int
    reset_s: int
    retry_after_s: int

    def times(self, nodes: int, whole: RateLimit) -> Quota:
        """Return the quota of which this is the share of one of so many nodes."""
        remaining = min(whole.burst, self.remaining * nodes)
        return Quota(whole.burst, remaining, self.reset_s, self.retry_after_s)


def quota(rate: RateLimit, full_at_ns: int, now_ns: int) -> Quota:
    """Return what a bucket holds that is full at `full_at_ns`."""
    missing_ns, step_ns = max(0, full_at_ns - now_ns), rate.step_ns
    remaining = max(0, rate.burst - -(-missing_ns // step_ns))
    wait_ns = 0 if remaining else missing_ns - (rate.burst - 1) * step_ns
    return Quota(rate.burst, remaining, -(-missing_ns // _SECOND_NS), -(-wait_ns // _SECOND_NS))


def take(rate: RateLimit, full_at_ns: int, now_ns: int, count: int = 1) -> int | None:
    """Return when the bucket is full again after so many were taken; None if it held fewer."""
    step_ns = rate.step_ns
    after = max(full_at_ns, now_ns) + count * step_ns
    return after if after - now_ns <= rate.burst * step_ns else None


def taken(rate: RateLimit, full_at_ns: int, now_ns: int) -> Quota:
    """Return what is left in a bucket from which one was just taken."""
    missing_ns = full_at_ns - now_ns
    return Quota(rate.burst, rate.burst - -(-missing_ns // rate.step_ns), -(-missing_ns // _SECOND_NS), 0)


def nanoseconds(now_s: float) -> int:
    """Convert a time in seconds to the nanoseconds that buckets count in."""
    return int(now_s * _SECOND_NS)


class Buckets:
    """A bucket for each of those who share a rate, exact; for callers who are known, and so limited in number.

    A bucket is kept until it is full again: nobody gets a new one by having others made. Whoever may be anybody is
    counted by a `Sketch`.

    Args:
        rate: None for no limit.
    """

    def __init__(self, rate: RateLimit | None) -> None:
        self.refused = 0
        self._whole = self._rate = rate
        self._nodes = 1
        self._full_at: dict[Hashable, int] = {}
        self._room = BUCKETS_MAX

    def take(self, who: Hashable, now_s: float) -> Quota | None:
        """Take one for `who`, and return what is left. With a `retry_after_s` there was none. None if there is no limit."""
        if self._rate is None:
            return None
        now, before = nanoseconds(now_s), self._full_at.get(who, 0)
        after = take(self._rate, before, now)
        if after is None:
            self.refused += 1
            return self._of_all(quota(self._rate, before, now))
        self._full_at[who] = after
        if len(self._full_at) > self._room:
            self._drop_the_full(now)
        return self._of_all(taken(self._rate, after, now))

    def give_back(self, who: Hashable) -> None:
        """Return one that `who` has taken and not used."""
        if self._rate is not None and who in self._full_at:
            self._full_at[who] -= self._rate.step_ns

    def look(self, who: Hashable, now_s: float) -> Quota | None:
        """Return what `who` has left, taking nothing; None if there is no limit."""
        if self._rate is None:
            return None
        return self._of_all(quota(self._rate, self._full_at.get(who, 0), nanoseconds(now_s)))

    def share(self, nodes: int) -> None:
        """Allow from now on what is the part of one of so many nodes. What is left is told for all of them."""
        if self._whole is not None:
            self._nodes, self._rate = nodes, self._whole.shared(nodes)

    def __len__(self) -> int:
        """Return how many buckets are kept."""
        return len(self._full_at)

    def _of_all(self, left: Quota) -> Quota:
        return left if self._nodes == 1 or self._whole is None else left.times(self._nodes, self._whole)

    def _drop_the_full(self, now: int) -> None:
        self._full_at = {who: full_at for who, full_at in self._full_at.items() if full_at > now}
        self._room = max(BUCKETS_MAX, 2 * len(self._full_at))  # so that most takes go over none
