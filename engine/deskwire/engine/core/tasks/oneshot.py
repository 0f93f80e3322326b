"""A one-shot result for one waiting task, at half the cost of a `trio.Event` with a value.

A request waits for the commit of its message this way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import trio
from msgspec import Struct

T = TypeVar("T")
_NONE_YET: Final[Any] = object()


class OneShot(Struct, Generic[T], eq=False, kw_only=True):
    """A result that one task sets and one task waits for.

    A Struct, whose instances are made without a call in Python; the fields are for `put` and `take` alone.
    """

    _answer: T | Exception = _NONE_YET
    _waiting: trio.lowlevel.Task | None = None

    def put(self, answer: T | Exception) -> None:
        """Set the result. Later calls are ignored."""
        if self._answer is not _NONE_YET:
            return
        self._answer = answer
        if self._waiting is not None:
            trio.lowlevel.reschedule(self._waiting)
            self._waiting = None

    async def take(self) -> T:
        """Wait for the result and return it. Raises it if it is an exception."""
        assert self._waiting is None, "one task waits for it"
        if self._answer is _NONE_YET:
            self._waiting = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._give_up)
        else:
            await trio.lowlevel.checkpoint()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def _give_up(self, _: Callable[[], Any]) -> trio.lowlevel.Abort:
        self._waiting = None
        return trio.lowlevel.Abort.SUCCEEDED
