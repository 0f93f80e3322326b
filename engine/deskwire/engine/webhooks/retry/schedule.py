"""Schedule of a delivery's attempts, without I/O (contract 6.4.2, ADR 6).

All attempts of a delivery are planned from the start of its first attempt. An attempt never starts before the
previous one has ended, so a receiver that always times out pushes its attempts closer together. If an attempt
could not start on time because the receiver had asked for a pause or the circuit was open, the rest of the
plan shifts by the same delay.

A delivery older than the horizon is no longer sent, even if it was held by a circuit or a pause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

from msgspec import Struct

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.retry.circuit_breaker import PAUSE_MAX_MS

if TYPE_CHECKING:
    from deskwire.engine.webhooks.delivery import Attempt

# Seconds from the planned start of each attempt to the next (contract 6.4.2, decisions 6).
DEFAULT_RETRY_DELAYS_S: Final = (2.0, 6.0, 12.0)

# `Retry-After: 0` asks for no pause, but such a response uses up no attempt. Without a minimum, attempts
# would repeat immediately and without limit.
_PAUSE_MIN_MS: Final = 1_000


class AttemptPlan(Protocol):
    """The attempt times of a delivery, stored as a row or kept in memory only."""

    @property
    def attempts(self) -> int:
        """The number of attempts made so far."""

    @property
    def due_at(self) -> int:
        """The time at which the next attempt is due, in milliseconds since the epoch."""

    @property
    def planned_from(self) -> int | None:
        """The time from which attempts are planned (ms), None before the first has ended."""

    @property
    def failing_since(self) -> int | None:
        """The time at which the first attempt failed (ms), None if none has failed."""


class AttemptedDelivery(AttemptPlan, Protocol):
    """A delivery with a finished attempt, stored as a row or kept in memory only."""

    @property
    def id(self) -> str:
        """The `dlv_` id, the same for all attempts."""

    @property
    def ordering_key(self) -> int | None:
        """The conversation whose order it keeps, None for no order."""

    @property
    def refusals(self) -> int:
        """The number of refusals with `Retry-After`; see `RefusalDecision`."""


_S = TypeVar("_S", bound=AttemptedDelivery)


class Retry(Struct, frozen=True):
    """The plan for a delivery's next attempt.

    Args:
        repeats: whether the last attempt does not count, so that the next attempt has the same number.
        refusals: the new number of refusals with `Retry-After`; None to keep the number.
        waits_alone: whether later deliveries of its conversation go ahead of it, because the endpoint is not
            paused.
    """

    due_at: int
    planned_from: int
    failing_since: int | None
    repeats: bool = False
    refusals: int | None = None
    waits_alone: bool = False

    @property
    def blocks_conversation(self) -> bool:
        """True if the next delivery of its conversation keeps waiting for it."""
        return self.repeats and not self.waits_alone

    def applied_to(self, delivery: _S) -> _S:
        """Return the delivery (a Struct) with its next attempt planned."""
        return replace(  # type: ignore[type-var]  # a Struct, whichever it is
            delivery,
            attempts=delivery.attempts + (not self.repeats),
            due_at=self.due_at,
            planned_from=self.planned_from,
            failing_since=self.failing_since,
            refusals=delivery.refusals if self.refusals is None else self.refusals,
        )


class DeliveryEnd(Struct, frozen=True):
    """The final state of a delivery.

    Args:
        reason: why it was dropped or skipped, for the delivery log.
        missed: whether it used up its attempts during an outage of the receiver.
    """

    status: Literal["delivered", "dropped", "skipped"]
    reason: str | None = None
    missed: bool = False


class Schedule(Struct, frozen=True):
    """Rules for a delivery's attempts.

    Args:
        retry_delays_s: seconds from the planned start of each attempt to the next; there is one more attempt
            than delays.
        jitter: maximum relative change of the time since the first attempt, up or down, 0 to 1.
        horizon_s: age of a delivery after which no attempt starts.
    """

    retry_delays_s: tuple[float, ...]
    jitter: float
    horizon_s: float

    def after_failure(
        self, attempt: Attempt, plan: AttemptPlan, fraction: float, succeeded_at: int | None
    ) -> Retry | DeliveryEnd:
        """Return the retry or the end that follows a failed attempt.

        A delivery that has used up its attempts counts as missed in an outage if no attempt at the endpoint
        has succeeded between the delivery's first failure and the start of its last attempt.

        Args:
            fraction: position of the next start in the jitter's range, 0 (earliest) to 1 (latest).
            succeeded_at: start (ms) of the endpoint's last successful attempt, as known when this attempt
                started.
        """
        ended_at = attempt.at + attempt.latency_ms
        failing_since = ended_at if plan.failing_since is None else plan.failing_since
        if attempt.number > len(self.retry_delays_s):
            return _used_up(attempt, missed=succeeded_at is None or succeeded_at <= failing_since)
        began = attempt.at if plan.planned_from is None else plan.planned_from + _late(plan, attempt.at)
        after_s = sum(self.retry_delays_s[: attempt.number]) * (1 + self.jitter * (2 * fraction - 1))
        return Retry(max(ended_at, began + round(after_s * 1000)), began, failing_since)

    def after_pause_asked(self, attempt: Attempt, plan: AttemptPlan, fraction: float = 0.0) -> Retry:
        """Return the retry of an attempt answered with `Retry-After`.

        Args:
            fraction: share of the jitter by which the wait is longer, 0 to 1.
        """
        wait_ms = round(pause_asked_ms(attempt) * (1 + self.jitter * fraction))
        return _again(plan, attempt.at + attempt.latency_ms + wait_ms)

    def after_refusal(
        self, attempt: Attempt, plan: AttemptPlan, fraction: float, succeeded_at: int | None
    ) -> Retry | DeliveryEnd:
        """Return the result of a `Retry-After` that concerns this delivery alone.

        The next attempt waits as long as the receiver asked, but no longer than a whole schedule of attempts
        takes. See `after_failure` for the arguments.
        """
        follows = self.after_failure(attempt, plan, fraction, succeeded_at)
        if isinstance(follows, DeliveryEnd):
            return follows
        wait_ms = min(pause_asked_ms(attempt), round(sum(self.retry_delays_s) * 1000))
        return replace(follows, due_at=max(follows.due_at, attempt.at + attempt.latency_ms + wait_ms))

    def after_quiet_probe(
        self, attempt: Attempt, plan: AttemptPlan, fraction: float, succeeded_at: int | None, pause_ms: int
    ) -> Retry | DeliveryEnd:
        """Return the result of a failed probe of a quiet endpoint.

        The next attempt waits at least `pause_ms`. See `after_failure` for the other arguments.
        """
        follows = self.after_failure(attempt, plan, fraction, succeeded_at)
        if isinstance(follows, DeliveryEnd):
            return follows
        asked_ms = 0 if attempt.wait_ms is None else pause_asked_ms(attempt)
        after_ms = max(pause_ms, attempt.latency_ms + asked_ms)
        return replace(follows, due_at=max(follows.due_at, attempt.at + after_ms))

    def after_probe(self, attempt: Attempt, plan: AttemptPlan) -> Retry:
        """Return the retry after a failed probe of the circuit, which uses up no attempt."""
        return _again(plan, attempt.at + attempt.latency_ms)

    def too_late(self, created_at: int, now: int) -> DeliveryEnd | None:
        """Return the end of a delivery older than the horizon, None for a younger one.

        Args:
            created_at, now: milliseconds since the epoch.
        """
        return DeliveryEnd("skipped", self.too_late_reason()) if created_at < self.horizon(now) else None

    def horizon(self, now: int) -> int:
        """Return the creation time (ms) before which deliveries are too old at `now`."""
        return now - round(self.horizon_s * 1000)

    def too_late_reason(self) -> str:
        """Return the reason for the delivery log of a delivery older than the horizon."""
        return f"it was still pending {self.horizon_s:g} s after it was made"

    @property
    def ahead_max_ms(self) -> int:
        """The longest delay from an attempt's end to the next planned start (ms)."""
        return round(sum(self.retry_delays_s) * (1 + self.jitter) * 1000) + PAUSE_MAX_MS


def pause_asked_ms(attempt: Attempt) -> int:
    """Return the pause that a response asks for, limited to the allowed range."""
    return min(max(attempt.wait_ms or 0, _PAUSE_MIN_MS), PAUSE_MAX_MS)


def _used_up(attempt: Attempt, *, missed: bool) -> DeliveryEnd:
    return DeliveryEnd("dropped", f"{attempt.number} attempts failed; the last: {attempt.error}", missed)


def _again(plan: AttemptPlan, due_at: int) -> Retry:
    """Return a repetition of the attempt at `due_at`, and shift the plan."""
    began = due_at if plan.planned_from is None else plan.planned_from + _late(plan, due_at)
    return Retry(due_at, began, plan.failing_since, repeats=True)


def _late(plan: AttemptPlan, at: int) -> int:
    return max(0, at - plan.due_at)
