"""When a delivery is tried again, and when it ends; pure, over what is stored (contract 6.4.2, ADR 40).

The attempts of a delivery are planned from its first one. None begins before the one before it has ended, so a receiver
that lets each time run out moves them together, not apart. When an attempt could not begin at its time, as the receiver
had asked for a pause or the circuit was open, the rest of the plan moves with it.

A delivery that is older than the horizon is not sent any more, whatever it has waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.retry.circuit import PAUSE_MAX_MS

_PAUSE_MIN_MS: Final = 1_000
"""What a receiver gets that asks for no pause at all, with `Retry-After: 0`: such answers use up no attempt."""


class Plan(Protocol):
    """When the attempts of a delivery are made, be it a row (`deliveries.Delivery`) or in memory alone."""

    @property
    def due_at(self) -> int:
        """When the attempt was due, in milliseconds since the epoch."""

    @property
    def planned_from(self) -> int | None:
        """From when on the attempts are planned (ms), None before the first one has ended."""

    @property
    def failing_since(self) -> int | None:
        """When the first attempt had failed (ms), None if none has."""


@dataclass(frozen=True, slots=True)
class Retry:
    """What becomes of the `Plan` after an attempt.

    `repeats` says that the attempt used up none: the next one has its number.
    """

    due_at: int
    planned_from: int
    failing_since: int | None
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more is sent; `reason` says in words why a delivery was dropped or skipped.

    `missed` is set if an outage of the receiver made it use up its attempts.
    """

    status: Literal["delivered", "dropped", "skipped"]
    reason: str | None = None
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often and how long a delivery is tried.

    Args:
        retry_after_s: from each attempt's planned start to the next one's.
        jitter: share of the time since the first attempt by which a retry varies, up and down, 0 to 1.
        horizon_s: age of a delivery after which no attempt begins.
    """

    retry_after_s: tuple[float, ...]
    jitter: float
    horizon_s: float

    def after_failure(
        self, attempt: Attempt, plan: Plan, fraction: float, succeeded_at: int | None
    ) -> Retry | Ended:
        """Return what follows from an attempt that has just failed.

        If no attempt of the endpoint that began behind the delivery's first failure had succeeded as its last attempt
        began, it was an outage, and not the event, that made it use up its attempts.

        Args:
            fraction: where in the jitter's range the next start lies, 0 (soonest) to 1 (latest).
            succeeded_at: as this attempt began, when the endpoint's last successful one had begun (ms).
        """
        ended_at = attempt.at + attempt.latency_ms
        failing_since = ended_at if plan.failing_since is None else plan.failing_since
        if attempt.number > len(self.retry_after_s):
            return _used_up(attempt, missed=succeeded_at is None or succeeded_at <= failing_since)
        began = attempt.at if plan.planned_from is None else plan.planned_from + _late(plan, attempt.at)
        after_s = sum(self.retry_after_s[: attempt.number]) * (1 + self.jitter * (2 * fraction - 1))
        return Retry(max(ended_at, began + round(after_s * 1000)), began, failing_since)

    def after_pause_asked(self, attempt: Attempt, plan: Plan) -> Retry:
        """Return when the same attempt is made again that was answered with `Retry-After`."""
        pause_ms = min(max(attempt.wait_ms or 0, _PAUSE_MIN_MS), PAUSE_MAX_MS)
        return _again(plan, attempt.at + attempt.latency_ms + pause_ms)

    def after_probe(self, attempt: Attempt, plan: Plan) -> Retry:
        """Return when a delivery is due again whose attempt was a probe that failed: it keeps its attempts."""
        return _again(plan, attempt.at + attempt.latency_ms)

    def too_late(self, created_at: int, now: int) -> Ended | None:
        """The end of a delivery that is older than the horizon, None if it may still be sent.

        Args:
            created_at, now: milliseconds since the epoch.
        """
        return Ended("skipped", self.too_late_reason()) if created_at < self.horizon(now) else None

    def horizon(self, now: int) -> int:
        """The time (ms) before which nothing was made that is still sent at `now`."""
        return now - round(self.horizon_s * 1000)

    def too_late_reason(self) -> str:
        """Why a delivery ends that is older than the horizon."""
        return f"it was still pending {self.horizon_s:g} s after it was made"

    @property
    def ahead_max_ms(self) -> int:
        """How far ahead of an attempt's end the next one is planned at most, in milliseconds."""
        return round(sum(self.retry_after_s) * (1 + self.jitter) * 1000) + PAUSE_MAX_MS


def _used_up(attempt: Attempt, *, missed: bool) -> Ended:
    return Ended("dropped", f"{attempt.number} attempts failed; the last: {attempt.error}", missed)


def _again(plan: Plan, due_at: int) -> Retry:
    """The same attempt at `due_at`, with what is left of the plan moved as far."""
    began = due_at if plan.planned_from is None else plan.planned_from + _late(plan, due_at)
    return Retry(due_at, began, plan.failing_since, repeats=True)


def _late(plan: Plan, at: int) -> int:
    return max(0, at - plan.due_at)
