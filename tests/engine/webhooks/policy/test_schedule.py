"""The schedule of a delivery's attempts, and its end.

Source: contract 6.4.2, decisions 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.retry.schedule import DEFAULT_RETRY_DELAYS_S, DeliveryEnd, Retry, Schedule
from tests.support.sockets.receivers import delivery

SCHEDULE = Schedule(DEFAULT_RETRY_DELAYS_S, 0.2, 86_400.0)
START = 1_790_000_000_000


@dataclass(frozen=True)
class Planned:
    """A delivery reduced to its plan."""

    due_at: int = START
    planned_from: int | None = None
    failing_since: int | None = None
    attempts: int = 0


def failed(number: int, at: int = START, *, took: int = 100, wait_ms: int | None = None) -> Attempt:
    return Attempt(number, at, took, 500, "status 500", b"", wait_ms)


def follows(attempt: Attempt, plan: Planned, fraction: float = 0.5) -> Retry:
    retry = SCHEDULE.after_failure(attempt, plan, fraction, None)
    assert isinstance(retry, Retry)
    return retry


def as_planned(retry: Retry) -> Planned:
    return Planned(retry.due_at, retry.planned_from, retry.failing_since)


def starts(took: int, late: tuple[int, ...] = (0, 0, 0, 0)) -> list[int]:
    """Return the starts of a delivery's attempts (ms after the first was due).

    Each attempt takes `took` ms and starts `late`.
    """
    plan, begun = Planned(), list[int]()
    for number in range(1, 5):
        at = plan.due_at + late[number - 1]
        begun.append(at - START)
        if number < 4:
            plan = as_planned(follows(failed(number, at, took=took), plan))
    return begun


def test_attempts_are_planned_from_the_first_one() -> None:
    """At about 0, 2, 8 and 20 s, however long each takes to fail."""
    assert starts(took=100) == [0, 2_000, 8_000, 20_000]
    assert starts(took=1_900) == [0, 2_000, 8_000, 20_000]


def test_no_attempt_starts_before_the_previous_one_has_ended() -> None:
    """If a receiver lets each attempt run into its 5 s timeout, attempts follow more closely, not later."""
    assert starts(took=5_000) == [0, 5_000, 10_000, 20_000]
    assert starts(took=30_000) == [0, 30_000, 60_000, 90_000]


def test_a_delayed_attempt_shifts_the_rest_of_the_plan() -> None:
    """The circuit was open or the endpoint paused at the due time. Later attempts keep their distances."""
    assert starts(took=100, late=(50_000, 0, 0, 0)) == [50_000, 52_000, 58_000, 70_000]
    assert starts(took=100, late=(0, 0, 50_000, 0)) == [0, 2_000, 58_000, 70_000]


def test_an_attempt_that_begins_before_its_time_moves_nothing() -> None:
    """The clock was set back, or a held delivery is sent as a probe."""
    plan = Planned(START + 8_000, START, START + 100)
    assert follows(failed(3, START + 5_000), plan).due_at == START + 20_000


@given(st.integers(1, 3), st.floats(0, 1), st.integers(0, 1_000))
def test_jitter_is_a_fifth_of_the_time_since_the_first_attempt(
    number: int, fraction: float, took: int
) -> None:
    plan = Planned(planned_from=None if number == 1 else START)
    after_s = (2, 8, 20)[number - 1]
    due_at = follows(failed(number, took=took), plan, fraction).due_at
    assert 0.8 * after_s * 1000 <= due_at - START <= 1.2 * after_s * 1000


def test_the_ends_of_the_jitter_are_reached() -> None:
    assert follows(failed(1), Planned(), 0.0).due_at == START + 1_600
    assert follows(failed(1), Planned(), 1.0).due_at == START + 2_400


def test_a_failure_uses_up_an_attempt_and_the_first_one_is_remembered() -> None:
    first = follows(failed(1), Planned())
    assert (first.planned_from, first.failing_since, first.repeats) == (START, START + 100, False)
    second = follows(failed(2, first.due_at), as_planned(first))
    assert (second.planned_from, second.failing_since) == (START, START + 100)


def test_the_fourth_failed_attempt_drops_the_delivery_with_its_reason() -> None:
    """Contract 6.4.2: retried 3 times, then dropped, whatever the responses."""
    gone = Attempt(4, START, 100, 410, "status 410", b"")
    ended = SCHEDULE.after_failure(gone, Planned(), 0.5, START + 101)
    assert ended == DeliveryEnd("dropped", "4 attempts failed; the last: status 410", missed=False)


def test_410_is_a_failure_like_any_other() -> None:
    """Contract 6.4.2 has no exception."""
    gone = Attempt(1, START, 100, 410, "status 410", b"")
    assert SCHEDULE.after_failure(gone, Planned(), 0.5, None) == follows(failed(1), Planned())


def test_the_number_of_attempts_is_that_of_the_pauses_and_one() -> None:
    once = Schedule((), 0.2, 3600.0)
    assert once.after_failure(failed(1), Planned(), 0.5, None) == DeliveryEnd(
        "dropped", "1 attempts failed; the last: status 500", missed=True
    )


def test_a_schedule_without_pauses_tries_again_at_once() -> None:
    retry = Schedule((0.0,), 0.2, 3600.0).after_failure(failed(1), Planned(), 0.5, None)
    assert retry == Retry(START + 100, START, START + 100)


@pytest.mark.parametrize(
    ("succeeded_at", "missed"),
    [(None, True), (START - 1, True), (START + 100, True), (START + 101, False), (START + 19_000, False)],
)
def test_a_delivery_is_missed_if_nothing_has_succeeded_since_its_first_failure(
    succeeded_at: int | None, missed: bool
) -> None:
    """Decisions 6: the cause was an outage, not the event."""
    plan = Planned(START + 20_000, START, START + 100)
    ended = SCHEDULE.after_failure(failed(4, START + 20_000), plan, 0.5, succeeded_at)
    assert ended == DeliveryEnd("dropped", "4 attempts failed; the last: status 500", missed=missed)


def test_a_pause_that_the_receiver_asks_for_uses_up_no_attempt() -> None:
    """Decisions 6: `Retry-After` on 429 and 503."""
    plan = Planned(START, START - 2_000, START - 1_900)
    again = SCHEDULE.after_pause_asked(failed(2, wait_ms=60_000), plan)
    assert again == Retry(START + 60_100, START - 2_000 + 60_100, START - 1_900, repeats=True)
    at_first = SCHEDULE.after_pause_asked(failed(1, wait_ms=60_000), Planned())
    assert at_first == Retry(START + 60_100, START + 60_100, None, repeats=True)


def test_a_pause_shifts_the_rest_of_the_plan() -> None:
    plan = as_planned(follows(failed(1), Planned()))
    again = as_planned(SCHEDULE.after_pause_asked(failed(2, plan.due_at, wait_ms=30_000), plan))
    assert again.due_at == START + 2_000 + 30_100
    assert follows(failed(2, again.due_at), again).due_at == again.due_at + 6_000


@pytest.mark.parametrize(
    ("asked_ms", "pause_ms"),
    [(0, 1_000), (999, 1_000), (1_500, 1_500), (180_000, 180_000), (10**10, 180_000)],
)
def test_a_pause_is_at_least_a_second_and_at_most_three_minutes(asked_ms: int, pause_ms: int) -> None:
    """The minimum limits the attempts at a receiver whose responses use up none."""
    again = SCHEDULE.after_pause_asked(failed(1, wait_ms=asked_ms), Planned())
    assert again.due_at == START + 100 + pause_ms


def test_a_probe_that_failed_uses_up_no_attempt() -> None:
    """Decisions 6: the rest of the plan starts when the delivery is sent again."""
    plan = Planned(START - 60_000, START - 68_000, START - 67_900)
    again = SCHEDULE.after_probe(failed(3), plan)
    assert again == Retry(START + 100, START - 68_000 + 60_100, START - 67_900, repeats=True)
    assert follows(failed(3, again.due_at), as_planned(again)).due_at == again.due_at + 12_000


def test_a_probe_that_failed_says_nothing_of_an_outage_that_comes_later() -> None:
    assert SCHEDULE.after_probe(failed(1), Planned()).failing_since is None


@given(st.integers(1, 3), st.floats(0, 1), st.integers(0, 30_000), st.integers(0, 10**9))
def test_attempt_is_planned_within_the_documented_maximum(
    number: int, fraction: float, took: int, wait_ms: int
) -> None:
    attempt, plan = failed(number, took=took, wait_ms=wait_ms), Planned(START, START, START)
    ended_at = START + took
    assert ended_at <= follows(attempt, plan, fraction).due_at <= ended_at + SCHEDULE.ahead_max_ms
    assert ended_at <= SCHEDULE.after_pause_asked(attempt, plan).due_at <= ended_at + SCHEDULE.ahead_max_ms


def test_a_delivery_is_too_late_only_after_the_horizon() -> None:
    """Decisions 6: older deliveries end as skipped, with the reason."""
    day_ms = 86_400_000
    assert SCHEDULE.horizon(START) == START - day_ms
    assert SCHEDULE.too_late(START, START + day_ms) is None
    assert SCHEDULE.too_late(START, START + day_ms + 1) == DeliveryEnd(
        "skipped", "it was still pending 86400 s after it was made", missed=False
    )
    assert SCHEDULE.too_late(START, 0) is None


def test_a_retry_counts_the_attempt_unless_it_repeats_it() -> None:
    planned = delivery(1, attempts=2)
    counting = Retry(START + 2_000, START, START + 100)
    for retry, attempts in ((counting, 3), (replace(counting, repeats=True), 2)):
        following = retry.applied_to(planned)
        assert following == replace(
            planned,
            attempts=attempts,
            due_at=START + 2_000,
            planned_from=START,
            failing_since=START + 100,
        )


def test_retry_is_planned_within_all_delays_and_the_longest_pause() -> None:
    assert SCHEDULE.ahead_max_ms == 24_000 + 180_000


def test_a_counted_attempt_does_not_hold_up_its_conversation() -> None:
    counted = Retry(START, START, None)
    paused, alone = replace(counted, repeats=True), replace(counted, repeats=True, waits_alone=True)
    assert (
        counted.waits_alone,
        counted.blocks_conversation,
        replace(counted, waits_alone=True).blocks_conversation,
    ) == (
        False,
        False,
        False,
    )
    assert (paused.blocks_conversation, alone.blocks_conversation) == (True, False)


def test_jitter_makes_a_requested_pause_longer_never_shorter() -> None:
    for fraction, wait_ms in ((0.0, 60_000), (0.5, 66_000), (1.0, 72_000)):
        again = SCHEDULE.after_pause_asked(failed(2, wait_ms=60_000), Planned(), fraction)
        assert again.due_at == START + 100 + wait_ms


@pytest.mark.parametrize(
    ("asked_ms", "due_ms"), [(1_000, 2_000), (5_000, 5_100), (20_000, 20_100), (60_000, 20_100)]
)
def test_a_refused_event_waits_as_requested_up_to_a_whole_schedule(asked_ms: int, due_ms: int) -> None:
    """Because the attempt counts, the next one starts at most twenty seconds after a failure."""
    retry = SCHEDULE.after_refusal(failed(1, wait_ms=asked_ms), Planned(), 0.5, None)
    assert retry == Retry(START + due_ms, START, START + 100)


def test_a_refused_event_ends_with_its_last_attempt() -> None:
    plan = Planned(START, START - 20_000, START - 19_900)
    ended = SCHEDULE.after_refusal(failed(4, wait_ms=5_000), plan, 0.5, START)
    assert ended == DeliveryEnd("dropped", "4 attempts failed; the last: status 500", missed=False)


@pytest.mark.parametrize(
    ("wait_ms", "pause_ms", "due_ms"),
    [
        (None, 1_000, 2_000),
        (None, 50_000, 50_000),
        (None, 0, 3_000),
        (30_000, 1_000, 33_000),
        (30_000, 40_000, 40_000),
    ],
)
def test_the_next_probe_of_a_quiet_endpoint_keeps_plan_pause_and_request(
    wait_ms: int | None, pause_ms: int, due_ms: int
) -> None:
    """The latest of the planned start, the pause between probes, and the requested pause."""
    took = 100 if due_ms == 2_000 else 3_000
    retry = SCHEDULE.after_quiet_probe(failed(1, took=took, wait_ms=wait_ms), Planned(), 0.5, None, pause_ms)
    assert retry == Retry(START + due_ms, START, START + took)


def test_a_probe_of_a_quiet_endpoint_that_used_up_the_attempts_ends() -> None:
    ended = SCHEDULE.after_quiet_probe(failed(4), Planned(START, START, START), 0.5, None, 10_000)
    assert ended == DeliveryEnd("dropped", "4 attempts failed; the last: status 500", missed=True)
