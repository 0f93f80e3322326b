"""Wall-clock time in milliseconds and its form on the wire (decisions 1)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
"""Returns milliseconds since the epoch."""


def wall_clock() -> int:
    """Milliseconds since the epoch by the system's clock."""
    return time.time_ns() // 1_000_000


def iso(ms: int) -> str:
    """`ms` as ISO 8601 UTC with milliseconds and `Z`."""
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def iso_or_none(ms: int | None) -> str | None:
    """As `iso`; None stays None."""
    return None if ms is None else iso(ms)
