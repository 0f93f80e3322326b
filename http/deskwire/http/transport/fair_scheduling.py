"""Turns: what strangers send is read in turn, so that however many there are they leave time to others (ADR 41).

The process has one thread. Who has shown a good credential is served as it comes. Of all others one is served after
the other, network by network, and while anybody known is served, too, each of these turns is followed by a pause of twice
its length.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import Final

import trio

PAUSE_FACTOR: Final = 2
"""How many times as long as a turn the pause behind it is."""
TURN_MAX_S: Final = 0.005
"""After which others have their turn, too: whoever has it may wait for something itself."""
_PAUSE_S: Final = 0.05
"""How long a pause may be: a turn may have been held without any use of it."""
_ACTIVE_S: Final = 0.1
"""How long after a read from somebody known strangers still make pauses."""


class FairScheduler:
    """The turns of strangers. Without somebody known beside them they wait for each other only."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[trio.Event, Hashable]] = {}
        self._holder: Hashable | None = None
        self._since = -inf
        self._free_at = -inf
        self._identified_at = -inf
        self._work = trio.Event()
        self._ends = trio.lowlevel.ParkingLot()

    def note_identified(self) -> None:
        """Note that somebody known is served."""
        self._identified_at = trio.current_time()

    async def acquire(self, who: Hashable, network: str) -> None:
        """Wait for a turn; it is held until `release`, or for LONGEST_S.

        Args:
            who: has it; several tasks may wait in one name, and each gets a turn.
            network: all that are of one wait in one queue.

        Cancellation: the place in the queue is given up.
        """
        self._expire()
        if self._holder is None and not self._queues and trio.current_time() >= self._free_at:
            self._begin(who)
            return
        queue = self._queues.setdefault(network, {})
        called = trio.Event()
        queue[called] = who
        self._work.set()
        try:
            await called.wait()
        except trio.Cancelled:
            if called.is_set():
                self.release(who)
            raise
        finally:
            if queue.pop(called, None) is not None and not queue and self._queues.get(network) is queue:
                del self._queues[network]

    async def ensure(self, who: Hashable, network: str) -> None:
        """Take a turn unless one is held already."""
        self._expire()
        if self._holder is not who:
            await self.acquire(who, network)

    def release(self, who: Hashable) -> None:
        """Give the turn back, if it is still held."""
        if self._holder is not None and self._holder is who:
            now = trio.current_time()
            self._end(now)
            if self._free_at <= now:
                self._start_next()

    async def run(self) -> None:
        """Call one after the other, until cancelled."""
        while True:
            if not self._queues:
                self._work = trio.Event()
                await self._work.wait()
            await trio.sleep_until(self._free_at)
            if self._holder is not None:
                with trio.move_on_at(self._since + TURN_MAX_S):
                    await self._ends.park()
            self._expire()
            if self._holder is None and trio.current_time() >= self._free_at:
                self._start_next()

    def _start_next(self) -> None:
        """Call the next one; its network comes behind the others."""
        network = next(iter(self._queues), None)
        if network is None:
            return
        queue = self._queues.pop(network)
        called = next(iter(queue))
        who = queue.pop(called)
        if queue:
            self._queues[network] = queue
        self._begin(who)
        called.set()

    def _begin(self, who: Hashable) -> None:
        self._holder, self._since = who, trio.current_time()

    def _expire(self) -> None:
        """End a turn that has lasted long enough."""
        now = trio.current_time()
        if self._holder is not None and now >= self._since + TURN_MAX_S:
            self._end(now)

    def _end(self, now: float) -> None:
        taken, self._holder = min(now - self._since, _PAUSE_S), None
        self._ends.unpark_all()
        self._free_at = now + taken * PAUSE_FACTOR if now < self._identified_at + _ACTIVE_S else now
