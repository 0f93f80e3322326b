"""Long work in a thread that lets others have the interpreter's lock now and then."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")
_EVERY: Final = 16
"""Items between two breaths; a comment takes some tens of microseconds, a long one a millisecond or two."""


def yielding(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, and let other threads run after every few of them instead of when the interpreter says so."""
    for number, item in enumerate(items):
        if number % _EVERY == 0:
            time.sleep(0)
        yield item
