"""Errors of definitions, and the rules that surveys and workflows share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct


class DefinitionError(Struct, frozen=True):
    """An error of a definition; `path` is a JSON pointer, empty for the whole definition."""

    path: str
    code: str
    message: str


COMMON_RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "wrong_type": "The value is of another JSON type than belongs here.",
        "required": "A member that must be there is missing.",
        "unknown_field": "There is no member of this name here.",
        "empty": "A text or list must not be empty.",
        "too_long": "A text has more characters than allowed.",
        "too_many": "A list has more items than allowed.",
        "bad_id": "An id has 1 to 64 letters, digits, `_` and `-`.",
        "nul_character": "A text or a name has U+0000.",
        "duplicate_id": "Two of the same list have the same id.",
    }
)
"""The message of each rule, by its code."""
