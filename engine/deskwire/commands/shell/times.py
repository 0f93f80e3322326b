"""Times as operators type them: ISO 8601, or how long ago."""

from __future__ import annotations

import re
from typing import Final

import click

from deskwire.engine.core.clock import iso, milliseconds, wall_clock
from deskwire.engine.core.ids import is_id

_AGO: Final = re.compile(r"([0-9]{1,6})([smhd])")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def api_time(text: str, now: int) -> str:
    """Return the time as the API writes it.

    Args:
        text: ISO 8601, UTC unless it says otherwise, or a number with `s`, `m`, `h` or `d` for so long ago.
        now: milliseconds since the epoch.

    Raises ValueError if it is neither.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return iso(max(0, now - int(ago[1]) * _UNIT_MS[ago[2]]))
    try:
        return iso(milliseconds(text))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is no time: write 2026-11-01T12:00:00Z, or 30m, 2h, 7d for so long ago"
        ) from None


def time_or_event(option: str, text: str) -> str:
    """Return an event's id as it is, and a time as the API writes it. Raises UsageError that names the option."""
    return text if is_id(text, "evt") else str(time_of(option, text))


def time_of(option: str, text: str | None) -> str | None:
    """Return the time as the API writes it, None for None. Raises UsageError that names the option."""
    try:
        return None if text is None else api_time(text, wall_clock())
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}.") from None
