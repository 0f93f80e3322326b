"""A background task that processes stored items when they are due.

It sleeps until the next due time, and commits that store an earlier one wake it. The due times are in the database, so a
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

_POLL_INTERVAL_S: Final = 60.0
"""Poll interval, which bounds how late a clock that was set forward is noticed. A poll reads one row of an index."""
_SHARED_POLL_INTERVAL_S: Final = 5.0
"""Poll interval with several nodes, which bounds the delay if another node's notification is lost."""

_RETRY_DELAY_S: Final = 1.0


class ScheduledTask(ABC, Generic[R, W]):
    """Base class of tasks that process due items in batches."""

    delayed: ClassVar[str]
    """Name of the log event when the store is unavailable."""

    def __init__(self, store: Store[R, W], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._wakeup = trio.Event()
        self._poll_interval_s = _POLL_INTERVAL_S

    @staticmethod
    @abstractmethod
    def next_due(reader: R) -> int | None:
        """Return the next due time (ms), None if nothing is scheduled."""

    @abstractmethod
    async def run_batch(self) -> bool:
        """Process one batch of due items.

        Return whether there may be more. Raises Unavailable to be retried.
        """

    def follow(self, commits: Commits[object], part: str) -> None:
        """Wake the task for commits that add due times.

        Args:
            part: the attribute of a commit that holds these times.
        """
        commits.subscribe(lambda _: self._wakeup.set(), part)

    def poll_for_other_nodes(self) -> None:
        """Poll more often from now on because other nodes store due times, too."""
        self._poll_interval_s = _SHARED_POLL_INTERVAL_S

    def wake(self) -> None:
        """Poll immediately: a due time was stored, on this node or another one."""
        self._wakeup.set()

    async def run(self) -> None:
        """Process due items until cancelled."""
        while True:
            self._wakeup = trio.Event()
            try:
                await self._do_all()
                pause_s = await self._pause_s()
            except Unavailable as error:
                log.warning(self.delayed, reason=error.reason)
                await trio.sleep(_RETRY_DELAY_S)
                continue
            with trio.move_on_after(pause_s if pause_s > 0 else _RETRY_DELAY_S):
                await self._wakeup.wait()

    async def _do_all(self) -> None:
        while await self._pause_s() <= 0:
            if not await self.run_batch():
                return

    async def _pause_s(self) -> float:
        """Return the seconds until the next due time, or until the next poll."""
        due = await self._store.read(InlineQuery(self.next_due))
        if due is None:
            return float("inf") if self._poll_interval_s == _POLL_INTERVAL_S else self._poll_interval_s
        return min(self._poll_interval_s, (due - self._clock()) / 1000)
