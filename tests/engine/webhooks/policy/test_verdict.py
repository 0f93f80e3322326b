"""The verdict on an attempt, for its delivery and the circuit.

Source: contract 6.4, decisions 6.
"""

from __future__ import annotations

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.retry.back_pressure import BackPressure, RefusalDecision
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, Circuit, CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import DEFAULT_RETRY_DELAYS_S, DeliveryEnd, Retry, Schedule
from deskwire.engine.webhooks.retry.verdict import verdict
from tests.support.sockets.receivers import delivery

NOW = 1_790_000_000_000
SCHEDULE = Schedule(DEFAULT_RETRY_DELAYS_S, 0.2, 86_400.0)
HALF_OPEN = Circuit(20, NOW - 60_000, 3, NOW, "why")
GOOD = Attempt(1, NOW, 100, 204, None, b"")
FAILED = Attempt(1, NOW, 100, 500, "status 500", b"")
BUSY = Attempt(1, NOW, 100, 503, "status 503", b"", wait_ms=30_000)


def judged(attempt: Attempt, breaker: CircuitBreaker, *, probe: bool = False) -> Retry | DeliveryEnd:
    plan = delivery(1, due_at=NOW)
    return verdict(attempt, plan, SCHEDULE, breaker, fraction=0.5, succeeded_at=None, probe=probe)


def test_a_2xx_of_any_attempt_delivers_and_closes_the_circuit() -> None:
    for number, probe in ((1, True), (4, False)):
        breaker = CircuitBreaker(HALF_OPEN)
        assert judged(replace(GOOD, number=number), breaker, probe=probe) == DeliveryEnd("delivered")
        assert (breaker.circuit, breaker.succeeded_at) == (CLOSED, NOW)


def test_a_failure_counts_and_uses_up_an_attempt() -> None:
    breaker = CircuitBreaker(CLOSED)
    assert judged(FAILED, breaker) == Retry(NOW + 2_000, NOW, NOW + 100)
    assert breaker.circuit == Circuit(1, NOW + 100)


def test_a_failed_probe_uses_up_no_attempt_not_even_the_last() -> None:
    for number in (1, 4):
        breaker = CircuitBreaker(HALF_OPEN)
        follows = judged(replace(FAILED, number=number), breaker, probe=True)
        assert isinstance(follows, Retry)
        assert (follows.repeats, follows.failing_since) == (True, None)
        assert breaker.circuit == replace(
            HALF_OPEN, probes=4, probe_at=NOW + 10_000, reason="the probe failed: status 500"
        )


def test_answer_that_asks_for_a_pause_pauses_the_endpoint_uncounted() -> None:
    for circuit in (CLOSED, HALF_OPEN, Circuit(19, NOW - 60_000)):
        for number in (1, 4):
            breaker = CircuitBreaker(circuit)
            probe = circuit is HALF_OPEN
            follows = judged(replace(BUSY, number=number), breaker, probe=probe)
            refusals = None if probe else 1
            assert follows == Retry(NOW + 30_100, NOW + 30_100, None, repeats=True, refusals=refusals)
            assert breaker.circuit == replace(circuit, paused_until=NOW + 30_100)
            assert breaker.gate(NOW + 30_099) == "hold"


def answered(breaker: CircuitBreaker, number: int, attempt: Attempt) -> None:
    plan = delivery(number, number, due_at=NOW)
    verdict(attempt, plan, SCHEDULE, breaker, fraction=0.5, succeeded_at=None, probe=False)


def limited() -> CircuitBreaker:
    """Return the circuit breaker of a receiver with a rate limit.

    The receiver refused all deliveries after a success.
    """
    breaker = CircuitBreaker(CLOSED)
    answered(breaker, 100, GOOD)
    for number in range(1, 41):
        answered(breaker, number, replace(BUSY, at=NOW + 100 * number))
    assert breaker.circuit.paused(NOW + 4_000)
    return breaker


def test_one_attempt_begins_after_a_rate_limit_and_each_success_adds_another() -> None:
    breaker = limited()
    assert breaker.room == 1
    opens_at = breaker.opens_at(NOW + 4_000)
    assert opens_at is not None
    answered(breaker, 101, replace(GOOD, at=NOW + 3_000))
    assert breaker.room == 1  # started before the end of the pause
    for room, after_ms in ((2, 0), (3, 100), (4, 200)):
        answered(breaker, 101, replace(GOOD, at=opens_at + after_ms))
        assert breaker.room == room
    answered(breaker, 1, replace(FAILED, at=opens_at + 300))
    assert breaker.room == 4


def test_a_pause_without_a_rate_limit_does_not_narrow_the_room() -> None:
    breaker = CircuitBreaker(CLOSED)
    answered(breaker, 1, BUSY)
    assert breaker.circuit.paused(NOW + 1_000)
    assert breaker.room == CircuitBreaker(CLOSED).room > 100


class Refusing(BackPressure):
    """Back-pressure with a fixed decision for each refusal; it records the calls."""

    def __init__(self, answer: RefusalDecision) -> None:
        super().__init__()
        self.answer = answer
        self.keys: list[int | str] = []
        self.forgotten: list[str] = []

    def refused(self, delivery_id: str, key: int | str, refusals: int, **_: int) -> RefusalDecision:
        self.keys.append(key)
        return self.answer

    def forget(self, delivery_id: str) -> None:
        self.forgotten.append(delivery_id)


def refusing(answer: RefusalDecision) -> tuple[CircuitBreaker, Refusing]:
    breaker = CircuitBreaker(CLOSED)
    breaker.pressure = pressure = Refusing(answer)
    return breaker, pressure


def test_a_success_concurrent_with_the_pausing_refusal_ends_the_pause() -> None:
    breaker = CircuitBreaker(CLOSED)
    answered(breaker, 1, BUSY)
    assert breaker.gate(NOW + 200) == "hold"
    answered(breaker, 2, replace(GOOD, at=NOW + 50))
    assert (breaker.circuit.paused_until, breaker.gate(NOW + 200)) == (None, "go")


def test_end_of_a_pause_releases_all_places() -> None:
    breaker = limited()
    breaker.end_pause()
    assert (breaker.circuit.paused_until, breaker.room) == (None, CircuitBreaker(CLOSED).room)


def quiet(attempt: Attempt, breaker: CircuitBreaker) -> Retry | DeliveryEnd:
    plan = delivery(1, due_at=NOW)
    return verdict(
        attempt, plan, SCHEDULE, breaker, fraction=0.5, succeeded_at=None, probe=False, quiet_pause_ms=50_000
    )


def test_failed_probe_of_a_quiet_endpoint_does_not_count_for_its_circuit() -> None:
    timeout = replace(FAILED, status=None, error="timeout")
    for attempt in (FAILED, BUSY, timeout):
        breaker = CircuitBreaker(CLOSED)
        assert quiet(attempt, breaker) == Retry(NOW + 50_000, NOW, NOW + 100)
        assert breaker.circuit == CLOSED


def test_probe_of_a_quiet_endpoint_that_failed_locally_is_repeated() -> None:
    breaker, lacking = CircuitBreaker(CLOSED), replace(BUSY, status=None, error="no free descriptor")
    assert quiet(lacking, breaker) == Retry(NOW + 30_100, NOW + 30_100, None, repeats=True)
    assert breaker.circuit.paused_until == NOW + 30_100


def test_a_refusal_that_counts_uses_up_an_attempt_and_keeps_its_refusals() -> None:
    breaker, pressure = refusing(RefusalDecision(3, True, 0, alone=True))
    assert judged(BUSY, breaker) == Retry(NOW + 20_100, NOW, NOW + 100, refusals=3)
    assert pressure.forgotten == []


def test_a_finally_refused_delivery_is_missed_unless_others_succeeded() -> None:
    for proven in (False, True):
        breaker, pressure = refusing(RefusalDecision(3, True, 0, proven=proven, alone=True))
        ended = judged(replace(BUSY, number=4), breaker)
        assert ended == DeliveryEnd("dropped", "4 attempts failed; the last: status 503", missed=not proven)
        assert pressure.forgotten == [delivery(1).id]
    breaker, pressure = refusing(RefusalDecision(3, True, 0, alone=True))
    plan = delivery(1, due_at=NOW)
    ended = verdict(
        replace(BUSY, number=4), plan, SCHEDULE, breaker, fraction=0.5, succeeded_at=NOW + 200, probe=False
    )
    assert ended == DeliveryEnd("dropped", "4 attempts failed; the last: status 503", missed=False)


def test_back_pressure_forgets_a_delivery_after_the_failure_of_its_last_attempt() -> None:
    for number, forgotten in ((1, []), (4, [delivery(1).id])):
        breaker, pressure = refusing(RefusalDecision(1, False, 0))
        judged(replace(FAILED, number=number), breaker)
        assert pressure.forgotten == forgotten


def test_back_pressure_knows_a_delivery_by_its_conversation_or_its_own_id() -> None:
    breaker, pressure = refusing(RefusalDecision(1, False, 0))
    for plan in (delivery(1, 7), delivery(2, None)):
        verdict(BUSY, plan, SCHEDULE, breaker, fraction=0.5, succeeded_at=None, probe=False)
    assert pressure.keys == [7, delivery(2).id]
