"""Fair scheduling of reads (ADR 41).

Anonymous connections are read round-robin and can't starve authenticated ones. The process has one thread.
Connections that have shown a valid credential are read at once. All others take turns, by network. While
authenticated connections are active, a pause of twice its length follows each turn.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import Final

import trio

# Length of the pause after a turn, as a multiple of the turn.
PAUSE_FACTOR: Final = 2
# A turn expires after this time, because its holder may be waiting itself.
TURN_MAX_S: Final = 0.005
# Turns longer than this don't lengthen the pause: the turn may have been held without work.
_PAUSE_S: Final = 0.05
# Turns are followed by pauses for this long after the last read of an authenticated connection.
_ACTIVE_S: Final = 0.1


class FairScheduler:
    """The turns of anonymous connections.

    Without authenticated connections there are no pauses between turns.
    """

    def __init__(self) -> None:
        self._queues: dict[str, dict[trio.Event, Hashable]] = {}
        self._holder: Hashable | None = None
        self._since = -inf
        self._free_at = -inf
        self._identified_at = -inf
        self._work = trio.Event()
        self._ends = trio.lowlevel.ParkingLot()

    def note_identified(self) -> None:
        """Note that an authenticated connection is active."""
        self._identified_at = trio.current_time()

    async def acquire(self, holder: Hashable, network: str) -> None:
        """Wait for a turn, which is held until `release` or for TURN_MAX_S.

        Args:
            holder: the holder; several tasks may wait for the same holder, and each gets a turn.
            network: connections of one network share a queue.

        Cancellation: the task leaves the queue.
        """
        self._expire()
        if self._holder is None and not self._queues and trio.current_time() >= self._free_at:
            self._begin(holder)
            return
        queue = self._queues.setdefault(network, {})
        called = trio.Event()
        queue[called] = holder
        self._work.set()
        try:
            await called.wait()
        except trio.Cancelled:
            if called.is_set():
                self.release(holder)
            raise
        finally:
            if queue.pop(called, None) is not None and not queue and self._queues.get(network) is queue:
                del self._queues[network]

    async def ensure(self, holder: Hashable, network: str) -> None:
        """Acquire a turn unless `holder` already holds one."""
        self._expire()
        if self._holder is not holder:
            await self.acquire(holder, network)

    def release(self, holder: Hashable) -> None:
        """Release the turn if it is still held."""
        if self._holder is not None and self._holder is holder:
            now = trio.current_time()
            self._end(now)
            if self._free_at <= now:
                self._start_next()

    async def run(self) -> None:
        """Start one turn after the other, until cancelled."""
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
        """Start the next turn.

        Its network moves to the end of the queue.
        """
        network = next(iter(self._queues), None)
        if network is None:
            return
        queue = self._queues.pop(network)
        called = next(iter(queue))
        holder = queue.pop(called)
        if queue:
            self._queues[network] = queue
        self._begin(holder)
        called.set()

    def _begin(self, holder: Hashable) -> None:
        self._holder, self._since = holder, trio.current_time()

    def _expire(self) -> None:
        """End a turn that has lasted too long."""
        now = trio.current_time()
        if self._holder is not None and now >= self._since + TURN_MAX_S:
            self._end(now)

    def _end(self, now: float) -> None:
        taken, self._holder = min(now - self._since, _PAUSE_S), None
        self._ends.unpark_all()
        self._free_at = now + taken * PAUSE_FACTOR if now < self._identified_at + _ACTIVE_S else now
