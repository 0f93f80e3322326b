"""Differences between two JSON values that clients may write differently: times as instants, 1 as 1.0."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

_EXACT_MAX: Final = 2**53  # larger numbers are inexact in JavaScript, and in Go's values of any type


def differences(expected: Any, found: Any, *, nulls: bool, at: str = "") -> Iterator[str]:
    """Yield each difference with its JSON pointer.

    Args:
        nulls: True if null and an absent field differ, as in the body of a PATCH.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in {**expected, **found}:
            pointer = f"{at}/{name}"
            if nulls and (name in expected) != (name in found):
                yield f"{pointer} {'is missing' if name in expected else 'is added'}"
            else:
                yield from differences(expected.get(name), found.get(name), nulls=nulls, at=pointer)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, nulls=nulls, at=f"{at}/{index}")
    elif not _equal(expected, found):
        yield f"{at} is {found!r:.200}, not {expected!r:.200}"


def _equal(expected: Any, found: Any) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if expected == found:
        return True
    if isinstance(expected, int) and abs(expected) > _EXACT_MAX and isinstance(found, int | float):
        return float(expected) == float(found)
    instants = _instant(expected), _instant(found)
    return instants[0] is not None and instants[0] == instants[1]


def _instant(value: Any) -> datetime | None:
    """Return the time that a text is, which has a zone; None for any other value."""
    if not isinstance(value, str) or len(value) < 20 or value[10] not in "Tt":  # a date, T, a time and a zone
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
