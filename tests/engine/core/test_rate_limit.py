"""Buckets that refill at a steady pace (decisions 8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.limits import rate_limit as buckets
from deskwire.engine.core.limits.rate_limit import Buckets, Quota, RateLimit, quota, take

MINUTE_NS = 60_000_000_000

rates = st.builds(RateLimit, per_minute=st.integers(1, 10_000), burst=st.integers(1, 50))
pauses = st.lists(st.integers(0, MINUTE_NS), max_size=60)


def moments(start: int, gaps: list[int]) -> list[int]:
    """Times with these pauses between them."""
    found = [start]
    for gap in gaps:
        found.append(found[-1] + gap)
    return found


@given(rates, st.integers(0, 10**18), pauses)
def test_no_interval_allows_more_than_the_burst_and_the_refill(
    rate: RateLimit, start: int, gaps: list[int]
) -> None:
    full_at, taken = 0, []
    for now in moments(start, gaps):
        after = take(rate, full_at, now)
        if after is not None:
            full_at = after
            taken.append(now)
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            refilled = (taken[last] - taken[first]) // rate.step_ns
            assert last - first + 1 <= rate.burst + refilled


@given(rates, st.integers(0, 10**18))
def test_an_unused_bucket_gives_its_burst_at_once_and_then_nothing(rate: RateLimit, now: int) -> None:
    full_at = 0
    for taken in range(rate.burst):
        assert quota(rate, full_at, now).remaining == rate.burst - taken
        after = take(rate, full_at, now)
        assert after is not None
        full_at = after
    assert take(rate, full_at, now) is None
    assert quota(rate, full_at, now).remaining == 0


@given(rates, st.integers(0, 10**18), pauses)
def test_call_after_the_given_wait_is_served_and_an_earlier_one_refused(
    rate: RateLimit, start: int, gaps: list[int]
) -> None:
    full_at = 0
    for now in moments(start, gaps):
        left = quota(rate, full_at, now)
        after = take(rate, full_at, now)
        assert (after is None) == (left.remaining == 0) == (left.retry_after_s > 0)
        if after is None:
            assert take(rate, full_at, now + left.retry_after_s * 1_000_000_000) is not None
            assert take(rate, full_at, now + (left.retry_after_s - 1) * 1_000_000_000) is None
        else:
            full_at = after


@given(rates, st.integers(0, 10**18), st.integers(1, 50))
def test_a_bucket_is_full_again_when_it_says(rate: RateLimit, now: int, taken: int) -> None:
    full_at = 0
    for _ in range(taken):
        full_at = take(rate, full_at, now) or full_at
    reset_s = quota(rate, full_at, now).reset_s
    assert quota(rate, full_at, now + reset_s * 1_000_000_000).remaining == rate.burst


@pytest.mark.parametrize(("per_minute", "step_ns"), [(60, 1_000_000_000), (7, 8_571_428_572), (1, MINUTE_NS)])
def test_refill_is_spread_evenly_over_a_minute(per_minute: int, step_ns: int) -> None:
    """Rounded up, so that no minute gives more than it should."""
    assert RateLimit(per_minute, 1).step_ns == step_ns


@pytest.mark.parametrize(
    ("missing_ns", "left"),
    [
        (0, Quota(3, 3, 0, 0)),
        (1, Quota(3, 2, 1, 0)),
        (2_000_000_000, Quota(3, 1, 2, 0)),
        (2_000_000_001, Quota(3, 0, 3, 1)),
        (3_000_000_000, Quota(3, 0, 3, 1)),
        (5_000_000_000, Quota(3, 0, 5, 3)),
        (-5, Quota(3, 3, 0, 0)),
    ],
)
def test_remaining_wait_is_given_in_whole_seconds_rounded_up(missing_ns: int, left: Quota) -> None:
    assert quota(RateLimit(60, 3), 10**18 + missing_ns, 10**18) == left


def test_rate_of_zero_is_no_limit_and_shows_no_figures() -> None:
    free = Buckets(None)
    assert [free.take("a", 0.0), free.peek("a", 0.0), len(free)] == [None, None, 0]


def test_key_with_an_empty_bucket_takes_nothing_from_another() -> None:
    shared = Buckets(RateLimit(60, 1))
    for who in ("a", "b"):
        first = shared.take(who, 1.0)
        assert first is not None
        assert (first.remaining, first.retry_after_s, first.reset_s) == (0, 0, 1)
    second = shared.take("a", 1.0)
    assert second is not None
    assert (second.retry_after_s, shared.refused) == (1, 1)


@pytest.mark.thorough
def test_buckets_that_are_full_again_make_room() -> None:
    shared = Buckets(RateLimit(60, 1))
    for number in range(10 * buckets.BUCKETS_MAX):
        shared.take(number, number / 1_000)
    assert len(shared) <= buckets.BUCKETS_MAX


def test_no_bucket_is_dropped_before_it_is_full_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "BUCKETS_MAX", 2)
    shared = Buckets(RateLimit(60, 2))
    for who in ("a", "b", "a", "c", "d"):
        shared.take(who, 1.0)
    left = [shared.peek(who, 1.0) for who in ("a", "b", "c", "d", "e")]
    assert [each.remaining for each in left if each] == [0, 1, 1, 1, 2]


def test_used_calls_come_back_with_time_and_reading_takes_none() -> None:
    shared = Buckets(RateLimit(60, 2))
    assert [shared.take("a", 1.0), shared.take("a", 1.0)] == [Quota(2, 1, 1, 0), Quota(2, 0, 2, 0)]
    assert shared.take("a", 1.25) == Quota(2, 0, 2, 1)
    assert [shared.peek("a", 2.0), shared.peek("a", 2.0)] == [Quota(2, 1, 1, 0)] * 2
    assert shared.take("a", 2.0) == Quota(2, 0, 2, 0)


def test_nodes_that_share_a_rate_allow_and_report_it_together() -> None:
    nodes = [Buckets(RateLimit(60, 10)) for _ in range(3)]
    for node in nodes:
        node.share(3)
    first = nodes[0].take("who", 0.0)
    assert first is not None
    assert (first.limit, first.remaining) == (10, 9)
    taken = sum(
        (left := node.take("who", 0.0)) is not None and not left.retry_after_s
        for node in nodes
        for _ in range(20)
    )
    assert 10 <= taken + 1 <= 12, "two too many at the most, as each part is rounded up"
    left = nodes[0].take("who", 0.0)
    assert left is not None
    assert left.retry_after_s == 3, "a third of the pace"
    nodes[0].share(1)
    alone = nodes[0].take("other", 0.0)
    assert alone == Quota(10, 9, 1, 0)


def test_no_node_allows_nothing() -> None:
    assert RateLimit(2, 1).shared(50) == RateLimit(1, 1)


@pytest.mark.parametrize(
    ("nodes", "part"),
    [(1, RateLimit(60, 10)), (2, RateLimit(30, 5)), (3, RateLimit(20, 4)), (7, RateLimit(9, 2))],
)
def test_each_node_has_its_part_of_a_rate_rounded_up(nodes: int, part: RateLimit) -> None:
    assert RateLimit(60, 10).shared(nodes) == part


def test_a_part_of_an_hourly_rate_is_refilled_over_the_hour() -> None:
    hourly = RateLimit(60, 10, minutes=60)
    assert hourly.step_ns == MINUTE_NS
    assert hourly.shared(2) == RateLimit(30, 5, minutes=60)
    assert hourly.shared(2).step_ns == 2 * MINUTE_NS


def test_two_nodes_show_the_quota_of_both() -> None:
    node = Buckets(RateLimit(60, 10))
    node.share(2)
    assert node.take("who", 0.0) == Quota(10, 8, 2, 0)
    assert node.peek("who", 0.0) == Quota(10, 8, 2, 0)


def test_returned_call_can_be_taken_again() -> None:
    shared = Buckets(RateLimit(60, 1))
    assert shared.take("a", 5.0) == Quota(1, 0, 1, 0)
    shared.give_back("a")
    assert shared.peek("a", 5.0) == Quota(1, 1, 0, 0)
    assert shared.take("a", 5.0) == Quota(1, 0, 1, 0)


def test_return_for_an_unknown_key_or_without_a_limit_changes_nothing() -> None:
    shared, free = Buckets(RateLimit(60, 1)), Buckets(None)
    shared.give_back("a")
    free.give_back("a")
    assert (len(shared), len(free)) == (0, 0)


def test_buckets_are_swept_only_when_they_exceed_their_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buckets, "BUCKETS_MAX", 2)
    shared = Buckets(RateLimit(60, 1))
    shared.take("a", 1.0)
    shared.take("b", 2.0)
    assert len(shared) == 2, "the first is full again, but there is room"
    shared.take("c", 2.0)
    assert len(shared) == 2, "the first made room in the moment in which it was full again"


def test_room_for_twice_the_buckets_that_are_not_full_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "BUCKETS_MAX", 2)
    shared, sizes = Buckets(RateLimit(60, 1)), []
    for who, now_s in (("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 9.0), ("e", 9.0), ("f", 9.0), ("g", 9.0)):
        shared.take(who, now_s)
        sizes.append(len(shared))
    assert sizes == [1, 2, 3, 4, 5, 6, 4], "six have room once three had to be kept"


def test_rate_shows_its_parameters() -> None:
    assert repr(RateLimit(60, 10)) == "RateLimit(per_minute=60, burst=10, minutes=1)"
