"""Buckets for any number of strangers, in memory of a fixed size."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.limits.rate_limit import Quota, RateLimit
from deskwire.engine.core.limits.sketch import COLUMNS, ROWS, Sketch

names = st.text(max_size=3)
takes = st.lists(st.tuples(names, st.integers(0, 5)), max_size=60)


@given(takes)
def test_sketch_allows_no_key_more_calls_than_a_bucket_of_its_own(said: list[tuple[str, int]]) -> None:
    """Cells that are shared may refuse one too many, never one too few; with so few keys none is."""
    rate, now = RateLimit(6, 3), 1.0
    sketch, own = Sketch(rate), {who: Sketch(rate) for who, _ in said}
    for who, pause in said:
        now += pause
        assert sketch.take(who, now) == own[who].take(who, now)


def test_reading_takes_no_call_and_a_refusal_is_counted() -> None:
    sketch = Sketch(RateLimit(60, 1))
    assert [sketch.peek("a", 1.0), sketch.peek("a", 1.0)] == [Quota(1, 1, 0, 0)] * 2
    assert sketch.take("a", 1.0) == Quota(1, 0, 1, 0)
    assert sketch.take("a", 1.0) == Quota(1, 0, 1, 1)
    assert sketch.take("b", 1.0) == Quota(1, 0, 1, 0)
    assert sketch.refused == 1


def test_without_a_rate_there_is_no_limit() -> None:
    sketch = Sketch(None)
    assert [sketch.take("a", 1.0), sketch.peek("a", 1.0)] == [None, None]


@pytest.mark.thorough
def test_other_keys_can_not_free_a_bucket_before_its_time() -> None:
    sketch = Sketch(RateLimit(1, 2, 60))
    for _ in range(2):
        sketch.take("guesser", 1.0)
    for number in range(2 * COLUMNS):
        sketch.take(f"2001:db8:{number:x}::/64", 1.0)
    left = sketch.peek("guesser", 1.0)
    assert left is not None
    assert left.retry_after_s == 3_600
    assert sketch.size == ROWS * COLUMNS * 8


def test_a_stranger_hardly_ever_meets_the_cells_of_others() -> None:
    sketch = Sketch(RateLimit(1, 1, 60))
    for number in range(9_000):
        sketch.take(f"guesser {number}", 1.0)
    others = [sketch.peek(f"user {number}", 1.0) for number in range(9_000)]
    assert sum(left is not None and left.retry_after_s > 0 for left in others) < 20


def test_cells_can_not_be_foretold() -> None:
    assert Sketch(None)._cells_of("a") != Sketch(None)._cells_of("a")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells in this way how much memory is in use")
def test_cells_take_no_memory_before_the_first_count() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident()
    sketches = [Sketch(RateLimit(1, 1)) for _ in range(20)]
    assert [each.peek("a", 1.0) for each in sketches] == [Quota(1, 1, 0, 0)] * 20
    assert resident() - before < sum(each.size for each in sketches) / 10
