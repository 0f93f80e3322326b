"""Admission: how much may be under way at once. What is more is refused at once, and not queued (ADR 24).

Waiting costs a place of its own: a client that sends slowly, or waits in the feed, holds up nobody's work. Of each kind of
place no caller has all (ADR 41): a caller that is refused for its own number of calls gets a 429.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Sized
from contextlib import contextmanager
from math import inf
from typing import Final, Literal, TypeVar

import trio

from deskwire.engine.cluster.cluster import Alone, Cluster
from deskwire.engine.core.errors import TooManyRequests, Unavailable
from deskwire.engine.core.limits.fair_share import Paced, Shares
from deskwire.engine.core.tasks.outage import AWAY, outlast

RETRY_AFTER_S: Final = 1

IMPORTS_MAX: Final = 2
"""Imports that may be under way; each commits as fast as it can, so more of them only make each other wait."""

ANONYMOUS_SHARE: Final = 4
"""Of the room for bodies those who have shown no credential get this part at most."""

LARGE_BODY_BYTES: Final = 64 * 1024
"""A body of more than that can take milliseconds to be parsed, in which nobody else has a turn."""

_Kind = Literal["requests", "waits", "bodies", "writes", "imports"]

_FULL: Final = {
    "requests": "Too many requests are under way.",
    "waits": "Too many calls wait for events.",
    "bodies": "Too many large requests are arriving.",
    "imports": f"There are {IMPORTS_MAX} imports under way.",
}
_OUT_OF_TOUCH: Final = "This node was stopped, or could not reach the database, and has not caught up with the others yet. Send it again."
CROWDED: Final = "too_many_at_once"
"""The code for who has its share."""

_CROWDED: Final = {
    "requests": "Too many of your requests are under way.",
    "waits": "Too many of your calls wait for events.",
    "bodies": "Too many of your requests with large bodies are arriving.",
    "imports": "There is an import of yours under way.",
}


class Admission:
    """The places, the memory and the writer's time that requests take.

    `parsing` is for large bodies, and those of strangers. `refused` counts requests for which there was no place at all,
    by what there was too much of, and `crowded` those whose sender had its share.

    Args:
        requests_max: handlers that may be at work.
        waits_max: long polls that may wait.
        bodies_bytes_max: bytes of bodies, arriving and arrived, that may be in memory.
        writes_max: jobs that may wait for the writer.
        writes: those that do.
        cluster: this node among those that share the store; without a valid lease it may remember what is outdated.
    """

    def __init__(
        self,
        *,
        requests_max: int,
        waits_max: int,
        bodies_bytes_max: int,
        writes_max: int,
        writes: Sized,
        cluster: Cluster | None = None,
    ) -> None:
        self.refused: Final[dict[str, int]] = {
            "requests": 0,
            "waits": 0,
            "bodies": 0,
            "writes": 0,
            "imports": 0,
        }
        self.crowded = 0
        self._requests = Shares(requests_max)
        self._waits = Shares(waits_max)
        self._bodies = Shares(bodies_bytes_max)
        self._anonymous = Shares(bodies_bytes_max // ANONYMOUS_SHARE)
        self._imports = Shares(IMPORTS_MAX)
        self.parsing: Final = Paced()
        self._writes_max = writes_max
        self._writes = writes
        self._cluster = cluster or Alone()

    @property
    def requests(self) -> int:
        """Handlers at work."""
        return self._requests.taken

    @property
    def waits(self) -> int:
        """Long polls that wait."""
        return self._waits.taken

    @property
    def bodies_bytes(self) -> int:
        """Bytes of bodies in memory."""
        return self._bodies.taken

    @property
    def imports(self) -> int:
        """Imports under way."""
        return self._imports.taken

    def check(self, *, changes: bool = False) -> None:
        """Raise Unavailable if no further request should begin, or none that `changes` anything.

        The codes are `overloaded`, and `out_of_touch` for a node that was stopped, or could not reach the database.
        """
        valid_until = self._cluster.valid_until
        if valid_until != inf and trio.current_time() >= valid_until:
            raise Unavailable(_OUT_OF_TOUCH, code="out_of_touch", retry_after_s=RETRY_AFTER_S)
        if self._requests.taken >= self._requests.total:
            raise self._overloaded("requests", _FULL["requests"])
        if changes and len(self._writes) >= self._writes_max:
            raise self._overloaded("writes", "Too many changes wait for the disk.")

    def begin(self, who: Hashable) -> None:
        """Take a place for a handler, until `end`. Raises Unavailable (`overloaded`), TooManyRequests (`too_many_at_once`)."""
        self._take(self._requests, "requests", who)

    def end(self, who: Hashable) -> None:
        """Give the place back."""
        self._requests.give_back(who)

    @contextmanager
    def waiting(self, who: Hashable) -> Iterator[None]:
        """Give the handler's place up, between `begin` and `end`, for one to wait in. Raises as `begin` does."""
        self._take(self._waits, "waits", who)
        self._requests.give_back(who)
        try:
            yield
        finally:
            self._waits.give_back(who)
            self._requests.take(who)  # perhaps one too many for a moment: this one is nearly done

    @contextmanager
    def importing(self, who: Hashable) -> Iterator[None]:
        """Hold one of the few places for an import. Raises as `begin` does."""
        self._take(self._imports, "imports", who)
        try:
            yield
        finally:
            self._imports.give_back(who)

    def reserve_body(self, who: Hashable, size: int, *, anonymous: bool) -> None:
        """Take room for a part of a body, until `leave`. Raises as `begin` does.

        Args:
            anonymous: whether no credential was shown.
        """
        if anonymous:
            self._take(self._anonymous, "bodies", who, size)
            if self._bodies.full(size):
                self._anonymous.give_back(who, size)
                raise self._overloaded("bodies", _FULL["bodies"])
            self._bodies.take(None, size)
        else:
            self._take(self._bodies, "bodies", who, size)

    def release_body(self, who: Hashable, size: int, *, anonymous: bool) -> None:
        """Give the room back."""
        if anonymous:
            self._anonymous.give_back(who, size)
        self._bodies.give_back(None if anonymous else who, size)

    def _take(self, shares: Shares, kind: _Kind, who: Hashable, size: int = 1) -> None:
        if shares.take_if_fits(who, size):
            return
        if shares.full(size):
            raise self._overloaded(kind, _FULL[kind])
        self.crowded += 1
        raise TooManyRequests(_CROWDED[kind], code=CROWDED, retry_after_s=RETRY_AFTER_S)

    def _overloaded(self, kind: _Kind, detail: str) -> Unavailable:
        self.refused[kind] += 1
        return Unavailable(detail, code="overloaded", retry_after_s=RETRY_AFTER_S)


# DOC holding.py: """Calls that wait while the database is away, instead of being refused (ADR 60).
#
# No published Pusher client asks a second time for an authorization that was refused: its channel stays silent on a
# connection that looks healthy. So a call of a route that is `held` waits for some seconds. The number of such calls is
# bounded, callers with a remembered credential have places of their own, and no caller can have all (ADR 41).
# """
#


T = TypeVar("T")

# The restart or fail-over of a database, and less than any balancer's time for an answer.
HOLD_TIMEOUT_S: Final = 15.0
HELD_CALLS_MAX: Final = 1_000  # calls of known callers: a task and some kilobytes each
HELD_ANONYMOUS_MAX: Final = 250  # calls whose credential must be looked up in the database


class HeldCalls:
    """The places of calls that wait for the database.

    `waited` counts the calls that waited, and `refused` the calls for which there was no place.
    """

    def __init__(self) -> None:
        self._known = Shares(HELD_CALLS_MAX)
        self._anonymous = Shares(HELD_ANONYMOUS_MAX)
        self._waiting: set[trio.CancelScope] = set()
        self.waited = 0
        self.refused = 0

    @property
    def held(self) -> int:
        """The number of calls that wait now."""
        return self._known.taken + self._anonymous.taken

    def refuse_all_nowait(self) -> None:
        """Refuse the calls that wait now, because another node is ready: only this one lacks the database."""
        for scope in self._waiting:
            scope.cancel()

    async def hold(
        self, work: Callable[[], Awaitable[T]], until: float, who: Hashable, *, anonymous: bool
    ) -> T:
        """Return the result of `work`, which is tried again until that time while the database is away.

        Args:
            work, until: see `outlast`.
            who: the caller, who may have a share of the shares.
            anonymous: whether the caller's credential is not known without the database.

        Raises:
            Unavailable: the refusal of the last try, or of the first one if there is no place to wait in.
        """
        try:
            return await work()
        except Unavailable as refusal:
            if refusal.reason not in AWAY or trio.current_time() >= until:
                raise
            shares = self._anonymous if anonymous else self._known
            if not shares.take_if_fits(who):
                self.refused += 1
                raise
            first = refusal
        self.waited += 1
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                return await outlast(work, until, first)
            finally:
                self._waiting.discard(scope)
                shares.give_back(who)
        raise first
