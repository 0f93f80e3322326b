"""When an endpoint that keeps failing is left alone, and when it is tried again (contract 6.4.3, decisions 6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.delivery.breaker import Breaker
from deskwire.engine.delivery.circuit import CLOSED, OPEN_MS, Circuit

NOW = 1_790_000_000_000


def after(circuit: Circuit, *errors: str | None, exhausted: bool = False, now: int = NOW) -> Circuit:
    """The circuit after attempts with these errors."""
    for error in errors:
        circuit = circuit.after_attempt(error, exhausted=exhausted, now=now)
    return circuit


def test_twenty_failed_attempts_in_a_row_open_it_for_three_minutes() -> None:
    assert after(CLOSED, *["timeout"] * 19).state(NOW) == "closed"
    opened = after(CLOSED, *["timeout"] * 20)
    assert opened.reason == "20 attempts in a row failed; the last: timeout"
    assert opened.state(NOW) == "open"
    assert opened.state(NOW + 179_999) == "open"
    assert opened.state(NOW + 180_000) == "half_open"


def test_five_deliveries_in_a_row_that_are_used_up_open_it() -> None:
    assert after(CLOSED, *["status 500"] * 4, exhausted=True).state(NOW) == "closed"
    opened = after(CLOSED, *["status 500"] * 5, exhausted=True)
    assert (opened.state(NOW), opened.reason) == (
        "open",
        "5 deliveries in a row failed; the last: status 500",
    )


def test_a_delivery_that_is_not_sent_is_told_until_when_and_why() -> None:
    """Decisions 6: what an open circuit skips is logged, so that it can be recovered."""
    opened = after(CLOSED, *["timeout"] * 20)
    assert opened.skip_reason() == (
        "the circuit is open until 2026-09-21T14:16:20.000Z: 20 attempts in a row failed; the last: timeout"
    )


def test_one_success_begins_both_counts_anew() -> None:
    circuit = after(CLOSED, *["timeout"] * 19, None, *["timeout"] * 19)
    assert circuit.state(NOW) == "closed"
    assert after(after(CLOSED, *["x"] * 4, exhausted=True), None) == CLOSED


def test_a_failed_probe_opens_it_again_and_a_good_one_closes_it() -> None:
    opened = after(CLOSED, *["timeout"] * 20)
    later = NOW + OPEN_MS
    again = after(opened, "connection refused", now=later)
    assert (again.state(later), again.state(later + OPEN_MS)) == ("open", "half_open")
    assert again.reason == "the probe failed: connection refused"
    assert after(opened, None, now=later) == CLOSED


def test_attempts_that_had_begun_before_it_opened_change_nothing_when_they_fail() -> None:
    opened = after(CLOSED, *["timeout"] * 20)
    assert after(opened, *["timeout"] * 16, now=NOW + 5_000) == opened
    assert after(opened, None, now=NOW + 5_000) == CLOSED


def test_it_is_not_open_longer_for_a_clock_that_is_set_back() -> None:
    circuit = after(CLOSED, *["refused"] * 20)
    assert circuit.state(NOW) == "open"
    assert circuit.state(NOW - 3_600_000) == "half_open"


def test_somebody_who_asks_for_a_delivery_gets_the_probe_at_once() -> None:
    opened = after(CLOSED, *["timeout"] * 20)
    assert opened.asked_to_probe(NOW + 1).state(NOW + 1) == "half_open"
    assert CLOSED.asked_to_probe(NOW) == CLOSED


def test_a_half_open_circuit_lets_one_through_and_holds_the_others() -> None:
    breaker = Breaker(Circuit(20, 0, NOW, "why"))
    assert breaker.gate(NOW - 1) == "skip"
    assert breaker.gate(NOW) == "go"
    assert breaker.begin(NOW)
    assert breaker.gate(NOW) == "hold"
    breaker.attempt_ended(None, exhausted=True, now=NOW)
    breaker.probe_over()
    assert breaker.gate(NOW) == "go"
    assert not breaker.begin(NOW)


def test_a_breaker_that_is_asked_for_a_probe_lets_it_through_and_tells() -> None:
    breaker = Breaker(after(CLOSED, *["timeout"] * 20))
    told: list[Circuit] = []
    breaker.notify = lambda: told.append(breaker.circuit)
    assert breaker.gate(NOW + 1) == "skip"
    breaker.ask_for_probe(NOW + 1)
    assert (breaker.gate(NOW + 1), told) == ("go", [breaker.circuit])


def test_a_probe_that_ends_without_an_attempt_makes_way_for_the_next() -> None:
    breaker = Breaker(Circuit(20, 0, NOW, "why"))
    assert breaker.begin(NOW)
    breaker.probe_over()
    assert breaker.gate(NOW) == "go"
    assert breaker.begin(NOW)


def test_what_is_not_stored_yet_is_told_until_it_is() -> None:
    breaker = Breaker(CLOSED)
    told: list[Circuit] = []
    breaker.notify = lambda: told.append(breaker.circuit)
    breaker.attempt_ended(None, exhausted=True, now=NOW)
    assert (breaker.unsaved, told) == (None, [])
    breaker.attempt_ended("timeout", exhausted=False, now=NOW)
    changed = breaker.unsaved
    assert changed == Circuit(1)
    breaker.saved(changed)
    assert (breaker.unsaved, told) == (None, [Circuit(1)])


@given(st.lists(st.tuples(st.sampled_from(["ok", "bad", "used up"]), st.integers(0, 100_000)), max_size=120))
def test_it_is_open_only_behind_enough_failures_and_never_longer_than_three_minutes(
    steps: list[tuple[str, int]],
) -> None:
    circuit, now, failures = CLOSED, NOW, 0
    for outcome, pause in steps:
        now += pause
        error = None if outcome == "ok" else "bad"
        circuit = circuit.after_attempt(error, exhausted=outcome == "used up", now=now)
        failures = 0 if error is None else failures + 1
        if circuit.open_until is not None:
            assert failures >= 5
            assert circuit.open_until <= now + OPEN_MS
            assert circuit.reason
        else:
            assert failures < 20
