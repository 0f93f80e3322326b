"""Rate limit for log events that repeat while something is away, such as the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf
from typing import Final

import structlog
from structlog.typing import EventDict, WrappedLogger

INTERVAL_S: Final = 60.0
"""The time between two lines of one event."""

REPEATED: Final = frozenset(
    {
        "audit.pushes_not_read",
        "barrier.not_read",
        "couriers.not_read",
        "node.beat_failed",
        "node.others_not_judged",
        "search.delayed",
        "storage.batch_failed",
        "storage.commit_failed",
        "storage.connection_lost",
        "storage.look_again",
        "storage.not_watched",
        "storage.scrub_delayed",
        "webhooks.lapses_not_read",
    }
)
"""The events of tries that are made again within seconds: an outage of 12 s had 490 of them on one node."""


class RepeatedEvents:
    """A processor of structlog that passes an event at once, and then once per interval with the number of omitted lines.

    The number is `omitted`. May be called from any thread.

    Args:
        events: the names to limit; others pass.
        clock: seconds that only grow.
    """

    def __init__(
        self, events: frozenset[str] = REPEATED, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._events = events
        self._clock = clock
        self._lock = threading.Lock()
        self._next_at: dict[str, float] = {}
        self._omitted: dict[str, int] = {}

    def __call__(self, _logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
        """Return the entry. Raises structlog.DropEvent if it is omitted."""
        event = entry["event"]
        if event not in self._events:
            return entry
        with self._lock:
            now = self._clock()
            if now < self._next_at.get(event, -inf):
                self._omitted[event] = self._omitted.get(event, 0) + 1
                raise structlog.DropEvent
            self._next_at[event] = now + INTERVAL_S
            omitted = self._omitted.pop(event, 0)
        if omitted:
            entry["omitted"] = omitted
        return entry
