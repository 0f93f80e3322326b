"""Counters and histograms for metrics.

Counting takes well under a microsecond and no lock because each counter has one writing thread. A reader on another thread
may miss the newest observation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from math import inf
from typing import Final

from msgspec import Struct, field

LATENCY_BOUNDS_S: Final = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
"""Histogram bounds for latencies, from half a millisecond to a long poll."""

JOB_BOUNDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Histogram bounds for the number of jobs in one commit."""


class Histogram:
    """A histogram: the number of values in each of a few ranges, and the sum of all values.

    Args:
        bounds: inclusive upper bounds in ascending order. Larger values are counted in a last range without a bound.
    """

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...] = LATENCY_BOUNDS_S) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Yield each bound with the number of values up to it.

        The last bound is infinity, with the count of all values.
        """
        count = 0
        for bound, here in zip((*self._bounds, inf), tuple(self._counts), strict=True):
            count += here
            yield bound, count


class CommitCounters(Struct):
    """Counters of group commits.

    Args:
        jobs: histogram of jobs per successful commit.
        seconds: histogram of commit times, from the start until the commit is on disk.
        refused: number of commits that failed.
        failure: error of the last commit, None if it succeeded.
        done_at: time of the last successful commit that changed anything, on Trio's clock.
    """

    jobs: Histogram = field(default_factory=lambda: Histogram(JOB_BOUNDS))
    seconds: Histogram = field(default_factory=Histogram)
    refused: int = 0
    failure: str | None = None
    done_at: float = -inf


class DiskSpace(Struct, frozen=True):
    """The bytes that the database and its WAL use, and the bytes free on their disk."""

    database: int
    wal: int
    free: int


class SharedCommitCounters(Struct):
    """Further counters of commits to a database that several nodes share.

    Args:
        rounds: histogram of the time of each round trip of a batch: `read`, `heads`, `commit`. Small batches have no `read`.
        decided_again: jobs that were decided a second time in one commit because another node had committed first.
        found_stored, found_lost: commits of unknown outcome that a later write found stored, or lost.
    """

    rounds: dict[str, Histogram] = field(
        default_factory=lambda: {name: Histogram() for name in ("read", "heads", "commit")}
    )
    decided_again: int = 0
    found_stored: int = 0
    found_lost: int = 0

    def note_outcome(self, *, stored: bool) -> bool:
        """Count a commit whose outcome was unknown. Return `stored`."""
        self.found_stored += stored
        self.found_lost += not stored
        return stored
