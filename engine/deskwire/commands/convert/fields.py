"""Fields of records that others have written: whatever stands there, a value of the wanted kind or none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from deskwire.commands.convert.text import clean
from deskwire.engine.core.clock import milliseconds

_SECONDS_MAX: Final = 100_000_000_000
"""A number beyond this counts milliseconds: as seconds it would be the year 5138."""
_LATEST: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, beyond which no time can be written."""
_DIGITS_MAX: Final = 16
_DEPTH_MAX: Final = 32
_AROUND: Final = 8
"""Levels of a record around the values that are kept of it."""


def text(value: object) -> str | None:
    """Return a text or a number as a text; None for anything else, and for one that shows nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return clean(str(value)).strip() or None


def moment(value: object) -> int | None:
    """Return a time in milliseconds, given in ISO 8601 or as seconds since the epoch; None for anything else."""
    if isinstance(value, str):
        try:
            return milliseconds(value)
        except ValueError:
            return (
                moment(int(value))
                if value.isascii() and value.isdigit() and len(value) < _DIGITS_MAX
                else None
            )
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    at = round(value if value > _SECONDS_MAX else value * 1000)
    return at if 0 < at <= _LATEST else None


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of an array."""
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def texts(value: object) -> list[str]:
    """Return the texts of an array."""
    found = [text(each) for each in value] if isinstance(value, list) else []
    return [each for each in found if each is not None]


def storable(value: Any, depth: int = 0) -> Any:
    """Return a value of JSON as it can be kept: with clean texts, no number beyond 64 bits, and not too deep."""
    if depth > _DEPTH_MAX:
        return None
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): storable(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [storable(each, depth + 1) for each in value]
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return str(value)
    return value


def readable(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with clean texts, those included that only name something."""
    cleaned: dict[str, Any] = storable(dict(record), -_AROUND)
    return cleaned


def filled(**values: Any) -> dict[str, Any]:
    """Return those attributes that say something."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def beside(own: Mapping[str, Any], reserved: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes of the source's users beside those of a converter, which have their names for themselves."""
    renamed = {f"custom {name}" if name in reserved else name: value for name, value in own.items()}
    return {**renamed, **reserved}
