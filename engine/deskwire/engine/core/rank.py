"""Percentiles by their nearest rank: always a value that is there, and no fraction to round."""

from __future__ import annotations


def nearest_rank(count: int, percent: int) -> int:
    """Return the place, among so many sorted values, of the least one that `percent` of a hundred do not exceed.

    Args:
        count: at least 1.
        percent: 1 to 100.
    """
    return -(-count * percent // 100) - 1
