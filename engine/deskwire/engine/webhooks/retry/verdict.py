"""The verdict on an attempt: what becomes of its delivery."""

from __future__ import annotations

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import (
    AttemptedDelivery,
    DeliveryEnd,
    Retry,
    Schedule,
    pause_asked_ms,
)


def verdict(
    attempt: Attempt,
    plan: AttemptedDelivery,
    schedule: Schedule,
    breaker: CircuitBreaker,
    *,
    fraction: float,
    succeeded_at: int | None,
    probe: bool,
    quiet_pause_ms: int | None = None,
) -> Retry | DeliveryEnd:
    """Tell the breaker of an attempt that has ended, and return what becomes of its delivery.

    Args:
        plan: the plan that the attempt was made by.
        fraction, succeeded_at: see `Schedule.after_failure`.
        probe: whether it was the breaker's probe.
        quiet_pause_ms: if it was the probe of a quiet endpoint, the time from its begin to the next one's; the circuit does not count
            it, because an event that can't be taken must not stop those that come later.
    """
    ended_at = attempt.at + attempt.latency_ms
    if attempt.error is None:
        breaker.succeeded(began=attempt.at, ended=ended_at)
        if breaker.pressure.succeeded(plan.id, _key(plan), plan.refusals, began=attempt.at, ended=ended_at):
            breaker.end_pause()
        return DeliveryEnd("delivered")
    if quiet_pause_ms is not None and (attempt.status is not None or attempt.wait_ms is None):
        return schedule.after_quiet_probe(attempt, plan, fraction, succeeded_at, quiet_pause_ms)
    if attempt.wait_ms is not None:
        if (
            probe or attempt.status is None
        ):  # nothing else is sent, or it is this machine that lacked something
            repeated = schedule.after_pause_asked(attempt, plan)
            breaker.pause(repeated.due_at)
            return repeated
        return _refused(attempt, plan, schedule, breaker, fraction, succeeded_at)
    breaker.failed(attempt.error, began=attempt.at, ended=ended_at, probe=probe)
    if probe:
        return schedule.after_probe(attempt, plan)
    follows = schedule.after_failure(attempt, plan, fraction, succeeded_at)
    if isinstance(follows, DeliveryEnd):
        breaker.pressure.forget(plan.id)
    return follows


def _refused(
    attempt: Attempt,
    plan: AttemptedDelivery,
    schedule: Schedule,
    breaker: CircuitBreaker,
    fraction: float,
    succeeded_at: int | None,
) -> Retry | DeliveryEnd:
    """Return what follows from a response with `Retry-After`: the circuit never counts it, the delivery does if it is its own."""
    ended_at, wait_ms = attempt.at + attempt.latency_ms, pause_asked_ms(attempt)
    decision = breaker.pressure.refused(
        plan.id, _key(plan), plan.refusals, began=attempt.at, ended=ended_at, wait_ms=wait_ms
    )
    if decision.pause_ms:
        breaker.pause(ended_at + decision.pause_ms)
    if not decision.counts:
        repeated = schedule.after_pause_asked(attempt, plan, fraction if decision.alone else 0.0)
        return replace(repeated, refusals=decision.refusals, waits_alone=decision.alone)
    follows = schedule.after_refusal(attempt, plan, fraction, succeeded_at)
    if isinstance(follows, DeliveryEnd):
        breaker.pressure.forget(plan.id)
        return replace(follows, missed=follows.missed and not decision.proven)
    return replace(follows, refusals=decision.refusals)


def _key(plan: AttemptedDelivery) -> int | str:
    return plan.id if plan.ordering_key is None else plan.ordering_key
