"""The circuit of an endpoint that keeps failing (contract 6.4.3, decisions 6)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.retry.circuit_breaker import (
    CLOSED,
    DEFAULT_CIRCUIT_RULE,
    SECRET_LOST,
    Circuit,
    CircuitRule,
)

NOW = 1_790_000_000_000
RULE = CircuitRule(failures=20, failing_s=60.0)
LONGEST_MS = 180_000


def failing(
    circuit: Circuit, count: int, *, since: int = NOW, every: int = 4_000, error: str = "timeout"
) -> Circuit:
    """Return the circuit after this many failed attempts, one every `every` ms."""
    for number in range(count):
        at = since + number * every
        circuit = circuit.after_failure(error, began=at, ended=at, probe=False, rule=RULE)
    return circuit


def probed(circuit: Circuit, at: int, *, took: int = 0, error: str = "timeout") -> Circuit:
    """Return the circuit after a failed probe."""
    return circuit.after_failure(error, began=at, ended=at + took, probe=True, rule=RULE)


def probe_at(circuit: Circuit) -> int:
    assert circuit.probe_at is not None
    return circuit.probe_at


OPENED = failing(CLOSED, 20)
OPENED_AT = NOW + 19 * 4_000


def test_twenty_failed_attempts_in_a_row_over_a_minute_open_it() -> None:
    assert failing(CLOSED, 19).state(NOW + 18 * 4_000) == "closed"
    assert OPENED.state(OPENED_AT) == "open"
    assert OPENED.reason == "20 attempts in a row failed within 76 s; the last: timeout"


def test_many_failures_within_less_than_a_minute_do_not_open_it() -> None:
    """A receiver that is down for a moment does not fail persistently."""
    busy = failing(CLOSED, 1_000, every=60)
    assert (busy.failed_attempts, busy.state(NOW + 59_999)) == (1_000, "closed")
    assert failing(busy, 1, since=NOW + 59_999).state(NOW + 59_999) == "closed"
    assert failing(busy, 1, since=NOW + 60_000).state(NOW + 60_000) == "open"


def test_few_failures_over_a_long_time_do_not_open_it() -> None:
    assert failing(CLOSED, 19, every=3_600_000).state(NOW + 18 * 3_600_000) == "closed"
    assert failing(CLOSED, 20, every=3_600_000).state(NOW + 19 * 3_600_000) == "open"


def test_the_minute_counts_from_the_end_of_the_first_failure() -> None:
    """Twenty concurrent attempts that hang for 30 s are one failure of the receiver, not a minute of failures."""
    circuit = CLOSED
    for number in range(20):
        circuit = circuit.after_failure(
            "timeout", began=NOW + number, ended=NOW + number + 59_000, probe=False, rule=RULE
        )
    assert (circuit.failing_since, circuit.state(NOW + 59_019)) == (NOW + 59_000, "closed")


def test_how_many_and_how_long_are_a_rule_of_the_installation() -> None:
    at_once = CircuitRule(failures=1, failing_s=0)
    opened = CLOSED.after_failure("status 500", began=NOW, ended=NOW, probe=False, rule=at_once)
    assert opened.state(NOW) == "open"
    assert opened.reason == "1 attempts in a row failed within 0 s; the last: status 500"


def test_a_success_resets_both_counts() -> None:
    circuit = failing(failing(CLOSED, 19).after_success(NOW + 75_000), 19, since=NOW + 80_000)
    assert circuit.state(NOW + 10**9) == "closed"
    assert (circuit.failed_attempts, circuit.failing_since) == (19, NOW + 80_000)
    assert failing(CLOSED, 19).after_success(NOW) == CLOSED


def test_probes_come_every_ten_seconds_for_three_minutes_and_then_less_often() -> None:
    circuit, at = OPENED, [OPENED_AT]
    for _ in range(25):
        at.append(probe_at(circuit))
        assert (circuit.state(at[-1] - 1), circuit.state(at[-1])) == ("open", "half_open")
        circuit = probed(circuit, at[-1])
    pauses = [after - before for before, after in pairwise(at)]
    assert pauses == [10_000] * 18 + [30_000, 60_000, 120_000] + [180_000] * 4


def test_the_next_probe_is_counted_from_the_begin_of_the_one_before() -> None:
    """A receiver that hangs is probed as often as one that refuses."""
    assert probe_at(probed(OPENED, OPENED_AT + 10_000, took=5_000)) == OPENED_AT + 20_000


def test_failed_probe_is_the_new_reason_and_a_success_closes_it() -> None:
    again = probed(OPENED, OPENED_AT + 10_000, error="connection refused")
    assert (again.probes, again.reason) == (1, "the probe failed: connection refused")
    assert (again.failed_attempts, again.failing_since) == (20, NOW)
    assert again.after_success(OPENED_AT + 20_000) == CLOSED


def test_after_an_outage_the_next_one_is_probed_each_ten_seconds_again() -> None:
    circuit = OPENED
    for _ in range(30):
        circuit = probed(circuit, probe_at(circuit))
    later = NOW + 86_400_000
    reopened = failing(circuit.after_success(later), 20, since=later)
    assert (reopened.probes, probe_at(reopened)) == (0, later + 19 * 4_000 + 10_000)


def test_attempts_that_had_begun_before_it_opened_change_nothing_when_they_fail() -> None:
    assert failing(OPENED, 16, since=OPENED_AT) == OPENED
    assert OPENED.after_success(OPENED_AT) == CLOSED


def test_a_clock_set_back_does_not_keep_it_open_longer() -> None:
    assert OPENED.state(OPENED_AT - 1) == "half_open"
    assert OPENED.state(OPENED_AT - 3_600_000) == "half_open"


def test_clock_that_is_set_back_does_not_keep_it_closed_longer() -> None:
    """The minute starts again at the new time."""
    hour_ms = 3_600_000
    circuit = failing(failing(CLOSED, 19), 1, since=NOW - hour_ms)
    assert circuit.failing_since == NOW - hour_ms
    assert failing(circuit, 1, since=NOW - hour_ms + 60_000).state(NOW - hour_ms + 60_000) == "open"


def test_a_requested_delivery_becomes_the_probe_at_once() -> None:
    asked = OPENED.with_probe_due(OPENED_AT + 1)
    assert asked.state(OPENED_AT + 1) == "half_open"
    assert probe_at(probed(asked, OPENED_AT + 1)) == OPENED_AT + 10_001
    assert CLOSED.with_probe_due(NOW) == CLOSED
    half_open = replace(OPENED, probe_at=NOW)
    assert half_open.with_probe_due(NOW + 5_000) == half_open


def test_a_pause_that_the_receiver_asks_for_is_no_failure() -> None:
    """Decisions 6: 429 and 503 with `Retry-After` are back-pressure."""
    paused = CLOSED.with_pause(NOW + 30_000)
    assert (paused.paused(NOW), paused.paused(NOW + 29_999), paused.paused(NOW + 30_000)) == (
        True,
        True,
        False,
    )
    assert (paused.state(NOW), paused.failed_attempts, paused.failing_since) == ("closed", 0, None)


def test_of_two_pauses_the_longer_one_is_kept() -> None:
    longer = CLOSED.with_pause(NOW + 30_000)
    assert longer.with_pause(NOW + 10_000) == longer
    assert longer.with_pause(NOW + 40_000).paused(NOW + 39_999)


def test_success_ends_no_pause_and_a_pause_closes_no_circuit() -> None:
    paused = OPENED.with_pause(OPENED_AT + 30_000)
    assert paused.state(OPENED_AT) == "open"
    assert paused.after_success(OPENED_AT) == replace(CLOSED, paused_until=OPENED_AT + 30_000)
    assert paused.after_success(OPENED_AT + 30_000) == CLOSED


@pytest.mark.parametrize("back_ms", [1, 86_400_000])
def test_a_pause_is_not_longer_for_a_clock_that_is_set_back(back_ms: int) -> None:
    paused = CLOSED.with_pause(NOW + LONGEST_MS)
    assert paused.paused(NOW)
    assert not paused.paused(NOW - back_ms)


@given(
    st.lists(
        st.tuples(st.sampled_from(["good", "failed", "probe", "paused"]), st.integers(0, 100_000)),
        max_size=150,
    )
)
def test_it_opens_after_enough_failures_for_at_most_three_minutes(
    steps: list[tuple[str, int]],
) -> None:
    circuit, now, failures, since = CLOSED, NOW, 0, 0
    for outcome, wait in steps:
        now += wait
        if outcome == "good":
            circuit, failures = circuit.after_success(now), 0
        elif outcome == "paused":
            circuit = circuit.with_pause(now + LONGEST_MS)
        elif outcome == "failed" or circuit.state(now) == "half_open":
            since = since if failures else now
            failures += 1
            probe = outcome == "probe"
            circuit = circuit.after_failure("bad", began=now, ended=now, probe=probe, rule=RULE)
        if circuit.probe_at is not None:
            assert failures >= 20
            assert now - since >= 60_000
            assert circuit.probe_at <= now + LONGEST_MS
            assert circuit.reason
        elif failures:
            assert failures < 20 or now - since < 60_000 + wait
            assert circuit.failing_since == since
        else:
            assert (circuit.failed_attempts, circuit.failing_since, circuit.reason) == (0, None, None)


def test_default_rule_of_an_endpoint_is_twenty_failures_in_a_minute() -> None:
    """Contract 6.4.3."""
    assert CircuitRule(failures=20, failing_s=60.0) == DEFAULT_CIRCUIT_RULE


def test_a_new_circuit_has_no_failures_and_no_probes() -> None:
    assert (CLOSED.failed_attempts, CLOSED.failing_since, CLOSED.probes) == (0, None, 0)


def test_a_circuit_opens_again_without_the_probes_of_an_earlier_outage() -> None:
    """A stored circuit may be closed and still have counted probes."""
    reopened = failing(replace(CLOSED, probes=7), 20)
    assert (reopened.probes, probe_at(reopened)) == (0, OPENED_AT + 10_000)


def test_a_circuit_opens_for_a_lost_secret_and_probes_in_ten_seconds() -> None:
    opened = CLOSED.opened_unsigned(NOW)
    assert (opened.state(NOW), opened.reason) == ("open", SECRET_LOST)
    assert (opened.failing_since, opened.probes, opened.probe_at) == (NOW, 0, NOW + 10_000)
    again = replace(OPENED, probes=3).opened_unsigned(OPENED_AT)
    assert (again.failing_since, again.probes, again.probe_at) == (NOW, 0, OPENED_AT + 10_000)


def test_a_pause_in_the_past_is_kept_as_it_was_asked_for() -> None:
    """If the clock is at the epoch, the pause has no effect."""
    assert CLOSED.with_pause(-1).paused_until == 0
    assert CLOSED.with_pause(0).paused_until == 0
