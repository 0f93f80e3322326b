"""The attributes of a conversation or a contact: their merging, and their bounds (decisions 4; ADR 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import orjson

from deskwire.engine.core.errors import Problem

ATTRIBUTES_MAX: Final = 100
"""Keys in `attributes`; a bound on what every event of the conversation has to carry."""

ATTRIBUTES_BYTES: Final = 16 * 1024
"""All attributes together as JSON."""

KEY_MAX: Final = 64
"""Characters of a key."""


_DEEP: Final = 16
"""Levels that an event, or a workflow, has around attributes."""

LEVELS_MAX: Final = 254 - _DEEP
"""Levels of arrays and objects in attributes, with themselves; the JSON encoder goes 254 deep."""

TOO_DEEP: Final = f"Attributes are nested at most {LEVELS_MAX} levels deep."


@dataclass(frozen=True, slots=True)
class AttributeIs:
    """An attribute with one value, a JSON scalar.

    Args:
        text: the value as a string, which it may be.
        number: the value as a decimal number with all of its digits, if it may be a number; 1, 1.0 and 1e0 are one.
        boolean: the value as true or false, if it may be that; neither is a number.
    """

    name: str
    text: str
    number: str | None = None
    boolean: bool | None = None

    def fits(self, value: object) -> bool:
        """Return whether an attribute's value is this one; integers are compared digit by digit."""
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
    """Return the attribute with a value as a filter writes it, which may be a string, a number, true or false."""
    if value in ("true", "false"):
        return AttributeIs(name, value, boolean=value == "true")
    return AttributeIs(name, value, _number(value))


def _number(text: str) -> str | None:
    """Return the number that a text is in JSON; None if it is none."""
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
    """Return the number as JSON writes it: an integer with all digits, a double with the fewest that name it."""
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
    """Return the attributes with those of `patch` in their place; null removes one."""
    return {key: value for key, value in {**attributes, **patch}.items() if value is not None}


def overfull(attributes: Mapping[str, Any], holder: str = "conversation") -> Problem | None:
    """Return what is wrong with the size of all attributes together, None if nothing is."""
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
