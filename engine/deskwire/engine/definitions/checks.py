"""Checks of arbitrary JSON: types, members, lists, texts and ids. They report errors and never raise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any, Final

from deskwire.engine.core.text import NUL_MESSAGE, NUL_PROBLEM_CODE, nul_paths
from deskwire.engine.definitions.rules import DefinitionError

Errors = Iterator[DefinitionError]

ERRORS_MAX: Final = 1_000
"""Maximum errors in a response: a megabyte of invalid input has hundreds of thousands."""

NUMBER_MAX: Final = 10**15
"""The largest number, positive or negative, that is exact in every client."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN_MAX: Final = 40


def is_number(value: Any) -> bool:
    """Return whether `value` is a JSON number in the range of answers."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and -NUMBER_MAX <= value <= NUMBER_MAX
    )


def is_whole(value: Any) -> bool:
    """Return whether `value` is a JSON integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_date(value: Any) -> bool:
    """Return whether `value` is a date such as `2026-11-01`."""
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def listed(value: Any, limit: int) -> Sequence[Any]:
    """Return the first items of a list, or an empty list for any other value."""
    return value[:limit] if isinstance(value, list) else ()


def wrong_type(path: str, expected: str) -> DefinitionError:
    """Return the error that the value at `path` is not `expected`."""
    return DefinitionError(path, "wrong_type", f"This must be {expected}.")


def members(
    value: Mapping[str, Any], path: str, required: Sequence[str], optional: Sequence[str] = ()
) -> Errors:
    """Yield errors for missing and unknown members."""
    for name in required:
        if name not in value:
            yield DefinitionError(f"{path}/{name}", "required", "This is required.")
    for name in value:
        if name not in required and name not in optional:
            yield DefinitionError(f"{path}/{escaped(name)}", "unknown_field", "There is no such field.")


def items(value: Any, path: str, limit: int, *, may_be_empty: bool = False) -> Errors:
    """Yield errors of a list, but not of its items."""
    if not isinstance(value, list):
        yield wrong_type(path, "an array")
    elif not value and not may_be_empty:
        yield DefinitionError(path, "empty", "This must not be empty.")
    elif len(value) > limit:
        yield DefinitionError(
            path, "too_many", f"At most {limit:,} are allowed; the others are not looked at."
        )


def text(value: Any, path: str, limit: int) -> Errors:
    """Yield errors of a text."""
    if not isinstance(value, str):
        yield wrong_type(path, "a string")
    elif not value.strip():
        yield DefinitionError(path, "empty", "This must not be empty.")
    elif len(value) > limit:
        yield DefinitionError(path, "too_long", f"This may have at most {limit:,} characters.")


def identifier(value: Any, path: str) -> Errors:
    """Yield errors of an id."""
    if not isinstance(value, str):
        yield wrong_type(path, "a string")
    elif not _ID.fullmatch(value):
        yield DefinitionError(path, "bad_id", "An id has 1 to 64 letters, digits, _ and -.")


def nul_errors(value: Any) -> Errors:
    """Yield the texts and names that have U+0000, wherever they are."""
    for path in nul_paths(value):
        yield DefinitionError(
            "".join(f"/{escaped(str(part))}" for part in path), NUL_PROBLEM_CODE, NUL_MESSAGE
        )


def escaped(name: str) -> str:
    """Return a name as part of a JSON pointer (RFC 6901), cut to a bounded length."""
    return name[:_SHOWN_MAX].replace("~", "~0").replace("/", "~1")


def first(errors: Errors, limit: int) -> list[DefinitionError]:
    """Return the first errors, so that a hostile definition can't make an endless list."""
    return list(islice(errors, limit))
