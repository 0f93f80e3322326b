"""Tallies count what they are given."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.counters import JOB_BOUNDS, LATENCY_BOUNDS_S, Histogram

BOUNDS = st.lists(st.integers(-50, 50), unique=True, max_size=8).map(lambda found: tuple(sorted(found)))
VALUES = st.lists(st.integers(-60, 60) | st.floats(-60, 60), max_size=60)


@given(BOUNDS, VALUES)
def test_each_bound_has_the_number_of_values_that_are_not_above_it(
    bounds: tuple[float, ...], values: list[float]
) -> None:
    histogram = Histogram(bounds)
    for value in values:
        histogram.observe(value)
    expected = [(bound, sum(value <= bound for value in values)) for bound in (*bounds, inf)]
    assert list(histogram.cumulative()) == expected
    assert histogram.total == pytest.approx(sum(values))


def test_the_bounds_of_times_and_jobs_grow() -> None:
    for bounds in (LATENCY_BOUNDS_S, JOB_BOUNDS):
        assert list(bounds) == sorted(set(bounds))
