"""Wakes snoozed tickets when their time comes, and takes tickets from teams that were deleted.

One task sleeps until the next ticket is due; commits that bring an earlier time wake it. All it needs to
know is stored, so a restart loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
import trio

from deskwire.engine.clock import Clock
from deskwire.engine.errors import Unavailable
from deskwire.engine.ports import Reader, Store
from deskwire.engine.tickets.change import tend

log: Final = structlog.get_logger(__name__)

BATCH: Final = 500
"""Tickets changed in one commit; some ten milliseconds of the writer's time."""

_LOOK_S: Final = 60.0
"""How late a clock that is set forward may be noticed; a look is one row of an index."""

_RETRY_S: Final = 1.0


class Upkeep:
    """The task and what wakes it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._news = trio.Event()

    def note_nowait(self, due: Sequence[int]) -> None:
        """A commit has made something due at these times (ms)."""
        if due:
            self._news.set()

    async def run(self) -> None:
        """Do what is due whenever it is, until cancelled."""
        while True:
            self._news = trio.Event()
            try:
                await self._do_all()
                pause_s = self._pause_s()
            except Unavailable as error:
                log.warning("tickets.upkeep_delayed", reason=error.reason)
                await trio.sleep(_RETRY_S)
                continue
            with trio.move_on_after(pause_s):
                await self._news.wait()

    async def _do_all(self) -> None:
        while self._pause_s() <= 0:
            now = self._clock()
            if await self._store.write(lambda tx, now=now: tend(tx, now, BATCH)) < BATCH:  # type: ignore[misc]
                return

    def _pause_s(self) -> float:
        """How long there is nothing to do, in seconds."""
        due = self._store.peek(_next_due)
        if due is None:
            return float("inf")
        return min(_LOOK_S, (due - self._clock()) / 1000)


def _next_due(reader: Reader) -> int | None:
    return 0 if reader.deleted_teams() else reader.next_wake_up()
