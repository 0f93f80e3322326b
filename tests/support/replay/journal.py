"""The journal of everything that arrives on the channels; the end of a replay waits there for the last of it."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
import trio

from tests.support.replay.history import Arrival


class Journal:
    """One channel's arrivals, in their order."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.ids: set[str] = set()
        """The ids of the events that have arrived."""
        self._missing: set[str] = set()
        self._news = trio.Event()

    def record(self, arrival: Arrival) -> None:
        """Add an arrival, whatever it is."""
        self.arrivals.append(arrival)
        event_id = _event_id(arrival.body)
        if event_id is not None:
            self.ids.add(event_id)
            self._missing.discard(event_id)
        self._news.set()

    async def wait_for(self, event_ids: Iterable[str], patience_s: float) -> int:
        """Wait until all these events have arrived, or none has for `patience_s`. Return the number of missing ones."""
        self._missing = set(event_ids) - self.ids
        while self._missing:
            self._news = trio.Event()
            with trio.move_on_after(patience_s) as patience:
                await self._news.wait()
            if patience.cancelled_caught:
                break
        return len(self._missing)


def _event_id(body: bytes) -> str | None:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    identifier = value.get("id") if isinstance(value, dict) else None
    return identifier if isinstance(identifier, str) else None
