"""A rate limit for log events that repeat during an outage, for example of the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf
from typing import Final

import structlog
from structlog.typing import EventDict, WrappedLogger

INTERVAL_S: Final = 60.0  # between two lines of one event

REPEATED: Final = frozenset(
    {
        "agents.rights_not_read",
        "audit.lines_not_recorded",
        "audit.push_delayed",
        "audit.pushes_not_read",
        "audit.refusals_not_recorded",
        "barrier.not_read",
        "couriers.not_cleared",
        "couriers.not_read",
        "couriers.not_released",
        "delivery.closing_delayed",
        "delivery.news_not_read",
        "delivery.not_read",
        "delivery.not_recorded",
        "erasure.delayed",
        "machine_credential.use_not_noted",
        "merge.delayed",
        "node.beat_failed",
        "node.others_not_judged",
        "retention.delayed",
        "search.delayed",
        "server_key.use_not_noted",
        "session.use_not_noted",
        "sign_in.failure_not_recorded",
        "storage.batch_failed",
        "storage.commit_failed",
        "storage.connection_lost",
        "storage.look_again",
        "storage.not_watched",
        "storage.scrub_delayed",
        "stream.positions_not_saved",
        "stream.revocations_not_read",
        "webhooks.lapses_not_read",
        "writing.not_read",
    }
)
"""Events of attempts that are retried within seconds: in an outage of 12 s, one node logged 490 of them.

On a full disk the log is often on the same disk.
"""


class RepeatedEvents:
    """A structlog processor that passes an event at once, and then once per interval with the number of omitted lines.

    The number is `omitted`. Calls from any thread are allowed.

    Args:
        events: the limited names; other events pass.
        clock: monotonic seconds.
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
