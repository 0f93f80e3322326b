"""When a delivery is tried again, and when it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.delivery.schedule import Ended, Retry, Schedule

SCHEDULE = Schedule((2.0, 6.0, 12.0), 0.2, 3600.0)


@pytest.mark.parametrize(("attempts", "pause_s"), [(1, 2), (2, 6), (3, 12)])
def test_a_failed_attempt_is_followed_by_one_after_its_pause(attempts: int, pause_s: int) -> None:
    """Contract 6.4.2; decisions 6: about 2, 6 and 12 s."""
    assert SCHEDULE.after_attempt(attempts, "status 500", 1000, 0.5) == Retry(1000 + pause_s * 1000)


@given(st.integers(1, 3), st.floats(0, 1), st.integers(0, 2**42))
def test_jitter_stays_within_a_fifth_up_and_down(attempts: int, fraction: float, now: int) -> None:
    """Decisions 6."""
    verdict = SCHEDULE.after_attempt(attempts, "timeout", now, fraction)
    assert isinstance(verdict, Retry)
    pause_ms = SCHEDULE.retry_after_s[attempts - 1] * 1000
    assert 0.8 * pause_ms <= verdict.due_at - now <= 1.2 * pause_ms


def test_the_ends_of_the_jitter_are_reached() -> None:
    assert SCHEDULE.after_attempt(1, "timeout", 0, 0.0) == Retry(1600)
    assert SCHEDULE.after_attempt(1, "timeout", 0, 1.0) == Retry(2400)


def test_the_fourth_failed_attempt_drops_the_delivery_with_its_reason() -> None:
    """Contract 6.4.2: retried 3 times, then dropped."""
    ended = SCHEDULE.after_attempt(4, "status 500", 0, 0.5)
    assert ended == Ended("dropped", "4 attempts failed; the last: status 500")


@given(st.integers(1, 4), st.floats(0, 1))
def test_any_attempt_that_succeeds_delivers(attempts: int, fraction: float) -> None:
    assert SCHEDULE.after_attempt(attempts, None, 0, fraction) == Ended("delivered")


def test_a_delivery_is_too_late_only_after_its_window() -> None:
    """Contract 6.4.4: at least once within a short window."""
    assert SCHEDULE.too_late(1000, 1000 + 3_600_000) is None
    assert SCHEDULE.too_late(1000, 1001 + 3_600_000) == Ended(
        "dropped", "it was still pending 3600 s after its event"
    )
    assert SCHEDULE.too_late(5000, 0) is None
