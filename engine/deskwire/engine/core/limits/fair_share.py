"""Places that are few, shared so that nobody can have all of them (ADR 41).

Whoever has some gets more while there is at least as much free. Alone it gets half; of those who take all that they can, each gets
as much as stays free for who comes next (the dynamic thresholds of Choudhury and Hahne, 1998). The service itself, which is
nobody, gets what there is.
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
"""How many times as long as a piece of `PacedSection` work the pause behind it is."""


class Tenant(Struct, eq=False):
    """A project, a user or an address on whose behalf tasks work; a request under way has one of its own.

    Tasks that a request begins inherit it. Work for the service itself is done for nobody.

    Args:
        who: the key that tells it from others.
        waiting: whether the request is still under way, so that somebody waits.
    """

    who: Hashable
    waiting: bool = True


TENANT: Final[ContextVar[Tenant | None]] = ContextVar("tenant", default=None)


def present_tenant() -> Hashable:
    """Return on whose behalf the present task works; None for the service itself."""
    tenant = TENANT.get()
    return None if tenant is None else tenant.who


class Shares:
    """A number of places. `taken` is how many of them somebody has.

    Args:
        total: of them all.
    """

    __slots__ = ("_held", "taken", "total")

    def __init__(self, total: int) -> None:
        self.total: Final = total
        self.taken = 0
        self._held: dict[Hashable, int] = {}

    def full(self, size: int = 1) -> bool:
        """Tell whether fewer than so many are free."""
        return self.taken + size > self.total

    def fits(self, who: Hashable, size: int = 1) -> bool:
        """Tell whether `who` may have so many more now."""
        held = 0 if who is None else self._held.get(who, 0)
        return held + size <= self.total - self.taken

    def take(self, who: Hashable, size: int = 1) -> None:
        """Give `who` so many, whether or not they fit."""
        self.taken += size
        if who is not None:
            self._held[who] = self._held.get(who, 0) + size

    def take_if_fits(self, who: Hashable, size: int = 1) -> bool:
        """Give `who` so many if they fit; return whether they did."""
        held = 0 if who is None else self._held.get(who, 0)
        if held + size > self.total - self.taken:
            return False
        self.taken += size
        if who is not None:
            self._held[who] = held + size
        return True

    def give_back(self, who: Hashable, size: int = 1) -> None:
        """Take so many back from `who`."""
        self.taken -= size
        if who is not None:
            left = self._held[who] - size
            if left:
                self._held[who] = left
            else:
                del self._held[who]


class FairLimiter:
    """Places for which tasks wait. Those who wait get them in turn, however many tasks each of them has waiting.

    Args:
        total: places.
    """

    def __init__(self, total: int) -> None:
        self._shares = Shares(total)
        self._waiting: dict[Hashable, deque[trio.Event]] = {}  # first who is to be looked at first

    async def take(self, who: Hashable) -> None:
        """Have a place once it is the turn of `who`. Cancellation: there is none then."""
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
        """Let others have the place."""
        self._shares.give_back(who)
        while self._pass_on():
            pass

    def _pass_on(self) -> bool:
        """Give a free place to the first who may have it; False if there is none."""
        for who, events in self._waiting.items():
            if self._shares.fits(who):
                self._shares.take(who)
                events.popleft().set()
                del self._waiting[who]
                if events:  # behind the others
                    self._waiting[who] = events
                return True
        return False

    def _forget(self, who: Hashable, event: trio.Event) -> None:
        events = self._waiting[who]
        events.remove(event)
        if not events:
            del self._waiting[who]


def thread_limiter(turns: FairLimiter, who: Hashable) -> trio.CapacityLimiter:
    """Return a place for a thread, as the limiter of `trio.to_thread.run_sync`; it is kept until the thread has ended.

    Args:
        who: on whose behalf.
    """
    return cast(trio.CapacityLimiter, _Lent(turns, who))  # Trio takes whatever has these two methods


class _Lent:
    """See `thread_limiter`."""

    __slots__ = ("_turns", "_who")

    def __init__(self, turns: FairLimiter, who: Hashable) -> None:
        self._turns = turns
        self._who = who

    async def acquire_on_behalf_of(self, borrower: Any) -> None:
        """Wait for the place."""
        await self._turns.take(self._who)

    def release_on_behalf_of(self, borrower: Any) -> None:
        """Give it back."""
        self._turns.give_back(self._who)


class PacedSection:
    """Work that holds up everybody while it is done: a piece at a time, each followed by a pause twice as long.

    So it takes a third of the time at most, however much of it there is; those who have some get their turns.
    """

    def __init__(self) -> None:
        self._turns = FairLimiter(1)

    @asynccontextmanager
    async def turn(self, who: Hashable) -> AsyncIterator[None]:
        """Wait for the turn of `who`, and rest behind what is done in it."""
        await self._turns.take(who)
        try:
            began = trio.current_time()
            try:
                yield
            finally:
                await trio.sleep(_PAUSES * (trio.current_time() - began))
        finally:
            self._turns.give_back(who)
