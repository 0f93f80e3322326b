"""Parser of `Retry-After` (RFC 9110, section 10.2.3; decisions 6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

_STATUSES: Final = (429, 503)
# Longer than any horizon. Further digits of a number are ignored.
_SECONDS_MAX: Final = 10_000_000


def asked_wait_ms(status: int | None, headers: Sequence[tuple[bytes, bytes]], now: int) -> int | None:
    """Return the requested wait before the next attempt (ms), None without one.

    Only a 429 or a 503 can request a wait, in seconds or as a date.

    Args:
        now: time of the response, in milliseconds since the epoch.
    """
    if status not in _STATUSES:
        return None
    value = next((value for name, value in headers if name.lower() == b"retry-after"), b"")
    text = value.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:8]), _SECONDS_MAX) * 1000
    return _until(text, now)


def _until(date: str, now: int) -> int | None:
    try:
        at = parsedate_to_datetime(date)
        return max(0, round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1000) - now)
    except (ValueError, OverflowError):
        return None
