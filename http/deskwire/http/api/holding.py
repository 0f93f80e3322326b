"""Calls that wait while the database is away, instead of being refused (ADR 60).

No published Pusher client asks a second time for an authorization that was refused: its channel stays silent on a
connection that looks healthy. So a call of a route that is `held` waits for some seconds. The number of such calls is
bounded, callers with a remembered credential have places of their own, and no caller can have all (ADR 41).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar

import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.limits.fair_share import Shares
from deskwire.engine.core.tasks.retry import RETRYABLE_CODES, retry_until_available

T = TypeVar("T")

# The restart or fail-over of a database, and less than any balancer's time for an answer.
HELD_S: Final = 15.0
HELD_MAX: Final = 1_000  # calls of known callers: a task and some kilobytes each
STRANGERS_MAX: Final = 250  # calls whose credential must be looked up in the database


class Holding:
    """The places of calls that wait for the database.

    `waited` counts the calls that waited, and `refused` the calls for which there was no place.
    """

    def __init__(self) -> None:
        self._known = Shares(HELD_MAX)
        self._strangers = Shares(STRANGERS_MAX)
        self._waiting: set[trio.CancelScope] = set()
        self.waited = 0
        self.refused = 0

    @property
    def held(self) -> int:
        """The number of calls that wait now."""
        return self._known.taken + self._strangers.taken

    def send_away_nowait(self) -> None:
        """Refuse the calls that wait now, because another node is ready: only this one lacks the database."""
        for scope in self._waiting:
            scope.cancel()

    async def hold(
        self, work: Callable[[], Awaitable[T]], until: float, who: Hashable, *, stranger: bool
    ) -> T:
        """Return the result of `work`, which is tried again until that time while the database is away.

        Args:
            work, until: see `retry_until_available`.
            who: the caller, who may have a share of the places.
            stranger: whether the caller's credential is not known without the database.

        Raises:
            Unavailable: the refusal of the last try, or of the first one if there is no place to wait in.
        """
        try:
            return await work()
        except Unavailable as refusal:
            if refusal.reason not in RETRYABLE_CODES or trio.current_time() >= until:
                raise
            places = self._strangers if stranger else self._known
            if not places.take_if_fits(who):
                self.refused += 1
                raise
            first = refusal
        self.waited += 1
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                return await retry_until_available(work, until, first)
            finally:
                self._waiting.discard(scope)
                places.give_back(who)
        raise first
