"""The slots for attempts to one endpoint, which bound how many are under way; no waiting, no I/O (ADR 6).

An attempt begins in one of the few *prompt* slots. One that has had no response for a second moves to a *waiting* slot, of
which there are more, as long as one is free: attempts that hang do not hold up those that would be answered at once.
"""

from __future__ import annotations

from typing import Final

PROMPT_TIMEOUT_S: Final = 1.0
"""Seconds after which an attempt counts as waiting: many times what a response takes."""


class AttemptSlots:
    """The attempts under way to one endpoint. All times are Trio's seconds.

    Args:
        prompt: number of attempts that may be under way besides those that wait.
        waiting: number of attempts that may wait.
    """

    def __init__(self, prompt: int, waiting: int) -> None:
        self._prompt = self._room = prompt
        self._most_waiting = waiting
        self._since: dict[int, float] = {}
        self._waiting: set[int] = set()

    @property
    def free(self) -> bool:
        """Return whether an attempt may begin."""
        return len(self._since) < self._room

    @property
    def used(self) -> bool:
        """Return whether any attempt is under way."""
        return bool(self._since or self._waiting)

    def narrow(self, room: int) -> None:
        """Have at most `room` of the prompt slots used from now on; see `Breaker.room`."""
        self._room = min(room, self._prompt)

    def begin(self, position: int, at: float) -> None:
        """Give a slot to the delivery's attempt; `end` must follow."""
        self._since[position] = at

    def end(self, position: int) -> None:
        """Take the slot back."""
        if self._since.pop(position, None) is None:
            self._waiting.discard(position)

    def relieve(self, at: float) -> None:
        """Move attempts that have been under way for too long at `at` to waiting slots."""
        while (relief_at := self.relief_at()) is not None and relief_at <= at:
            position = next(iter(self._since))
            del self._since[position]
            self._waiting.add(position)

    def relief_at(self) -> float | None:
        """Return the time at which the next attempt may be moved; None if none can be."""
        if not self._since or len(self._waiting) >= self._most_waiting:
            return None
        return next(iter(self._since.values())) + PROMPT_TIMEOUT_S  # they are in the order of their begin


INITIAL_RATE_PER_S: Final = 200.0
"""Rate at the begin, and the step in which it grows after a failure."""

_STEP_INTERVAL_S: Final = 0.25
"""Time at the present rate whose attempts have to succeed before it grows; it is halved once in that time at most."""

_IDLE_TIMEOUT_S: Final = 10.0
"""Time without an attempt after which it begins anew."""

_BURST_S: Final = 0.1
"""Unused time that may be made up for after a busy moment."""


class BacklogRate:
    """The rate of one endpoint's backlog. All times are Trio's seconds.

    Args:
        most_per_s: attempts that begin in a second at most.

    Attributes:
        next_at: the time at which the next attempt may begin.
        rate_per_s: attempts that may begin in a second now.
    """

    def __init__(self, most_per_s: float) -> None:
        self.next_at = 0.0
        self._most_per_s = most_per_s
        self._began_at = 0.0
        self.reset()

    def reset(self) -> None:
        """Take note that nothing is known of the receiver."""
        self.rate_per_s = min(INITIAL_RATE_PER_S, self._most_per_s)
        self._succeeded = 0
        self._failed_at: float | None = None

    def begin(self, at: float) -> None:
        """Take note of an attempt that begins at `at`."""
        if at > self._began_at + _IDLE_TIMEOUT_S:
            self.reset()
        self._began_at = at
        self.next_at = max(self.next_at, at - _BURST_S) + 1 / self.rate_per_s

    def succeeded(self) -> None:
        """Take note of an attempt that has succeeded."""
        self._succeeded += 1
        if self._succeeded >= self.rate_per_s * _STEP_INTERVAL_S:
            self._succeeded = 0
            more = self.rate_per_s if self._failed_at is None else INITIAL_RATE_PER_S
            self.rate_per_s = min(self.rate_per_s + more, self._most_per_s)

    def failed(self, at: float) -> None:
        """Take note of an attempt that failed at `at`; of those that were under way together, one counts."""
        self._succeeded = 0
        if self._failed_at is None or at >= self._failed_at + _STEP_INTERVAL_S:
            self._failed_at = at
            self.rate_per_s = max(self.rate_per_s / 2, min(INITIAL_RATE_PER_S, self._most_per_s))
