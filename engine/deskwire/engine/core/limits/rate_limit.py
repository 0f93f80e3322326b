"""Rate limits by token buckets that refill at a steady pace (GCRA, ITU-T I.371).

A bucket is stored as one number, the time at which it will be full. Taking a token moves this time forward, unless that
would put it too far ahead of the clock. Times are whole nanoseconds, so that no rounding errors accumulate.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

_SECOND_NS: Final = 1_000_000_000

BUCKETS_MAX: Final = 20_000
"""Number of buckets, about 4 MB, above which full ones are evicted. A full bucket needs no entry."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A rate limit: up to `burst` tokens at once, and `per_minute` tokens on average.

    Both are at least 1.

    Args:
        minutes: the period in which `per_minute` tokens are refilled, if it is not one minute.

    `step_ns` is the time in nanoseconds in which one token is refilled.
    """

    per_minute: int
    burst: int
    minutes: int = 1
    step_ns: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_ns", -(-60 * self.minutes * _SECOND_NS // self.per_minute))

    def shared(self, nodes: int) -> RateLimit:
        """Return the share of each of `nodes` nodes, rounded up, so that together they allow at least this limit."""
        if nodes == 1:
            return self
        return RateLimit(-(-self.per_minute // nodes), -(-self.burst // nodes), self.minutes)


class Quota(Struct, frozen=True):
    """The state of a bucket at one time.

    Args:
        limit: tokens in a full bucket.
        remaining: tokens left.
        reset_s: seconds until the bucket is full.
        retry_after_s: seconds until the next token if there was none, else 0.
    """

    limit: int
    remaining: int
    reset_s: int
    retry_after_s: int

    def times(self, nodes: int, whole: RateLimit) -> Quota:
        """Return the quota of all nodes, estimated from this share of one of `nodes` nodes."""
        remaining = min(whole.burst, self.remaining * nodes)
        return Quota(whole.burst, remaining, self.reset_s, self.retry_after_s)


def quota(rate: RateLimit, full_at_ns: int, now_ns: int) -> Quota:
    """Return the state of a bucket that will be full at `full_at_ns`."""
    missing_ns, step_ns = max(0, full_at_ns - now_ns), rate.step_ns
    remaining = max(0, rate.burst - -(-missing_ns // step_ns))
    wait_ns = 0 if remaining else missing_ns - (rate.burst - 1) * step_ns
    return Quota(rate.burst, remaining, -(-missing_ns // _SECOND_NS), -(-wait_ns // _SECOND_NS))


def take(rate: RateLimit, full_at_ns: int, now_ns: int, count: int = 1) -> int | None:
    """Take `count` tokens.

    Return the time at which the bucket will be full, None if it has fewer tokens.
    """
    step_ns = rate.step_ns
    after = max(full_at_ns, now_ns) + count * step_ns
    return after if after - now_ns <= rate.burst * step_ns else None


def taken(rate: RateLimit, full_at_ns: int, now_ns: int) -> Quota:
    """Return the state of a bucket from which a token was just taken."""
    missing_ns = full_at_ns - now_ns
    return Quota(rate.burst, rate.burst - -(-missing_ns // rate.step_ns), -(-missing_ns // _SECOND_NS), 0)


def nanoseconds(now_s: float) -> int:
    """Convert seconds to whole nanoseconds."""
    return int(now_s * _SECOND_NS)


class Buckets:
    """Exact buckets by key, for authenticated callers, whose number is limited.

    For other clients use `Sketch`.

    A bucket is evicted only when it is full, so a caller cannot get a new one by creating many others.

    Args:
        rate: limit of each bucket, None for no limit.
    """

    def __init__(self, rate: RateLimit | None) -> None:
        self.refused = 0
        self._whole = self._rate = rate
        self._nodes = 1
        self._full_at: dict[Hashable, int] = {}
        self._room = BUCKETS_MAX

    def take(self, who: Hashable, now_s: float) -> Quota | None:
        """Take a token for `who` and return the state.

        `retry_after_s` above 0 means refused. None if there is no limit.
        """
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
        """Return a token that `who` has taken but not used."""
        if self._rate is not None and who in self._full_at:
            self._full_at[who] -= self._rate.step_ns

    def peek(self, who: Hashable, now_s: float) -> Quota | None:
        """Return the state for `who` without taking a token. None if there is no limit."""
        if self._rate is None:
            return None
        return self._of_all(quota(self._rate, self._full_at.get(who, 0), nanoseconds(now_s)))

    def share(self, nodes: int) -> None:
        """Limit this node to its share of `nodes` nodes.

        Returned quotas are still for all nodes together.
        """
        if self._whole is not None:
            self._nodes, self._rate = nodes, self._whole.shared(nodes)

    def __len__(self) -> int:
        """Return the number of stored buckets."""
        return len(self._full_at)

    def _of_all(self, left: Quota) -> Quota:
        return left if self._nodes == 1 or self._whole is None else left.times(self._nodes, self._whole)

    def _drop_the_full(self, now: int) -> None:
        self._full_at = {who: full_at for who, full_at in self._full_at.items() if full_at > now}
        self._room = max(BUCKETS_MAX, 2 * len(self._full_at))  # so that eviction runs rarely
