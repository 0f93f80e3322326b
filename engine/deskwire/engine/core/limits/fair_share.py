"""Fair shares of limited places, so that no tenant can take all of them (ADR 41).

A tenant gets more places while at least as many are free as it holds already. A single tenant gets at most half. If n greedy
tenants compete, each gets as many as stay free for the next one (dynamic thresholds, Choudhury and Hahne, 1998). Work of the
service itself, which has no tenant, is limited only by the total.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, cast

import trio
from msgspec import Struct

_PAUSES: Final = 2
"""Ratio of the pause after a turn of `PacedSection` to the length of the turn."""


class Tenant(Struct, eq=False):
    """The project, user or network on whose behalf a request's tasks run.

    Each request has its own instance.

    Tasks that a request starts inherit it. Work of the service itself has none.

    Args:
        who: key of the project, user or network.
        waiting: whether the request is still in progress, so that a client waits for the result.
    """

    who: Hashable
    waiting: bool = True


TENANT: Final[ContextVar[Tenant | None]] = ContextVar("tenant", default=None)


def present_tenant() -> Hashable:
    """Return the key of the current task's tenant. None for work of the service itself."""
    tenant = TENANT.get()
    return None if tenant is None else tenant.who


class Shares:
    """A limited number of places, shared fairly. `taken` is the number of places in use.

    Args:
        total: number of all places.
    """

    __slots__ = ("_held", "taken", "total")

    def __init__(self, total: int) -> None:
        self.total: Final = total
        self.taken = 0
        self._held: dict[Hashable, int] = {}

    def full(self, size: int = 1) -> bool:
        """Return whether fewer than `size` places are free."""
        return self.taken + size > self.total

    def fits(self, who: Hashable, size: int = 1) -> bool:
        """Return whether `who` may take `size` more places now."""
        held = 0 if who is None else self._held.get(who, 0)
        return held + size <= self.total - self.taken

    def take(self, who: Hashable, size: int = 1) -> None:
        """Give `who` `size` places, even beyond its share."""
        self.taken += size
        if who is not None:
            self._held[who] = self._held.get(who, 0) + size

    def take_if_fits(self, who: Hashable, size: int = 1) -> bool:
        """Give `who` `size` places if they fit into its share. Return whether they did."""
        held = 0 if who is None else self._held.get(who, 0)
        if held + size > self.total - self.taken:
            return False
        self.taken += size
        if who is not None:
            self._held[who] = held + size
        return True

    def give_back(self, who: Hashable, size: int = 1) -> None:
        """Release `size` places of `who`."""
        self.taken -= size
        if who is not None:
            left = self._held[who] - size
            if left:
                self._held[who] = left
            else:
                del self._held[who]


class FairLimiter:
    """A limiter whose waiting tenants get places round-robin, however many tasks each of them has waiting.

    Args:
        total: number of places.
    """

    def __init__(self, total: int) -> None:
        self._shares = Shares(total)
        self._waiting: dict[Hashable, deque[trio.Event]] = {}  # in round-robin order

    async def take(self, who: Hashable) -> None:
        """Wait for a place for `who`. Cancellation: no place is taken."""
        if who not in self._waiting and self._shares.fits(who):
            self._shares.take(who)
            return
        mine = trio.Event()
        self._waiting.setdefault(who, deque()).append(mine)
        try:
            await mine.wait()
        except trio.Cancelled:
            if mine.is_set():
                self.give_back(who)
            else:
                self._forget(who, mine)
            raise

    def give_back(self, who: Hashable) -> None:
        """Release a place of `who` and wake waiting tasks."""
        self._shares.give_back(who)
        while self._pass_on():
            pass

    def _pass_on(self) -> bool:
        """Give a free place to the first waiting tenant that may take it.

        Return whether there was one.
        """
        for who, events in self._waiting.items():
            if self._shares.fits(who):
                self._shares.take(who)
                events.popleft().set()
                del self._waiting[who]
                if events:  # to the end of the round-robin order
                    self._waiting[who] = events
                return True
        return False

    def _forget(self, who: Hashable, event: trio.Event) -> None:
        events = self._waiting[who]
        events.remove(event)
        if not events:
            del self._waiting[who]


def thread_limiter(turns: FairLimiter, who: Hashable) -> trio.CapacityLimiter:
    """Return a limiter for `trio.to_thread.run_sync` that holds a place of `who` until the thread ends."""
    # Trio only calls these two methods.
    return cast(trio.CapacityLimiter, _ThreadLimiter(turns, who))


class _ThreadLimiter:
    """See `thread_limiter`."""

    __slots__ = ("_turns", "_who")

    def __init__(self, turns: FairLimiter, who: Hashable) -> None:
        self._turns = turns
        self._who = who

    async def acquire_on_behalf_of(self, borrower: Any) -> None:
        """Wait for the place."""
        await self._turns.take(self._who)

    def release_on_behalf_of(self, borrower: Any) -> None:
        """Release the place."""
        self._turns.give_back(self._who)


class PacedSection:
    """A section for work that blocks other tasks: one turn at a time, each followed by a pause twice as long.

    Such work takes at most a third of the time, however much of it is waiting. Tenants take turns.
    """

    def __init__(self) -> None:
        self._turns = FairLimiter(1)

    @asynccontextmanager
    async def turn(self, who: Hashable) -> AsyncIterator[None]:
        """Wait for a turn of `who`, and pause after the work in the context."""
        await self._turns.take(who)
        try:
            began = trio.current_time()
            try:
                yield
            finally:
                await trio.sleep(_PAUSES * (trio.current_time() - began))
        finally:
            self._turns.give_back(who)
