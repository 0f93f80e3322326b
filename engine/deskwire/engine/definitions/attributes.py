"""Attributes of conversations and contacts: merging and limits (decisions 4; ADR 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import orjson

from deskwire.engine.core.errors import Problem

ATTRIBUTES_MAX: Final = 100
"""Keys in `attributes`. Every event of the conversation carries them all."""

ATTRIBUTES_BYTES: Final = 16 * 1024
"""Size of all attributes together as JSON."""

KEY_MAX: Final = 64
"""Characters of a key."""


_DEEP: Final = 16
"""Levels of nesting around attributes in an event or a workflow."""

LEVELS_MAX: Final = 254 - _DEEP
"""Levels of nesting of attributes. The JSON encoder supports 254."""

TOO_DEEP: Final = f"Attributes are nested at most {LEVELS_MAX} levels deep."


@dataclass(frozen=True, slots=True)
class AttributeIs:
    """An attribute with one value, a JSON scalar.

    Args:
        text: the value as a string.
        number: the value as a decimal with all digits if it is a number, so that 1, 1.0 and 1e0 are equal.
        boolean: the value if it is `true` or `false`.
    """

    name: str
    text: str
    number: str | None = None
    boolean: bool | None = None

    def fits(self, value: object) -> bool:
        """Return whether an attribute has this value; integers are compared digit by digit."""
        if isinstance(value, bool):
            return value is self.boolean
        if isinstance(value, str):
            return value == self.text
        return (
            self.number is not None
            and isinstance(value, int | float)
            and as_decimal(value) == Decimal(self.number)
        )


def attribute_is(name: str, value: str) -> AttributeIs:
    """Return the condition for a value of a filter: a string, which may look like a number or a boolean."""
    if value in ("true", "false"):
        return AttributeIs(name, value, boolean=value == "true")
    return AttributeIs(name, value, _number(value))


def _number(text: str) -> str | None:
    """Return the JSON number that a text contains; None for other texts."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    if type(value) not in (int, float) or not isfinite(value):
        return None
    digits = text.strip().removeprefix("-")
    # An integer beyond 64 bits was read as a double, and is compared by all of its digits.
    number = Decimal(text.strip()) if digits.isdecimal() else as_decimal(value)
    return f"{number:f}"


def as_decimal(number: float) -> Decimal:
    """Return the number as in JSON: an integer with all digits, a double in its shortest exact form."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def size_of(attributes: Mapping[str, Any]) -> int | None:
    """Return the bytes of the attributes as JSON; None if they are nested too deeply to be sent."""
    wrapped: Any = attributes
    for _ in range(_DEEP):
        wrapped = [wrapped]
    try:
        return len(orjson.dumps(wrapped)) - 2 * _DEEP
    except orjson.JSONEncodeError:
        return None


def merged(attributes: Mapping[str, Any], patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes updated by `patch`; null removes an attribute."""
    return {key: value for key, value in {**attributes, **patch}.items() if value is not None}


def overfull(attributes: Mapping[str, Any], holder: str = "conversation") -> Problem | None:
    """Return the problem if there are too many attributes, or if they are too large."""
    if len(attributes) > ATTRIBUTES_MAX:
        message = f"A {holder} holds at most {ATTRIBUTES_MAX} attributes; this makes {len(attributes)}."
        return Problem("/attributes", "too_many", message)
    size = size_of(attributes)
    if size is None:
        return Problem("/attributes", "too_deep", TOO_DEEP)
    if size > ATTRIBUTES_BYTES:
        message = f"All attributes together have at most {ATTRIBUTES_BYTES:,} bytes."
        return Problem("/attributes", "too_long", message)
    return None
