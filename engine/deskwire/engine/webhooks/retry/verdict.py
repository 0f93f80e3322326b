"""The verdict on a finished attempt, for its delivery and for the circuit."""

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
    """Return the retry or end of a delivery whose attempt has finished.

    The result is also reported to the circuit breaker.

    Args:
        plan: the plan of the attempt.
        fraction, succeeded_at: see `Schedule.after_failure`.
        probe: whether the attempt was the circuit breaker's probe.
        quiet_pause_ms: for the probe of a quiet endpoint, the time from its start to the next probe. The
            circuit ignores such probes: one event that the receiver can't process must not stop later events.
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
        if probe or attempt.status is None:  # no other delivery is sent, or this machine lacked a resource
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
    """Return the result of a response with `Retry-After`.

    The circuit never counts such a response. The delivery counts it if it alone was refused.
    """
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
