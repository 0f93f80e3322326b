"""The attributes of a conversation or a contact: their merging, and their bounds (decisions 4; ADR 5)."""

from __future__ import annotations

from collections.abc import Mapping
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
