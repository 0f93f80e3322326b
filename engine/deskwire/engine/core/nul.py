"""U+0000 in what was sent: no text and no identifier has one, so whoever sends one is told where it is.

Databases, logs and clients written in C end a text there; what is behind it would be lost without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

NUL: Final = "\0"
CODE: Final = "nul_character"
"""The code of a problem that is about such a text."""

SENTENCE: Final = "A text has no U+0000."


def places_of_nul(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the ways to the texts of a JSON value that have U+0000: names and indices, outermost first.

    A name that has one itself leads there, too.
    """
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        way, each = waiting.pop()
        if isinstance(each, str):
            if NUL in each:
                yield way
        elif isinstance(each, dict):
            yield from ((*way, name) for name in each if NUL in name)
            waiting += [((*way, name), inner) for name, inner in reversed(each.items())]
        elif isinstance(each, list):
            waiting += [((*way, index), each[index]) for index in range(len(each) - 1, -1, -1)]
