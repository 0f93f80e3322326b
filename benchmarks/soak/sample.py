"""A sample of the server at one time, and the table of all samples."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final

_SERIES: Final = re.compile(r"^(\w+)(?:\{[^}]*\})? ([0-9.e+-]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """A line of the table.

    Args:
        at_s: seconds since the load began.
        memory_mb: resident, in 10^6 bytes.
        queue: changes that wait for a commit.
        held: webhook deliveries in memory.
        lag: events that the stream's consumers have not confirmed.
        conversations: in memory.
        database_mb: of the database and its log on the disk.
        p50_ms, p99_ms: of the messages posted in the last window; NaN before the first.
        posted, failed: messages since the beginning, and those that were not answered with 200.
        webhooks, frames, feed: events delivered since the beginning, by channel.
    """

    at_s: float
    memory_mb: float
    descriptors: int
    threads: int
    queue: float
    held: float
    lag: float
    conversations: float
    database_mb: float
    p50_ms: float
    p99_ms: float
    posted: int
    failed: int
    webhooks: int
    frames: int
    feed: int


def metrics(text: str) -> Mapping[str, float]:
    """Return the series of `/metrics` by name, with all labels added up."""
    found: dict[str, float] = {}
    for name, value in _SERIES.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def write_csv(path: Path, samples: Sequence[Sample]) -> None:
    """Write the table."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([field.name for field in fields(Sample)])
        table.writerows(
            [round(cell, 3) if isinstance(cell, float) else cell for cell in astuple(sample)]
            for sample in samples
        )
