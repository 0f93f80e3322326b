"""The progress of a conversion: a line every few seconds, also in a pipe, where nothing else shows that it works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")
INTERVAL_S: Final = 5.0


class ConversionProgress:
    """Counts what passes through, and reports the count at most once per interval.

    Args:
        say: receives each line; None for no progress.
        clock: monotonic seconds.
    """

    def __init__(
        self, say: Callable[[str], None] | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._clock = clock
        self._next_at = clock() + INTERVAL_S

    def counted(self, items: Iterable[T], what: str) -> Iterator[T]:
        """Yield the items; `what` follows their number in a report, for example "records read"."""
        for number, item in enumerate(items, 1):
            yield item
            if self._say is not None and self._clock() >= self._next_at:
                self._next_at = self._clock() + INTERVAL_S
                self._say(f"{number:,} {what} ...")
