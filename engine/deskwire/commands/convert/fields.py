"""Typed fields of foreign records: a value of the expected type, or none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deskwire.commands.convert.text import clean, trimmed
from deskwire.engine.core.clock import milliseconds

_SECONDS_MAX: Final = 100_000_000_000  # larger numbers are milliseconds: as seconds, this is the year 5138
_EARLIEST: Final = (
    -30_610_224_000_000
)  # the year 1000; earlier times are the zeros of databases and languages
_LATEST: Final = 253_402_300_799_999  # the end of the year 9999, the last time that can be written
_DIGITS_MAX: Final = 16
_DEPTH_MAX: Final = 32
_AROUND: Final = 8  # levels of a record around the stored values


def text(value: object) -> str | None:
    """Return a text or number as text; None for anything else and for an invisible text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return clean(str(value)).strip() or None


def written(value: object) -> str | None:
    """Return a message's text with its indentation; None for anything else and for an invisible text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return trimmed(clean(str(value))) or None


def moment(value: object) -> int | None:
    """Return a time in milliseconds from ISO 8601 or seconds since the epoch; None for anything else."""
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
    """Return an object; an empty one for anything else."""
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
    """Return a JSON value that can be stored: clean texts, 64-bit numbers, limited depth."""
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
    """Return a record with clean texts, including its keys."""
    cleaned: dict[str, Any] = storable(dict(record), -_AROUND)
    return cleaned


def filled(**values: Any) -> dict[str, Any]:
    """Return the attributes that have a value."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def latest(*values: object) -> int | None:
    """Return the first value that is a time (see `moment`), as the version of a record."""
    return next((at for at in map(moment, values) if at is not None), None)


def identity(record: Mapping[str, Any], names: Mapping[str, Sequence[str]], *, whole: bool) -> dict[str, Any]:
    """Return the fields of a person, each from the first of its names in the record that has a value.

    Args:
        whole: the record is complete, so a field without a value is empty. A mention of a person in another
            record only omits it.
    """
    found: dict[str, Any] = {}
    for name, theirs in names.items():
        given = [record[each] for each in theirs if each in record]
        value = next((value for value in map(text, given) if value is not None), None)
        if value is not None or (whole and given):
            found[name] = value
    return found


def beside(own: Mapping[str, Any], reserved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of the source's users, without names that the converter uses."""
    renamed = {f"custom {name}" if name in reserved else name: value for name, value in own.items()}
    return {**renamed, **reserved}
