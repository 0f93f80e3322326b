"""Counters: numbers that only grow, kept by whoever does the work and read by whoever shows it.

Counting takes well under a microsecond and no lock: each counter is written by one thread. A reader on another
thread may see it one observation late.
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
"""Bounds for what takes from half a millisecond to a long poll, in seconds."""

JOB_BOUNDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Bounds for the jobs of one commit."""


class Histogram:
    """A histogram: how often a value lay in each of a few ranges, and the sum of all values.

    Args:
        bounds: upper bounds of the ranges, included, growing; above the last is one range more.
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
        """Yield each bound with the number of values not above it; infinity, and so the count of all, comes last."""
        count = 0
        for bound, here in zip((*self._bounds, inf), tuple(self._counts), strict=True):
            count += here
            yield bound, count


class CommitCounters(Struct):
    """Group commits.

    Args:
        jobs: how many each that succeeded has carried out.
        seconds: how long it took, from its begin until it was on disk.
        refused: how many the disk has refused.
        failure: what it refused the last one with; None if it took that.
        done_at: when it took one last that changed anything, on Trio's clock.
    """

    jobs: Histogram = field(default_factory=lambda: Histogram(JOB_BOUNDS))
    seconds: Histogram = field(default_factory=Histogram)
    refused: int = 0
    failure: str | None = None
    done_at: float = -inf


class DiskSpace(Struct, frozen=True):
    """The bytes that the database takes of its disk, and those that are free there."""

    database: int
    wal: int
    free: int


class SharedCommitCounters(Struct):
    """The further costs of commits to a database that nodes share.

    Args:
        rounds: how long each of a batch's round trips took: `read`, `heads` and `commit`; of a small one the last two.
        decided_again: jobs that were decided again in the same commit, as another node had been first.
        found_stored, found_lost: commits whose answer did not come, by what a later write has found.
    """

    rounds: dict[str, Histogram] = field(
        default_factory=lambda: {name: Histogram() for name in ("read", "heads", "commit")}
    )
    decided_again: int = 0
    found_stored: int = 0
    found_lost: int = 0

    def note_outcome(self, *, stored: bool) -> bool:
        """Count a commit whose answer did not come; return whether it is stored."""
        self.found_stored += stored
        self.found_lost += not stored
        return stored
