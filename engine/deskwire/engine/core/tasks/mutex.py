"""A lock for what there are thousands of: next to nothing while nobody waits for it."""

from __future__ import annotations

from types import TracebackType

import trio


class Mutex:
    """Held by one task at a time; those who wait get it in the order they came.

    `async with` it. Unlike `trio.Lock` it takes 48 bytes while free, and taking it then is no checkpoint.
    """

    __slots__ = ("_line", "held")

    def __init__(self) -> None:
        self.held = False
        self._line: trio.lowlevel.ParkingLot | None = None

    async def __aenter__(self) -> None:
        if self.held:
            if self._line is None:
                self._line = trio.lowlevel.ParkingLot()
            await self._line.park()  # whoever lets go hands it over: `held` stays true
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
