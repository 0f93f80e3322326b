"""The schedule of a delivery's attempts, and its end; pure, over stored times (contract 6.4.2, ADR 6).

The attempts of a delivery are planned from its first one. None begins before the one before it has ended, so a receiver
that lets each time run out moves them together, not apart. When an attempt could not begin at its time, as the receiver
had asked for a pause or the circuit was open, the rest of the plan moves with it.

A delivery that is older than the horizon is not sent any more, whatever it has waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

from msgspec import Struct

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.retry.circuit_breaker import PAUSE_MAX_MS

if TYPE_CHECKING:
    from deskwire.engine.webhooks.delivery import Attempt

DEFAULT_RETRY_DELAYS_S: Final = (2.0, 6.0, 12.0)
"""Seconds from each attempt's planned start to the next one's (contract 6.4.2, decisions 6)."""

_PAUSE_MIN_MS: Final = 1_000
"""Pause after a `Retry-After: 0`, which asks for none: such a response uses up no attempt."""


class AttemptPlan(Protocol):
    """The times of a delivery's attempts, be it a row (`delivery.Delivery`) or in memory alone."""

    @property
    def attempts(self) -> int:
        """The number of attempts that were made."""

    @property
    def due_at(self) -> int:
        """The time at which the next attempt is due, in milliseconds since the epoch."""

    @property
    def planned_from(self) -> int | None:
        """The time from which its attempts are planned (ms), None before the first one has ended."""

    @property
    def failing_since(self) -> int | None:
        """The time at which its first attempt had failed (ms), None if none has."""


class AttemptedDelivery(AttemptPlan, Protocol):
    """A delivery of which an attempt has ended, be it a row (`delivery.Delivery`) or in memory alone."""

    @property
    def id(self) -> str:
        """The `dlv_` id, the same over all attempts."""

    @property
    def ordering_key(self) -> int | None:
        """The conversation whose order it keeps, None for none."""

    @property
    def refusals(self) -> int:
        """The number of refusals with `Retry-After`; see `pressure.Answer`."""


_S = TypeVar("_S", bound=AttemptedDelivery)


class Retry(Struct, frozen=True):
    """The plan for a delivery's next attempt.

    Args:
        repeats: whether the last attempt does not count, so that the next one has its number.
        refusals: the number of refusals with `Retry-After` from now on; None if it stays.
        waits_alone: whether it waits by itself, and holds up nothing, as the endpoint is not paused.
    """

    due_at: int
    planned_from: int
    failing_since: int | None
    repeats: bool = False
    refusals: int | None = None
    waits_alone: bool = False

    @property
    def blocks_conversation(self) -> bool:
        """True if the next delivery of its conversation goes on waiting for it."""
        return self.repeats and not self.waits_alone

    def applied_to(self, delivery: _S) -> _S:
        """Return a delivery (a Struct) with its next attempt planned."""
        return replace(  # type: ignore[type-var]  # a Struct, whichever it is
            delivery,
            attempts=delivery.attempts + (not self.repeats),
            due_at=self.due_at,
            planned_from=self.planned_from,
            failing_since=self.failing_since,
            refusals=delivery.refusals if self.refusals is None else self.refusals,
        )


class DeliveryEnd(Struct, frozen=True):
    """The end of a delivery.

    Args:
        reason: the reason for which it was dropped or skipped, in words.
        missed: whether an outage of the receiver made it use up its attempts.
    """

    status: Literal["delivered", "dropped", "skipped"]
    reason: str | None = None
    missed: bool = False


class Schedule(Struct, frozen=True):
    """The rules for a delivery's attempts.

    Args:
        retry_delays_s: seconds from each attempt's planned start to the next one's; one attempt more than delays.
        jitter: share of the time since the first attempt by which a retry varies, up and down, 0 to 1.
        horizon_s: age of a delivery after which no attempt begins.
    """

    retry_delays_s: tuple[float, ...]
    jitter: float
    horizon_s: float

    def after_failure(
        self, attempt: Attempt, plan: AttemptPlan, fraction: float, succeeded_at: int | None
    ) -> Retry | DeliveryEnd:
        """Return what follows from an attempt that has just failed.

        A delivery that has used up its attempts was missed, in an outage, if no attempt to the endpoint that began after
        the delivery's first failure had succeeded when its last attempt began.

        Args:
            fraction: place of the next start in the jitter's range, 0 (soonest) to 1 (latest).
            succeeded_at: begin (ms) of the endpoint's last successful attempt, as known when this one began.
        """
        ended_at = attempt.at + attempt.latency_ms
        failing_since = ended_at if plan.failing_since is None else plan.failing_since
        if attempt.number > len(self.retry_delays_s):
            return _used_up(attempt, missed=succeeded_at is None or succeeded_at <= failing_since)
        began = attempt.at if plan.planned_from is None else plan.planned_from + _late(plan, attempt.at)
        after_s = sum(self.retry_delays_s[: attempt.number]) * (1 + self.jitter * (2 * fraction - 1))
        return Retry(max(ended_at, began + round(after_s * 1000)), began, failing_since)

    def after_pause_asked(self, attempt: Attempt, plan: AttemptPlan, fraction: float = 0.0) -> Retry:
        """Plan an attempt once more that was answered with `Retry-After`.

        Args:
            fraction: how much of the jitter its wait is longer by, 0 to 1.
        """
        wait_ms = round(pause_asked_ms(attempt) * (1 + self.jitter * fraction))
        return _again(plan, attempt.at + attempt.latency_ms + wait_ms)

    def after_refusal(
        self, attempt: Attempt, plan: AttemptPlan, fraction: float, succeeded_at: int | None
    ) -> Retry | DeliveryEnd:
        """Return what follows from a `Retry-After` that concerns this delivery alone; see `after_failure`.

        The next attempt is not made before the receiver wants it, but no wait is longer than all attempts take without one.
        """
        follows = self.after_failure(attempt, plan, fraction, succeeded_at)
        if isinstance(follows, DeliveryEnd):
            return follows
        wait_ms = min(pause_asked_ms(attempt), round(sum(self.retry_delays_s) * 1000))
        return replace(follows, due_at=max(follows.due_at, attempt.at + attempt.latency_ms + wait_ms))

    def after_quiet_probe(
        self, attempt: Attempt, plan: AttemptPlan, fraction: float, succeeded_at: int | None, pause_ms: int
    ) -> Retry | DeliveryEnd:
        """Return what follows from a failed probe of a quiet endpoint; see `after_failure`. No attempt is made in the pause after it."""
        follows = self.after_failure(attempt, plan, fraction, succeeded_at)
        if isinstance(follows, DeliveryEnd):
            return follows
        asked_ms = 0 if attempt.wait_ms is None else pause_asked_ms(attempt)
        after_ms = max(pause_ms, attempt.latency_ms + asked_ms)
        return replace(follows, due_at=max(follows.due_at, attempt.at + after_ms))

    def after_probe(self, attempt: Attempt, plan: AttemptPlan) -> Retry:
        """Plan a delivery's next attempt after a probe that failed, which uses up no attempt."""
        return _again(plan, attempt.at + attempt.latency_ms)

    def too_late(self, created_at: int, now: int) -> DeliveryEnd | None:
        """Return the end of a delivery that is older than the horizon, None if it may still be sent.

        Args:
            created_at, now: milliseconds since the epoch.
        """
        return DeliveryEnd("skipped", self.too_late_reason()) if created_at < self.horizon(now) else None

    def horizon(self, now: int) -> int:
        """Return the time (ms) before which no delivery was made that is still sent at `now`."""
        return now - round(self.horizon_s * 1000)

    def too_late_reason(self) -> str:
        """Return the reason for which a delivery older than the horizon ends."""
        return f"it was still pending {self.horizon_s:g} s after it was made"

    @property
    def ahead_max_ms(self) -> int:
        """The longest time from an attempt's end to the next one's planned start, in milliseconds."""
        return round(sum(self.retry_delays_s) * (1 + self.jitter) * 1000) + PAUSE_MAX_MS


def pause_asked_ms(attempt: Attempt) -> int:
    """Return the pause that the response to an attempt asks for, within bounds."""
    return min(max(attempt.wait_ms or 0, _PAUSE_MIN_MS), PAUSE_MAX_MS)


def _used_up(attempt: Attempt, *, missed: bool) -> DeliveryEnd:
    return DeliveryEnd("dropped", f"{attempt.number} attempts failed; the last: {attempt.error}", missed)


def _again(plan: AttemptPlan, due_at: int) -> Retry:
    """Return the same attempt at `due_at`, with the rest of the plan moved as far."""
    began = due_at if plan.planned_from is None else plan.planned_from + _late(plan, due_at)
    return Retry(due_at, began, plan.failing_since, repeats=True)


def _late(plan: AttemptPlan, at: int) -> int:
    return max(0, at - plan.due_at)
