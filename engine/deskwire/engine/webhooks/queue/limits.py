"""Limits on one endpoint's attempts; no I/O (ADR 6, ADR 10).

`AttemptSlots` limits concurrent attempts. An attempt starts in one of the few *prompt* slots. After a second
without a response it moves to one of the more numerous *waiting* slots, if one is free, so that hanging
attempts do not block quick ones.

`BacklogRate` limits the rate of the backlog. It starts low, because a receiver that has just recovered may
have cold caches, and doubles while every attempt succeeds. A failure halves the rate, and from then on it
grows in small steps, as TCP congestion avoidance does (RFC 5681, 3.1).
"""

from __future__ import annotations

from typing import Final

# After this time an attempt counts as waiting. A usual response takes much less.
PROMPT_TIMEOUT_S: Final = 1.0


class AttemptSlots:
    """Slots of one endpoint's running attempts. All times are Trio's seconds.

    Args:
        prompt: maximum number of attempts in prompt slots.
        waiting: maximum number of attempts in waiting slots.
    """

    def __init__(self, prompt: int, waiting: int) -> None:
        self._prompt = self._room = prompt
        self._most_waiting = waiting
        self._since: dict[int, float] = {}
        self._waiting: set[int] = set()

    @property
    def free(self) -> bool:
        """True if an attempt may start."""
        return len(self._since) < self._room

    @property
    def used(self) -> bool:
        """True if any attempt is running."""
        return bool(self._since or self._waiting)

    def narrow(self, room: int) -> None:
        """Limit the prompt slots to `room`; see `CircuitBreaker.room`."""
        self._room = min(room, self._prompt)

    def begin(self, position: int, at: float) -> None:
        """Assign a slot to the delivery's attempt; call `end` afterwards."""
        self._since[position] = at

    def end(self, position: int) -> None:
        """Free the slot."""
        if self._since.pop(position, None) is None:
            self._waiting.discard(position)

    def relieve(self, at: float) -> None:
        """Move attempts that have waited long enough at `at` to waiting slots."""
        while (relief_at := self.relief_at()) is not None and relief_at <= at:
            position = next(iter(self._since))
            del self._since[position]
            self._waiting.add(position)

    def relief_at(self) -> float | None:
        """Return when the next attempt can be moved; None if none can be."""
        if not self._since or len(self._waiting) >= self._most_waiting:
            return None
        return next(iter(self._since.values())) + PROMPT_TIMEOUT_S  # in the order of their start


# Initial rate, and the step by which it grows after a failure.
INITIAL_RATE_PER_S: Final = 200.0

# The rate grows after this many seconds' worth of successes, and is halved at most once in this time.
_STEP_INTERVAL_S: Final = 0.25

# After this time without an attempt, the rate is reset.
_IDLE_TIMEOUT_S: Final = 10.0

# Up to this much unused time may be made up for after a delay.
_BURST_S: Final = 0.1


class BacklogRate:
    """Adaptive rate of one endpoint's backlog. All times are Trio's seconds.

    Args:
        most_per_s: maximum attempts per second.

    Attributes:
        next_at: when the next attempt may start.
        rate_per_s: current maximum of attempts per second.
    """

    def __init__(self, most_per_s: float) -> None:
        self.next_at = 0.0
        self._most_per_s = most_per_s
        self._began_at = 0.0
        self.reset()

    def reset(self) -> None:
        """Return to the initial rate."""
        self.rate_per_s = min(INITIAL_RATE_PER_S, self._most_per_s)
        self._succeeded = 0
        self._failed_at: float | None = None

    def begin(self, at: float) -> None:
        """Record an attempt that starts at `at`."""
        if at > self._began_at + _IDLE_TIMEOUT_S:
            self.reset()
        self._began_at = at
        self.next_at = max(self.next_at, at - _BURST_S) + 1 / self.rate_per_s

    def succeeded(self) -> None:
        """Record a successful attempt."""
        self._succeeded += 1
        if self._succeeded >= self.rate_per_s * _STEP_INTERVAL_S:
            self._succeeded = 0
            more = self.rate_per_s if self._failed_at is None else INITIAL_RATE_PER_S
            self.rate_per_s = min(self.rate_per_s + more, self._most_per_s)

    def failed(self, at: float) -> None:
        """Record an attempt that failed at `at`; concurrent failures count once."""
        self._succeeded = 0
        if self._failed_at is None or at >= self._failed_at + _STEP_INTERVAL_S:
            self._failed_at = at
            self.rate_per_s = max(self.rate_per_s / 2, min(INITIAL_RATE_PER_S, self._most_per_s))
