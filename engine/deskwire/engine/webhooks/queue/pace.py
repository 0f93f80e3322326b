"""The rate at which a backlog goes to its receiver; no waiting, no I/O (ADR 10).

It begins slowly, as a receiver that has just come back may start cold, and doubles as long as every attempt succeeds. A failure
halves it, and from then on it grows in small steps alone, as TCP does in the face of congestion (RFC 5681, 3.1).
"""

from __future__ import annotations

from typing import Final

FIRST_PER_S: Final = 200.0
"""Rate at the begin, and the step in which it grows after a failure."""

_STEP_S: Final = 0.25
"""Time at the present rate whose attempts have to succeed before it grows; it is halved once in that time at most."""

_REST_S: Final = 10.0
"""Time without an attempt after which it begins anew."""

_BURST_S: Final = 0.1
"""Unused time that may be made up for after a busy moment."""


class Pace:
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
        self.begin_anew()

    def begin_anew(self) -> None:
        """Take note that nothing is known of the receiver."""
        self.rate_per_s = min(FIRST_PER_S, self._most_per_s)
        self._succeeded = 0
        self._failed_at: float | None = None

    def begin(self, at: float) -> None:
        """Take note of an attempt that begins at `at`."""
        if at > self._began_at + _REST_S:
            self.begin_anew()
        self._began_at = at
        self.next_at = max(self.next_at, at - _BURST_S) + 1 / self.rate_per_s

    def succeeded(self) -> None:
        """Take note of an attempt that has succeeded."""
        self._succeeded += 1
        if self._succeeded >= self.rate_per_s * _STEP_S:
            self._succeeded = 0
            more = self.rate_per_s if self._failed_at is None else FIRST_PER_S
            self.rate_per_s = min(self.rate_per_s + more, self._most_per_s)

    def failed(self, at: float) -> None:
        """Take note of an attempt that failed at `at`; of those that were under way together, one counts."""
        self._succeeded = 0
        if self._failed_at is None or at >= self._failed_at + _STEP_S:
            self._failed_at = at
            self.rate_per_s = max(self.rate_per_s / 2, min(FIRST_PER_S, self._most_per_s))
