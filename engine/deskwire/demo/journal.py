"""Where the channels write down what arrives, and where the end of a replay waits for the last of it."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
import trio

from deskwire.demo.history import Arrival


class Journal:
    """One channel's arrivals, in their order."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self._seen: set[str] = set()
        self._missing: set[str] = set()
        self._news = trio.Event()

    def record(self, arrival: Arrival) -> None:
        """Add an arrival, whatever it is."""
        self.arrivals.append(arrival)
        event_id = _event_id(arrival.body)
        self._seen.add(event_id)
        self._missing.discard(event_id)
        self._news.set()

    async def wait_for(self, event_ids: Iterable[str], patience_s: float) -> int:
        """Wait until all these events have arrived, or nothing has for `patience_s`; how many are missing."""
        self._missing = set(event_ids) - self._seen
        while self._missing:
            self._news = trio.Event()
            with trio.move_on_after(patience_s) as patience:
                await self._news.wait()
            if patience.cancelled_caught:
                break
        return len(self._missing)


def event_ids(arrivals: Iterable[Arrival]) -> list[str]:
    """The ids of events, empty for what is no event."""
    return [_event_id(arrival.body) for arrival in arrivals]


def _event_id(body: bytes) -> str:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
