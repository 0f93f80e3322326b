"""The circuit breaker of one endpoint: gate, notifications and unsaved state.

Source: decisions 6.
"""

from __future__ import annotations

import pytest

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, Circuit, CircuitBreaker, CircuitRule

NOW = 1_790_000_000_000
OPEN = Circuit(20, NOW - 60_000, 0, NOW + 10_000, "why")
AT_ONCE = CircuitRule(failures=1, failing_s=0)


def fail(breaker: CircuitBreaker, *, at: int = NOW, probe: bool = False) -> None:
    breaker.failed("timeout", began=at, ended=at, probe=probe)


def test_open_circuit_holds_deliveries_and_a_half_open_one_admits_one_probe() -> None:
    breaker = CircuitBreaker(OPEN)
    assert (breaker.gate(NOW), breaker.opens_at(NOW)) == ("hold", NOW + 10_000)
    assert not breaker.begin(NOW)
    later = NOW + 10_000
    assert (breaker.gate(later), breaker.opens_at(later)) == ("probe", None)
    assert breaker.begin(later)
    assert breaker.gate(later) == "hold"
    assert not breaker.begin(later)


def test_closed_circuit_admits_every_delivery_and_none_is_a_probe() -> None:
    breaker = CircuitBreaker(CLOSED)
    assert (breaker.gate(NOW), breaker.opens_at(NOW), breaker.closed) == ("go", None, True)
    assert not breaker.begin(NOW)
    assert breaker.gate(NOW) == "go"


def test_a_probe_that_failed_makes_way_for_the_next_in_ten_seconds() -> None:
    breaker = CircuitBreaker(replace(OPEN, probe_at=NOW))
    assert breaker.begin(NOW)
    fail(breaker, probe=True)
    breaker.probe_over()
    assert (breaker.gate(NOW), breaker.opens_at(NOW)) == ("hold", NOW + 10_000)
    assert breaker.gate(NOW + 10_000) == "probe"


def test_probe_without_an_attempt_makes_way_for_the_next_at_once() -> None:
    breaker = CircuitBreaker(replace(OPEN, probe_at=NOW))
    assert breaker.begin(NOW)
    breaker.probe_over()
    assert breaker.begin(NOW)


def test_a_pause_holds_all_attempts_including_probes() -> None:
    """Decisions 6: `Retry-After` pauses the endpoint."""
    for circuit in (CLOSED, replace(OPEN, probe_at=NOW)):
        breaker = CircuitBreaker(circuit)
        breaker.pause(NOW + 30_000)
        breaker.ask_for_probe(NOW)
        assert (breaker.gate(NOW), breaker.opens_at(NOW)) == ("hold", NOW + 30_000)
        assert breaker.gate(NOW + 30_000) != "hold"


def test_a_requested_probe_is_allowed_and_announced() -> None:
    breaker, told = CircuitBreaker(OPEN), list[tuple[Circuit, Circuit]]()
    breaker.notify = lambda before, after: told.append((before, after))
    breaker.ask_for_probe(NOW + 1)
    assert (breaker.gate(NOW + 1), told) == ("probe", [(OPEN, breaker.circuit)])


def test_any_success_closes_it_and_is_remembered_by_its_begin() -> None:
    breaker = CircuitBreaker(OPEN)
    breaker.succeeded(began=NOW - 500, ended=NOW)
    assert (breaker.circuit, breaker.closed, breaker.succeeded_at) == (CLOSED, True, NOW - 500)
    breaker.succeeded(began=NOW - 900, ended=NOW)
    assert breaker.succeeded_at == NOW - 500


def test_it_opens_by_its_rule_and_announces_each_change_once() -> None:
    breaker, told = CircuitBreaker(CLOSED, CircuitRule(2, 0)), list[Circuit]()
    breaker.notify = lambda _before, after: told.append(after)
    breaker.succeeded(began=NOW, ended=NOW)
    assert told == []
    fail(breaker)
    fail(breaker)
    fail(breaker)
    assert [circuit.state(NOW) for circuit in told] == ["closed", "open"]


def test_an_unsaved_circuit_is_reported_until_saved() -> None:
    breaker = CircuitBreaker(CLOSED)
    breaker.succeeded(began=NOW, ended=NOW)
    assert breaker.unsaved is None
    fail(breaker)
    assert breaker.unsaved == Circuit(1, NOW)
    breaker.saved(Circuit(1, NOW), None)
    assert breaker.unsaved is None


def test_a_change_during_a_save_is_saved_afterwards() -> None:
    breaker = CircuitBreaker(CLOSED)
    fail(breaker)
    taken = breaker.unsaved
    fail(breaker)
    assert taken is not None
    breaker.saved(taken, None)
    assert breaker.unsaved == Circuit(2, NOW)


def test_a_closed_breaker_needs_a_release_until_it_is_stored() -> None:
    breaker = CircuitBreaker(OPEN)
    breaker.succeeded(began=NOW, ended=NOW)
    assert (breaker.release_due, breaker.unsaved, breaker.held_upto) == (True, CLOSED, None)
    breaker.saved(CLOSED, 77)
    assert (breaker.release_due, breaker.unsaved, breaker.held_upto) == (False, None, 77)
    breaker.clear_held()
    assert breaker.held_upto is None


def test_a_breaker_that_reopens_before_the_release_releases_nothing() -> None:
    breaker = CircuitBreaker(OPEN, AT_ONCE)
    breaker.succeeded(began=NOW, ended=NOW)
    fail(breaker, at=NOW + 1)
    assert not breaker.release_due
    breaker.saved(CLOSED, 77)
    assert (breaker.held_upto, breaker.unsaved) == (None, breaker.circuit)
    breaker.succeeded(began=NOW + 2, ended=NOW + 2)
    assert (breaker.release_due, breaker.unsaved) == (True, CLOSED)


def test_circuit_that_was_never_open_holds_no_delivery() -> None:
    breaker = CircuitBreaker(CLOSED)
    fail(breaker)
    breaker.succeeded(began=NOW, ended=NOW)
    assert not breaker.release_due


@pytest.mark.parametrize("held_upto", [None, 12])
def test_a_breaker_starts_with_the_stored_circuit(held_upto: int | None) -> None:
    breaker = CircuitBreaker(OPEN, succeeded_at=NOW - 5, held_upto=held_upto)
    assert (breaker.succeeded_at, breaker.held_upto, breaker.unsaved) == (NOW - 5, held_upto, None)


def test_the_circuit_that_was_stored_last_is_known_while_it_changes() -> None:
    breaker = CircuitBreaker(OPEN)
    breaker.succeeded(began=NOW, ended=NOW)
    assert (breaker.stored, breaker.circuit) == (OPEN, CLOSED)
    breaker.saved(CLOSED, None)
    assert breaker.stored == CLOSED
