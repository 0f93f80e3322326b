"""Fields of records that others have written: whatever stands there, a value of the wanted kind or none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deskwire.commands.convert.text import clean, trimmed
from deskwire.engine.core.clock import milliseconds

_SECONDS_MAX: Final = 100_000_000_000
"""A number beyond this counts milliseconds: as seconds it would be the year 5138."""
_EARLIEST: Final = -30_610_224_000_000
"""The begin of the year 1000. Before it are the zeros of databases and languages, which mean no time."""
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


def written(value: object) -> str | None:
    """Return the text of a message with its indentation; None for anything else, and for one that shows nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return trimmed(clean(str(value))) or None


def moment(value: object) -> int | None:
    """Return a time in milliseconds, given in ISO 8601 or as seconds since the epoch; None for anything else."""
    if isinstance(value, str):
        try:
            named = milliseconds(value)
            return named if _EARLIEST <= named <= _LATEST else None
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
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def readable(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with clean texts, those included that only name something."""
    cleaned: dict[str, Any] = storable(dict(record), -_AROUND)
    return cleaned


def filled(**values: Any) -> dict[str, Any]:
    """Return those attributes that say something."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def latest(*values: object) -> int | None:
    """Return the time of the first value that is one (see `moment`), as the version of a record."""
    return next((at for at in map(moment, values) if at is not None), None)


def identity(record: Mapping[str, Any], names: Mapping[str, Sequence[str]], *, whole: bool) -> dict[str, Any]:
    """Return the fields of a person by their names here, each the first one with a value of its names there.

    Args:
        whole: the record is all that is known of the person, so that a field without a value has none. The mention of a
            person in another record only leaves it out.
    """
    found: dict[str, Any] = {}
    for name, theirs in names.items():
        given = [record[each] for each in theirs if each in record]
        value = next((value for value in map(text, given) if value is not None), None)
        if value is not None or (whole and given):
            found[name] = value
    return found


def beside(own: Mapping[str, Any], reserved: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes of the source's users beside those of a converter, which have their names for themselves."""
    renamed = {f"custom {name}" if name in reserved else name: value for name, value in own.items()}
    return {**renamed, **reserved}
