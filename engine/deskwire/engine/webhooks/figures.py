"""Delivery statistics of an endpoint: counts per hour or day, and latencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.values import nearest_rank
from deskwire.engine.webhooks.delivery import DeliveryStatus

Bucket = Literal["hour", "day"]

BUCKET_MS: Final[Mapping[Bucket, int]] = {"hour": 3_600_000, "day": 86_400_000}

# Maximum buckets per request: a week of hours.
BUCKETS_MAX: Final = 168

# Latencies are of this many deliveries, the newest that arrived.
LATENCY_SAMPLE_MAX: Final = 1_000


# Buckets counted by one database read, which keeps it short even with a million deliveries a day.
BUCKET_BATCH_SIZE: Final[Mapping[Bucket, int]] = {"hour": 24, "day": 1}


class BucketCounts(Struct, frozen=True):
    """Number of deliveries created within a bucket, by their current status.

    `at` is the start of the bucket in milliseconds.
    """

    at: int
    of: Mapping[DeliveryStatus, int]


class Figures(Struct, frozen=True):
    """Delivery statistics.

    Args:
        buckets: oldest first.
        took: latencies from creation to arrival (ms), of the newest delivery first.
    """

    buckets: Sequence[BucketCounts]
    took: Sequence[int]


def bucket_starts(since: int, now: int, bucket: Bucket) -> Sequence[int]:
    """Return the starts (ms) of the buckets from `since` to `now`.

    Buckets start at whole hours or days of UTC. If there are more than the maximum, only the newest are
    returned.
    """
    length = BUCKET_MS[bucket]
    last = now // length
    first = max(min(since, now) // length, last - BUCKETS_MAX + 1)
    return [number * length for number in range(first, last + 1)]


def bucket_batches(starts: Sequence[int], bucket: Bucket) -> Iterator[tuple[Sequence[int], int | None]]:
    """Yield the bucket starts of each database read, newest first, and the end (ms).

    The end is None for the newest batch.
    """
    size = BUCKET_BATCH_SIZE[bucket]
    until: int | None = None
    for end in range(len(starts), 0, -size):
        part = starts[max(0, end - size) : end]
        yield part, until
        until = part[0]


def merged_figures(newest_first: Sequence[Figures]) -> Figures:
    """Return the figures of all batches as one."""
    buckets = [each for part in reversed(newest_first) for each in part.buckets]
    return Figures(buckets, [ms for part in newest_first for ms in part.took][:LATENCY_SAMPLE_MAX])


def percentile(sorted_values: Sequence[int], percent: int) -> int | None:
    """Return the nearest-rank percentile, None without values."""
    return sorted_values[nearest_rank(len(sorted_values), percent)] if sorted_values else None


def figures_view(figures: Figures, bucket: Bucket) -> dict[str, Any]:
    """Return the figures for the API."""
    took = sorted(figures.took)
    return {
        "bucket": bucket,
        "items": [{"at": iso(each.at), **each.of} for each in figures.buckets],
        "latency": {
            "deliveries": len(took),
            "p50Ms": percentile(took, 50),
            "p99Ms": percentile(took, 99),
        },
    }
