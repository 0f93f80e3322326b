"""A task that does what is due, whenever it is.

It sleeps until the next time; commits that bring an earlier one wake it. All it needs to know is stored, so a
restart loses nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final, Generic, TypeVar

import structlog
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery, Store

R = TypeVar("R")
W = TypeVar("W")
log: Final = structlog.get_logger(__name__)

_LOOK_S: Final = 60.0
"""How late a clock that is set forward may be noticed; a look is one row of an index."""
_SHARED_LOOK_S: Final = 5.0
"""How late it may be noticed what another node has made due, if its hint was lost."""

_RETRY_S: Final = 1.0


class ScheduledTask(ABC, Generic[R, W]):
    """The task and what wakes it."""

    delayed: ClassVar[str]
    """The log's message when the store is not available."""

    def __init__(self, store: Store[R, W], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._wakeup = trio.Event()
        self._look_s = _LOOK_S

    @staticmethod
    @abstractmethod
    def next_due(reader: R) -> int | None:
        """Return when (ms) something is due next; None for never."""

    @abstractmethod
    async def run_batch(self) -> bool:
        """Do a part of what is due; return whether there may be more. Raises Unavailable to be tried again."""

    def follow(self, commits: Commits[object], part: str) -> None:
        """Wake for what commits make due from now on.

        Args:
            part: the attribute of a commit that has the times at which it makes something due.
        """
        commits.subscribe(lambda _: self._wakeup.set(), part)

    def poll_for_other_nodes(self) -> None:
        """Look more often from now on, as other nodes make things due as well."""
        self._look_s = _SHARED_LOOK_S

    def wake(self) -> None:
        """Look at once: something was made due, here or on another node."""
        self._wakeup.set()

    async def run(self) -> None:
        """Do what is due whenever it is, until cancelled."""
        while True:
            self._wakeup = trio.Event()
            try:
                await self._do_all()
                pause_s = await self._pause_s()
            except Unavailable as error:
                log.warning(self.delayed, reason=error.reason)
                await trio.sleep(_RETRY_S)
                continue
            with trio.move_on_after(pause_s if pause_s > 0 else _RETRY_S):
                await self._wakeup.wait()

    async def _do_all(self) -> None:
        while await self._pause_s() <= 0:
            if not await self.run_batch():
                return

    async def _pause_s(self) -> float:
        """Return for how many seconds there is nothing to do."""
        due = await self._store.read(InlineQuery(self.next_due))
        if due is None:
            return float("inf") if self._look_s == _LOOK_S else self._look_s
        return min(self._look_s, (due - self._clock()) / 1000)
