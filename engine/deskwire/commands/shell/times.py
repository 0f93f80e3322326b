"""Times on the command line: ISO 8601, or an age such as 30m."""

from __future__ import annotations

import re
from typing import Final

import click

from deskwire.engine.core.clock import iso, milliseconds, wall_clock
from deskwire.engine.core.ids import is_id

_AGO: Final = re.compile(r"([0-9]{1,6})([smhd])")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def api_time(text: str, now: int) -> str:
    """Return the time in the API's format.

    Args:
        text: ISO 8601, UTC by default, or a number with `s`, `m`, `h` or `d` for an age.
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
            f"{text!r} is not a time: write 2026-11-01T12:00:00Z, or an age such as 30m, 2h or 7d"
        ) from None


def time_or_event(option: str, text: str) -> str:
    """Return an event id unchanged, and a time in the API's format. Raises UsageError with the option's name."""
    return text if is_id(text, "evt") else str(time_of(option, text))


def time_of(option: str, text: str | None) -> str | None:
    """Return the time in the API's format, None for None. Raises UsageError with the option's name."""
    try:
        return None if text is None else api_time(text, wall_clock())
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}.") from None
