"""When a delivery is tried again, and when it ends; pure, over what is stored (contract 6.4.2).

A failed attempt is followed by the next one some seconds after it ended, as long as there is a pause left
in the schedule; then the delivery is dropped. No attempt begins after the delivery's window, whether it
waited for a restart or in its endpoint's queue (contract 6.4.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Retry:
    """The next attempt may start at `due_at`, in milliseconds since the epoch."""

    due_at: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more is sent; `reason` says in words why a delivery was dropped."""

    status: Literal["delivered", "dropped"]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often and how long a delivery is tried.

    Args:
        retry_after_s: the pause after each failed attempt but the last.
        jitter: share of a pause by which it varies, up and down, 0 to 1.
        window_s: age of a delivery after which no attempt begins.
    """

    retry_after_s: tuple[float, ...]
    jitter: float
    window_s: float

    def after_attempt(self, attempts: int, error: str | None, now: int, fraction: float) -> Retry | Ended:
        """What follows from an attempt that has just ended.

        Args:
            attempts: how many were made, this one included.
            error: what was wrong with it, None for a 2xx answer.
            now: when it ended, in milliseconds since the epoch.
            fraction: where in the jitter's range the pause lies, 0 (shortest) to 1 (longest).
        """
        if error is None:
            return Ended("delivered")
        if attempts > len(self.retry_after_s):
            return Ended("dropped", f"{attempts} attempts failed; the last: {error}")
        pause_s = self.retry_after_s[attempts - 1] * (1 + self.jitter * (2 * fraction - 1))
        return Retry(now + round(pause_s * 1000))

    def too_late(self, created_at: int, now: int) -> Ended | None:
        """The end of a delivery whose window has passed, None if it may still be sent.

        Args:
            created_at, now: milliseconds since the epoch.
        """
        if now - created_at <= self.window_s * 1000:
            return None
        return Ended("dropped", f"it was still pending {self.window_s:g} s after its event")
