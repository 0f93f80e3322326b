"""A lock that takes little memory and time without contention, for objects of which there are thousands."""

from __future__ import annotations

from types import TracebackType

import trio


class Mutex:
    """A fair lock for `async with`. Waiting tasks acquire it in the order in which they came.

    Unlike `trio.Lock` it takes 48 bytes while it is free, and acquiring a free one is not a checkpoint.
    """

    __slots__ = ("_line", "held")

    def __init__(self) -> None:
        self.held = False
        self._line: trio.lowlevel.ParkingLot | None = None

    async def __aenter__(self) -> None:
        if self.held:
            if self._line is None:
                self._line = trio.lowlevel.ParkingLot()
            await self._line.park()  # the releasing task hands the lock over: `held` stays true
        self.held = True

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._line:
            self._line.unpark()
        else:
            self.held, self._line = False, None
