"""Figures of what became of the deliveries to an endpoint: how many in each hour or day, and how long they took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.rank import nearest_rank
from deskwire.engine.webhooks.delivery import DeliveryStatus

Bucket = Literal["hour", "day"]

BUCKET_MS: Final[Mapping[Bucket, int]] = {"hour": 3_600_000, "day": 86_400_000}

BUCKETS_MAX: Final = 168
"""Buckets that are counted at once: a week of hours."""

LATENCY_SAMPLE_MAX: Final = 1_000
"""Deliveries whose times are looked at, the newest that arrived."""


BUCKET_BATCH_SIZE: Final[Mapping[Bucket, int]] = {"hour": 24, "day": 1}
"""Buckets that one read counts, so that it stays short with a million deliveries a day."""


class BucketCounts(Struct, frozen=True):
    """The numbers of deliveries that were made within a bucket, by their state now; `at` is its begin in milliseconds."""

    at: int
    of: Mapping[DeliveryStatus, int]


class Figures(Struct, frozen=True):
    """The buckets, oldest first, and the times from the making of a delivery to its arrival (ms), those of the newest first."""

    buckets: Sequence[BucketCounts]
    took: Sequence[int]


def bucket_starts(since: int, now: int, bucket: Bucket) -> Sequence[int]:
    """Return where the buckets from `since` to `now` begin (ms), at whole hours or days of UTC; the newest ones if they are too many."""
    length = BUCKET_MS[bucket]
    last = now // length
    first = max(min(since, now) // length, last - BUCKETS_MAX + 1)
    return [number * length for number in range(first, last + 1)]


def bucket_batches(starts: Sequence[int], bucket: Bucket) -> Iterator[tuple[Sequence[int], int | None]]:
    """Yield what each read counts, the newest part first: where its buckets begin, and where its last one ends, if it does."""
    size = BUCKET_BATCH_SIZE[bucket]
    until: int | None = None
    for end in range(len(starts), 0, -size):
        part = starts[max(0, end - size) : end]
        yield part, until
        until = part[0]


def merged_figures(newest_first: Sequence[Figures]) -> Figures:
    """Return the figures of parts as one."""
    buckets = [each for part in reversed(newest_first) for each in part.buckets]
    return Figures(buckets, [ms for part in newest_first for ms in part.took][:LATENCY_SAMPLE_MAX])


def percentile(sorted_values: Sequence[int], percent: int) -> int | None:
    """Return the smallest value that so many of a hundred values do not exceed; None without values."""
    return sorted_values[nearest_rank(len(sorted_values), percent)] if sorted_values else None


def figures_view(figures: Figures, bucket: Bucket) -> dict[str, Any]:
    """Return the figures as the API shows them."""
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
