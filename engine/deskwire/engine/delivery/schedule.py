"""When a delivery is tried again, and when it ends; pure, over what is stored (contract 6.4.2).

A failed attempt is followed by the next one some seconds after it ended, as long as there is a pause left
in the schedule; then the delivery is dropped. A receiver that asks for a longer pause (`Retry-After`) gets it,
but not beyond the delivery's window: no attempt begins after that, whether it waited for a restart or in its
endpoint's queue (contract 6.4.4). One that answers 410 wants no more at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from deskwire.engine.deliveries import Attempt

_GONE: Final = 410


@dataclass(frozen=True, slots=True)
class Retry:
    """The next attempt may start at `due_at`, in milliseconds since the epoch."""

    due_at: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more is sent; `reason` says in words why a delivery was dropped or skipped.

    `disables` is set if the receiver wants nothing more: its endpoint is to be disabled (decisions 6).
    """

    status: Literal["delivered", "dropped", "skipped"]
    reason: str | None = None
    disables: bool = False


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

    def after_attempt(self, attempt: Attempt, created_at: int, fraction: float) -> Retry | Ended:
        """What follows from an attempt that has just ended.

        Args:
            created_at: when the delivery was made, in milliseconds since the epoch.
            fraction: where in the jitter's range the pause lies, 0 (shortest) to 1 (longest).
        """
        if attempt.error is None:
            return Ended("delivered")
        if attempt.status == _GONE:
            return Ended("dropped", "status 410: the receiver wants no more", disables=True)
        if attempt.number > len(self.retry_after_s):
            return Ended("dropped", f"{attempt.number} attempts failed; the last: {attempt.error}")
        pause_s = self.retry_after_s[attempt.number - 1] * (1 + self.jitter * (2 * fraction - 1))
        ended_at = attempt.at + attempt.latency_ms
        due_at = ended_at + round(pause_s * 1000)
        asked_for = ended_at + (attempt.wait_ms or 0)
        return Retry(max(due_at, min(asked_for, self._last_start(created_at))))

    def too_late(self, created_at: int, now: int) -> Ended | None:
        """The end of a delivery whose window has passed, None if it may still be sent.

        Args:
            created_at, now: milliseconds since the epoch.
        """
        if now <= self._last_start(created_at):
            return None
        return Ended("dropped", f"it was still pending {self.window_s:g} s after its event")

    def _last_start(self, created_at: int) -> int:
        return created_at + round(self.window_s * 1000)
