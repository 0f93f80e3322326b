"""When a delivery is tried again, and when it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.deliveries import Attempt
from deskwire.engine.delivery.schedule import Ended, Retry, Schedule

SCHEDULE = Schedule((2.0, 6.0, 12.0), 0.2, 3600.0)


def failed(number: int, *, ended_at: int = 0, wait_ms: int | None = None, status: int = 500) -> Attempt:
    """An attempt that was answered with `status` after 100 ms."""
    return Attempt(number, ended_at - 100, 100, status, f"status {status}", b"", wait_ms)


@pytest.mark.parametrize(("number", "pause_s"), [(1, 2), (2, 6), (3, 12)])
def test_a_failed_attempt_is_followed_by_one_after_its_pause(number: int, pause_s: int) -> None:
    """Contract 6.4.2; decisions 6: about 2, 6 and 12 s."""
    assert SCHEDULE.after_attempt(failed(number, ended_at=1000), 0, 0.5) == Retry(1000 + pause_s * 1000)


@given(st.integers(1, 3), st.floats(0, 1), st.integers(0, 2**42))
def test_jitter_stays_within_a_fifth_up_and_down(number: int, fraction: float, now: int) -> None:
    """Decisions 6."""
    verdict = SCHEDULE.after_attempt(failed(number, ended_at=now), now, fraction)
    assert isinstance(verdict, Retry)
    pause_ms = SCHEDULE.retry_after_s[number - 1] * 1000
    assert 0.8 * pause_ms <= verdict.due_at - now <= 1.2 * pause_ms


def test_the_ends_of_the_jitter_are_reached() -> None:
    assert SCHEDULE.after_attempt(failed(1), 0, 0.0) == Retry(1600)
    assert SCHEDULE.after_attempt(failed(1), 0, 1.0) == Retry(2400)


def test_the_fourth_failed_attempt_drops_the_delivery_with_its_reason() -> None:
    """Contract 6.4.2: retried 3 times, then dropped; whatever the receiver asks for."""
    ended = SCHEDULE.after_attempt(failed(4, wait_ms=1000), 0, 0.5)
    assert ended == Ended("dropped", "4 attempts failed; the last: status 500", disables=False)


@given(st.integers(1, 4), st.floats(0, 1))
def test_any_attempt_that_succeeds_delivers(number: int, fraction: float) -> None:
    assert SCHEDULE.after_attempt(Attempt(number, 0, 1, 204, None, b""), 0, fraction) == Ended("delivered")


def test_a_longer_pause_that_the_receiver_asks_for_is_kept() -> None:
    """Decisions 6: Retry-After is honoured."""
    assert SCHEDULE.after_attempt(failed(1, wait_ms=60_000), 0, 0.5) == Retry(60_000)


def test_a_schedule_without_pauses_tries_again_at_once() -> None:
    assert Schedule((0.0,), 0.2, 3600.0).after_attempt(failed(1, ended_at=1000), 0, 0.5) == Retry(1000)


def test_a_shorter_pause_that_the_receiver_asks_for_changes_nothing() -> None:
    assert SCHEDULE.after_attempt(failed(2, wait_ms=1000), 0, 0.5) == Retry(6000)


def test_no_receiver_puts_an_attempt_off_beyond_the_window() -> None:
    """Within the delivery's window: the last moment of it is when the attempt is made."""
    created_at, ended_at = 5000, 8000
    verdict = SCHEDULE.after_attempt(failed(1, ended_at=ended_at, wait_ms=10**10), created_at, 0.5)
    assert verdict == Retry(created_at + 3_600_000)
    assert SCHEDULE.too_late(created_at, verdict.due_at) is None


def test_a_receiver_that_is_gone_ends_the_delivery_and_disables_its_endpoint() -> None:
    """Decisions 6: 410."""
    ended = SCHEDULE.after_attempt(failed(1, status=410), 0, 0.5)
    assert ended == Ended("dropped", "status 410: the receiver wants no more", disables=True)


def test_a_delivery_is_too_late_only_after_its_window() -> None:
    """Contract 6.4.4: at least once within a short window."""
    assert SCHEDULE.too_late(1000, 1000 + 3_600_000) is None
    assert SCHEDULE.too_late(1000, 1001 + 3_600_000) == Ended(
        "dropped", "it was still pending 3600 s after its event"
    )
    assert SCHEDULE.too_late(5000, 0) is None
