"""Wall-clock time in milliseconds, and its ISO 8601 form in the API (decisions 1)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], int]
"""A function that returns milliseconds since the epoch."""


def wall_clock() -> int:
    """Return the system clock in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@lru_cache(maxsize=1024)  # the views and the envelope of one message format the same few times repeatedly
def iso(ms: int) -> str:
    """Return `ms` as ISO 8601 in UTC, with milliseconds and `Z`."""
    seconds, rest = divmod(ms, 1000)
    return f"{_to_the_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=1024)
def _to_the_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def milliseconds(text: str) -> int:
    """Parse ISO 8601 `text` into milliseconds since the epoch.

    A time without an offset is read as UTC.

    Raises ValueError if the text is not a time.
    """
    try:  # Fast path for the format of `iso`, with or without milliseconds: an import parses millions of times.
        return _DAY(text[:10]) + _MINUTE[text[10:17]] + _SECOND[text[17:19]] + _FRACTION[text[19:]]
    except (KeyError, ValueError):
        return _milliseconds(text)


def _milliseconds(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        return round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ValueError("This is no time in ISO 8601, such as 2026-11-01T12:00:00Z.") from None


_DAY = lru_cache(maxsize=4096)(_milliseconds)
_MINUTE = {f"T{minute // 60:02}:{minute % 60:02}:": minute * 60_000 for minute in range(24 * 60)}
_SECOND = {f"{second:02}": second * 1000 for second in range(60)}
_FRACTION = {"Z": 0} | {f".{ms:03}Z": ms for ms in range(1000)}


@lru_cache(maxsize=1024)
def iso_or_none(ms: int | None) -> str | None:
    """Return a time as `iso` does, and None for None."""
    return None if ms is None else iso(ms)
