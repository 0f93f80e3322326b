"""Fair scheduling of reads (ADR 41).

Anonymous connections are read round-robin and can't starve authenticated ones. The process has one thread.
Connections that have shown a valid credential are read at once. All others take turns, by network. While
authenticated connections are active, anonymous ones get a third of the time: each turn is followed by a pause
of twice its length. The time for which turns were due but could not begin, because other tasks ran, is made
up for: then several turns begin together, if those before them were short. Otherwise a new connection would
wait until all older ones were served, once for each connection before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from math import inf
from typing import Final

import trio
from msgspec import Struct

# Length of the pause after a turn, as a multiple of the turn.
PAUSE_FACTOR: Final = 2
# A turn expires after this time, because its holder may be waiting itself.
TURN_MAX_S: Final = 0.005
# Turns that may be held together.
TURNS_MAX: Final = 64
# Time of delayed turns that is made up for, at most: a third of it is anonymous connections' in one go.
_ARREARS_MAX_S: Final = 0.06
# Turns longer than this don't lengthen the pause: the turn may have been held without work.
_PAUSE_S: Final = 0.05
# Turns are followed by pauses for this long after the last read of an authenticated connection.
_ACTIVE_S: Final = 0.1
# Weight of the previous estimate of a turn's length. A longer turn raises the estimate at once, so that long
# turns that follow short ones do not begin together.
_ESTIMATE_KEPT: Final = 0.9


class _Turn(Struct, eq=False):
    """The start of a turn: on Trio's clock, and in time that the process has worked."""

    since: float
    spent_s: float


class FairScheduler:
    """The turns of anonymous connections.

    Without authenticated connections there are no pauses between turns, and one turn at a time.

    Args:
        spent_s: the time that this process has worked. Wall time would count the waits for the interpreter's lock.
    """

    def __init__(self, spent_s: Callable[[], float] = time.process_time) -> None:
        self._spent_s = spent_s
        self._queues: dict[str, dict[trio.Event, Hashable]] = {}
        self._waiting_since = -inf  # of the queues, as long as there are any
        self._holders: dict[Hashable, _Turn | None] = {}  # None until the holder's task runs
        self._free_at = -inf  # end of the pauses
        self._identified_at = -inf
        self._estimate_s = TURN_MAX_S
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
        now = trio.current_time()
        self._expire(now)
        if not self._queues and self._may_begin(now):
            self._begin(holder, now, now)
            self.resume(holder)
            return
        if not self._queues:
            self._waiting_since = now
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
        self.resume(holder)

    async def ensure(self, holder: Hashable, network: str) -> None:
        """Acquire a turn unless `holder` already holds one."""
        self._expire(trio.current_time())
        if not self.resume(holder):
            await self.acquire(holder, network)

    def pass_on(self, holder: Hashable) -> None:
        """Keep the turn for another task of its holder; the time until that task calls `resume` does not count."""
        if holder in self._holders:
            self._charge(self._holders[holder], trio.current_time())
            self._holders[holder] = None

    def resume(self, holder: Hashable) -> bool:
        """Let a turn's time run, in the task that has it now; return False if there is no turn."""
        if holder not in self._holders:
            return False
        if self._holders[holder] is None:
            self._holders[holder] = _Turn(trio.current_time(), self._spent_s())
        return True

    def release(self, holder: Hashable, *, usual: bool = True) -> None:
        """Release the turn if it is still held.

        Args:
            usual: whether other turns are expected to be as long.
        """
        if holder in self._holders:
            now = trio.current_time()
            self._charge(self._holders.pop(holder), now, usual=usual)
            self._ends.unpark_all()
            self._start_due(now)

    async def run(self) -> None:
        """Start one turn after the other, until cancelled."""
        while True:
            if not self._queues:
                self._work = trio.Event()
                await self._work.wait()
            await trio.sleep_until(self._free_at)
            if self._holders:
                with trio.move_on_at(self._next_at(trio.current_time())):
                    await self._ends.park()
            now = trio.current_time()
            self._expire(now)
            self._start_due(now)

    def _start_due(self, now: float) -> None:
        """Start the turns that may begin now; a network whose turn starts moves to the end of the queue."""
        while self._queues and self._may_begin(now):
            network = next(iter(self._queues))
            queue = self._queues.pop(network)
            called = next(iter(queue))
            holder = queue.pop(called)
            if queue:
                self._queues[network] = queue
            self._begin(holder, now, self._waiting_since)
            called.set()

    def _may_begin(self, now: float) -> bool:
        """Return whether a turn may begin beside those that are held."""
        held = len(self._holders)
        if not held:
            return self._free_at <= now
        return held < TURNS_MAX and self._is_shared(now) and self._due_at() <= now

    def _due_at(self) -> float:
        """Return when another turn may begin: once the pauses of the held turns would be over."""
        return self._free_at + (len(self._holders) + 1) * self._estimate_s * (1 + PAUSE_FACTOR)

    def _next_at(self, now: float) -> float:
        """Return when a turn may begin although none is released."""
        expires = min(now if turn is None else turn.since for turn in self._holders.values()) + TURN_MAX_S
        if not self._is_shared(now) or len(self._holders) >= TURNS_MAX:
            return expires
        return min(expires, self._due_at())

    def _begin(self, holder: Hashable, now: float, waiting_since: float) -> None:
        """Begin a turn; the time before connections waited for one is not made up for."""
        self._free_at = max(self._free_at, now - _ARREARS_MAX_S, waiting_since)
        if holder in self._holders:  # for another of its tasks
            self._charge(self._holders[holder], now)
        self._holders[holder] = None

    def _expire(self, now: float) -> None:
        """End turns that have lasted too long."""
        for holder, turn in list(self._holders.items()):
            if turn is not None and now >= turn.since + TURN_MAX_S:
                del self._holders[holder]
                self._charge(turn, now)
                self._ends.unpark_all()

    def _charge(self, turn: _Turn | None, now: float, *, usual: bool = True) -> None:
        """Make a pause follow a turn, or a part of it."""
        taken_s = 0.0 if turn is None else min(self._spent_s() - turn.spent_s, _PAUSE_S)
        if usual and turn is not None:
            self._estimate_s = max(min(taken_s, TURN_MAX_S), self._estimate_s * _ESTIMATE_KEPT)
        if self._is_shared(now):
            self._free_at += taken_s * (1 + PAUSE_FACTOR)
        else:
            self._free_at = now

    def _is_shared(self, now: float) -> bool:
        """Return whether authenticated connections are active, so that pauses follow the turns."""
        return now < self._identified_at + _ACTIVE_S
