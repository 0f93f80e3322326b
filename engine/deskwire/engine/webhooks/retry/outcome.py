"""What follows from an attempt, for its delivery and for its endpoint's circuit (contract 6.4, ADR 40)."""

from __future__ import annotations

from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.retry.breaker import Breaker
from deskwire.engine.webhooks.retry.schedule import Ended, Plan, Retry, Schedule


def verdict(
    attempt: Attempt,
    plan: Plan,
    schedule: Schedule,
    breaker: Breaker,
    *,
    fraction: float,
    succeeded_at: int | None,
    probe: bool,
) -> Retry | Ended:
    """Tell the breaker of an attempt that has ended; returns what becomes of its delivery.

    Args:
        plan: when it was to be made.
        fraction, succeeded_at: see `Schedule.after_failure`.
        probe: whether it was the breaker's probe.
    """
    ended_at = attempt.at + attempt.latency_ms
    if attempt.error is None:
        breaker.succeeded(began=attempt.at, ended=ended_at)
        return Ended("delivered")
    if attempt.wait_ms is not None:  # the receiver is well: it counts for neither
        repeated = schedule.after_pause_asked(attempt, plan)
        breaker.pause(repeated.due_at)
        return repeated
    breaker.failed(attempt.error, began=attempt.at, ended=ended_at, probe=probe)
    if probe:
        return schedule.after_probe(attempt, plan)
    return schedule.after_failure(attempt, plan, fraction, succeeded_at)
