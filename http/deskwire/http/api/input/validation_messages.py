"""Codes and messages of problems of an input.

They replace pydantic's messages, which mention Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import ErrorDetails

from deskwire.engine.core.errors import Problem
from deskwire.engine.core.text import NUL_PROBLEM_CODE

# The codes of problems by pydantic's types of errors; others are `invalid`.
_CODES: Final = {
    "blank": "blank",
    NUL_PROBLEM_CODE: NUL_PROBLEM_CODE,
    "missing": "required",
    "extra_forbidden": "unknown_field",
    "string_too_short": "too_short",
    "string_too_long": "too_long",
    "too_short": "too_few",
    "too_long": "too_many",
    "greater_than_equal": "too_small",
    "less_than_equal": "too_large",
    "greater_than": "too_small",
    "less_than": "too_large",
    "literal_error": "not_allowed",
    "duplicate": "duplicate",
    "too_deep": "too_deep",
}

UNKNOWN_FIELD: Final = "There is no such field."
UNKNOWN_PARAMETER: Final = "There is no such parameter."

_ENTRIES: Final = {"Dictionary": "fields"}
# The last part of pydantic's location if a name is wrong instead of a value.
_KEY: Final = "[key]"


def _counted(least: str, number: int, what: str) -> str:
    return f"This must have at {least} {number:,} {what.removesuffix('s') if number == 1 else what}."


_Context = Mapping[str, Any]
_WORDS: Final[Mapping[str, Callable[[_Context], str]]] = {
    "missing": lambda _: "This field is required.",
    "extra_forbidden": lambda _: UNKNOWN_FIELD,
    "model_type": lambda _: "This must be a JSON object.",
    "model_attributes_type": lambda _: "This must be a JSON object.",
    "dict_type": lambda _: "This must be a JSON object.",
    "list_type": lambda _: "This must be an array.",
    "tuple_type": lambda _: "This must be an array.",
    "string_type": lambda _: "This must be a string.",
    "none_required": lambda _: "This must be null.",
    "bool_type": lambda _: "This must be true or false.",
    "bool_parsing": lambda _: "This must be true or false.",
    "int_type": lambda _: "This must be an integer.",
    "int_parsing": lambda _: "This must be an integer.",
    "int_parsing_size": lambda _: "This must be an integer of 64 bits.",
    "int_from_float": lambda _: "This must be an integer.",
    "float_type": lambda _: "This must be a number.",
    "float_parsing": lambda _: "This must be a number.",
    "finite_number": lambda _: "This must be a finite number.",
    "string_unicode": lambda _: "This must be Unicode text.",
    "string_too_short": lambda context: _counted("least", context["min_length"], "characters"),
    "string_too_long": lambda context: _counted("most", context["max_length"], "characters"),
    "too_short": lambda context: _counted("least", context["min_length"], _entries(context)),
    "too_long": lambda context: _counted("most", context["max_length"], _entries(context)),
    "greater_than_equal": lambda context: f"This must be at least {_number(context['ge'])}.",
    "less_than_equal": lambda context: f"This must be at most {_number(context['le'])}.",
    "greater_than": lambda context: f"This must be more than {_number(context['gt'])}.",
    "less_than": lambda context: f"This must be less than {_number(context['lt'])}.",
    "literal_error": lambda context: f"This must be {context['expected']}.",
    "string_pattern_mismatch": lambda context: _form(context["pattern"]),
}
# The beginning of the pattern of an id.
_ID: Final = re.compile(r"\^([a-z]+_)\[0-7\]")


def _entries(context: _Context) -> str:
    return _ENTRIES.get(context.get("field_type", ""), "items")


def _number(value: float) -> str:
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def _form(pattern: str) -> str:
    """Return the message for a text of the wrong form.

    Texts that are not ids have messages of their own (`matching`).
    """
    prefix = _ID.match(pattern)
    return (
        "This is not of the right form."
        if prefix is None
        else f"An id here is {prefix[1]} and 26 characters."
    )


def pointer_token(part: str) -> str:
    """Return a name as a token of a JSON Pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")


def problem_of(error: ErrorDetails, mark: str) -> Problem:
    """Return one of pydantic's errors as a problem with its pointer, code and message.

    Args:
        mark: `?` for a query parameter, `/` for a field of a body.
    """
    parts = [pointer_token(str(part)) for part in error["loc"] if part != _KEY]
    pointer = f"?{'.'.join(parts)}" if mark == "?" else "".join(f"/{part}" for part in parts)
    kind = error["type"]
    return Problem(pointer, _CODES.get(kind, "invalid"), _sentence(error))


def _sentence(error: ErrorDetails) -> str:
    """Return our message for one of pydantic's own errors.

    Our validators have messages of their own.
    """
    context = error.get("ctx", {})
    words = _WORDS.get(error["type"])
    if words is not None and (context or not _ours(error)):
        return words(context)
    return error["msg"].removeprefix("Value error, ")


def _ours(error: ErrorDetails) -> bool:
    """True if one of our validators has raised an error of a pydantic type.

    Such an error has a message of its own.
    """
    return error["type"] in ("string_too_short", "literal_error", "too_long")
