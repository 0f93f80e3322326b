"""JSON as it was sent: its value, or in clear words why there is none, and the numbers that a value would not show.

Numbers are those that every JSON reader can hold (RFC 8259 6): integers of 64 bits, else doubles. An integer beyond
that would become a double that differs from it, so whoever keeps the value has to know of it (ADR 5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from deskwire.engine.core.errors import PROBLEMS_MAX

DEPTH_MAX: Final = 1_024
"""Levels of arrays and objects, one in the other."""

_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
INTEGERS: Final = f"An integer is at least {_LEAST} and at most {_MOST}; send a larger number as a text."

_WORDS: Final = (
    ("depth limit exceeded", f"it is nested more than {DEPTH_MAX:,} levels deep"),
    ("number is infinity", "a number in it is too large; the largest is about 1.8e308"),
    ("byte order mark", "it begins with a byte order mark, which JSON does not have"),
    ("not valid UTF-8", "it is not in UTF-8"),
    ("surrogate", "an escape in a text stands for half a character, a surrogate without the other one"),
)
"""Our words where the parser's would need explaining."""

_CONSTANT: Final = re.compile(r".?[+-]?(?:NaN|Infinity)", re.DOTALL)
"""What some writers take for numbers; the parser points at its sign, or behind that."""

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?[0-9][0-9.eE+-]*+|[{}\[\],:]')


class Malformed(ValueError):
    """This is not JSON, or more than is read here; the text goes on behind "The body is not valid JSON: "."""


def decoded(raw: bytes) -> Any:
    """The value. Of a key that an object has more than once the last one counts. Raises Malformed."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Malformed(_in_words(raw, error)) from None


def _in_words(raw: bytes, error: orjson.JSONDecodeError) -> str:
    if not raw.strip():
        return "it is empty"
    where = f" (line {error.lineno}, column {error.colno})"
    if _CONSTANT.match(error.doc, max(error.pos - 1, 0)):
        return f"NaN and Infinity are no numbers in JSON{where}"
    for sign, words in _WORDS:
        if sign in error.msg:
            return words + where
    return f"{error.msg}{where}"


class Large(NamedTuple):
    """Integers that a value does not show as they are: `pointers` to the first ones, and how many more there are."""

    pointers: list[str]
    unnamed: int


def large_integers(raw: bytes, value: Any) -> Large:
    """The integers in a JSON text that its value does not show as they are.

    Args:
        value: the text's value; as they are doubles there, one without a large double is not looked at any further.
    """
    return _large_integers(raw) if _has_large_double(value) else Large([], 0)


def _has_large_double(value: Any) -> bool:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if type(each) is float:
            if not _LEAST < each < _MOST:  # the least itself may be the nearest double to a lesser one
                return True
        elif type(each) is dict:
            waiting += each.values()
        elif type(each) is list:
            waiting += each
    return False


def _large_integers(raw: bytes) -> Large:
    """Walk through the pieces of a text that is known to be JSON; a stack holds the way to the next one.

    Only so many pointers are put together: each of them can be as long as the text.
    """
    pointers: list[str] = []
    unnamed = 0
    for way in _ways_to_large_integers(raw):
        if len(pointers) < PROBLEMS_MAX:
            pointers.append("".join(f"/{escaped(str(part))}" for part in way))
        else:
            unnamed += 1
    return Large(pointers, unnamed)


def _ways_to_large_integers(raw: bytes) -> Iterator[list[str | int]]:
    """The names and indices that lead to each of them, in one list that goes on changing."""
    way: list[str | int] = []
    before = b""
    for match in _TOKEN.finditer(raw):
        piece = match[0]
        if piece == b"{":
            way.append("")
        elif piece == b"[":
            way.append(0)
        elif piece in b"]}":
            way.pop()
        elif piece == b"," and isinstance(way[-1], int):
            way[-1] += 1
        elif piece[:1] == b'"' and before in (b"{", b",") and isinstance(way[-1], str):
            way[-1] = orjson.loads(piece)
        elif (
            piece[:1] in b"-0123456789" and piece.lstrip(b"-").isdigit() and not _LEAST <= int(piece) <= _MOST
        ):
            yield way
        before = piece


def escaped(part: str) -> str:
    """Write a name as it stands in a JSON Pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")
