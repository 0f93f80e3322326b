"""The rate of a backlog: slow at first, then faster until a failure or the maximum (ADR 10)."""

from __future__ import annotations

from itertools import pairwise

from deskwire.engine.webhooks.queue.limits import BacklogRate

MOST_PER_S = 10_000.0


def going_well(pace: BacklogRate, for_s: float, at: float = 0.0) -> int:
    """Start attempts as soon as possible; return their number.

    Each succeeds at once.
    """
    begun, until = 0, at + for_s
    while at < until:
        pace.begin(at)
        pace.succeeded()
        begun += 1
        at = max(at, pace.next_at)
    return begun


def test_the_rate_starts_at_two_hundred_per_second() -> None:
    assert 20 <= going_well(BacklogRate(MOST_PER_S), 0.1) <= 41


def test_the_rate_doubles_in_each_successful_quarter_second() -> None:
    pace = BacklogRate(MOST_PER_S)
    rates = []
    for quarter in range(1, 5):
        going_well(pace, 0.25, at=quarter * 0.25)
        rates.append(pace.rate_per_s)
    assert all(later >= 2 * earlier for earlier, later in pairwise(rates))


def test_hundred_thousand_deliveries_begin_within_twenty_seconds_and_below_the_bound() -> None:
    pace = BacklogRate(MOST_PER_S)
    assert going_well(pace, 20.0) > 100_000
    assert pace.rate_per_s == MOST_PER_S


def test_a_bound_below_its_begin_is_kept_from_the_begin() -> None:
    assert 50 <= going_well(BacklogRate(10.0), 5.0) <= 52


def test_failure_halves_it_once_for_all_attempts_under_way() -> None:
    pace = BacklogRate(MOST_PER_S)
    going_well(pace, 2.0)
    before = pace.rate_per_s
    for at in (2.0, 2.01, 2.02):
        pace.failed(at)
    assert pace.rate_per_s == before / 2
    pace.failed(2.5)
    assert pace.rate_per_s == before / 4


def test_after_a_failure_it_grows_in_steps_of_two_hundred() -> None:
    pace = BacklogRate(MOST_PER_S)
    going_well(pace, 1.0)
    pace.failed(1.0)
    slow = pace.rate_per_s
    going_well(pace, 1.0, at=pace.next_at)
    assert slow + 200 <= pace.rate_per_s <= slow + 1_000


def test_failures_never_bring_it_below_its_begin() -> None:
    pace = BacklogRate(MOST_PER_S)
    for at in range(60):
        pace.failed(float(at))
    assert pace.rate_per_s == 200.0


def test_the_rate_is_reset_after_an_idle_time() -> None:
    pace = BacklogRate(MOST_PER_S)
    going_well(pace, 2.0)
    pace.begin(60.0)
    assert pace.rate_per_s == 200.0
