"""Limits on the work under way at once.

A request above a limit is refused immediately, not queued (ADR 24).

Waiting calls and slow bodies have limits of their own, so a slow client or a long poll does not delay the
work of others. No caller can use up a limit alone (ADR 41): a caller above its own share gets a 429.

During a database outage, calls of `held` routes wait instead of being refused (ADR 60). No published Pusher
client repeats a refused authorization: its channel stays silent on a connection that looks healthy. The
number of waiting calls is bounded, and callers whose credential is cached have a limit of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Sized
from contextlib import contextmanager
from math import inf
from typing import Final, Literal, TypeVar

import trio

from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.core.errors import TooManyRequests, Unavailable
from deskwire.engine.core.limits.fair_share import PacedSection, Shares
from deskwire.engine.core.tasks.retry import RETRYABLE_CODES, retry_until_available

RETRY_AFTER_S: Final = 1

# Concurrent imports. Each commits as fast as it can, so more of them would only wait for each other.
IMPORTS_MAX: Final = 2

# Calls without a credential get at most one part in four of the memory for bodies.
ANONYMOUS_SHARE: Final = 4

# Parsing a larger body can take milliseconds, during which no other task runs.
LARGE_BODY_BYTES: Final = 64 * 1024

_Kind = Literal["requests", "waits", "bodies", "writes", "imports"]

_FULL: Final = {
    "requests": "Too many requests are under way.",
    "waits": "Too many calls wait for events.",
    "bodies": "Too many large requests are arriving.",
    "imports": f"There are {IMPORTS_MAX} imports under way.",
}
_OUT_OF_TOUCH: Final = "This node was stopped, or could not reach the database, and has not caught up with the others yet. Send it again."
# The code of a refusal because the caller has used up its own share.
CROWDED: Final = "too_many_at_once"

_CROWDED: Final = {
    "requests": "Too many of your requests are under way.",
    "waits": "Too many of your calls wait for events.",
    "bodies": "Too many of your requests with large bodies are arriving.",
    "imports": "There is an import of yours under way.",
}


class Admission:
    """Limits on requests.

    They cover handlers, waiting calls, memory for bodies, and the writer's queue. `parsing` serializes the
    parsing of large bodies and of anonymous callers' bodies. `refused` counts requests refused because a
    limit was reached, by the limit, and `crowded` requests refused because their caller had used up its
    share.

    Args:
        requests_max: handlers that may run.
        waits_max: long polls that may wait.
        bodies_bytes_max: bytes of bodies, partial and complete, that may be in memory.
        writes_max: jobs that may wait for the writer.
        writes: the jobs that wait for the writer.
        cluster: this node among the nodes that share the store; without a valid lease its caches may be
            outdated.
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
        self.parsing: Final = PacedSection()
        self._writes_max = writes_max
        self._writes = writes
        self._cluster = cluster or SingleNode()

    @property
    def requests(self) -> int:
        """The number of handlers that run."""
        return self._requests.taken

    @property
    def waits(self) -> int:
        """The number of long polls that wait."""
        return self._waits.taken

    @property
    def bodies_bytes(self) -> int:
        """The bytes of bodies in memory."""
        return self._bodies.taken

    @property
    def imports(self) -> int:
        """The number of imports under way."""
        return self._imports.taken

    def check(self, *, changes: bool = False) -> None:
        """Raise Unavailable if no further request may start.

        With `changes`, it also raises if no further changing request may start. The codes are `overloaded`, and
        `out_of_touch` for a node that was suspended or could not reach the database.
        """
        valid_until = self._cluster.valid_until
        if valid_until != inf and trio.current_time() >= valid_until:
            raise Unavailable(_OUT_OF_TOUCH, code="out_of_touch", retry_after_s=RETRY_AFTER_S)
        if self._requests.taken >= self._requests.total:
            raise self._overloaded("requests", _FULL["requests"])
        if changes and len(self._writes) >= self._writes_max:
            raise self._overloaded("writes", "Too many changes wait for the disk.")

    def begin(self, caller: Hashable) -> None:
        """Count a handler until `end`.

        Raises Unavailable (`overloaded`), TooManyRequests (`too_many_at_once`).
        """
        self._take(self._requests, "requests", caller)

    def end(self, caller: Hashable) -> None:
        """Stop counting the handler."""
        self._requests.give_back(caller)

    @contextmanager
    def waiting(self, caller: Hashable) -> Iterator[None]:
        """Count a handler as a long poll instead, between `begin` and `end`.

        Raises as `begin` does.
        """
        self._take(self._waits, "waits", caller)
        self._requests.give_back(caller)
        try:
            yield
        finally:
            self._waits.give_back(caller)
            self._requests.take(caller)  # may exceed the limit for a moment; this handler is nearly done

    @contextmanager
    def importing(self, caller: Hashable) -> Iterator[None]:
        """Count an import. Raises as `begin` does."""
        self._take(self._imports, "imports", caller)
        try:
            yield
        finally:
            self._imports.give_back(caller)

    def reserve_body(self, caller: Hashable, size: int, *, anonymous: bool) -> None:
        """Reserve memory for a part of a body until `release_body`.

        Raises as `begin` does.

        Args:
            anonymous: True if the caller has shown no credential.
        """
        if anonymous:
            self._take(self._anonymous, "bodies", caller, size)
            if self._bodies.full(size):
                self._anonymous.give_back(caller, size)
                raise self._overloaded("bodies", _FULL["bodies"])
            self._bodies.take(None, size)
        else:
            self._take(self._bodies, "bodies", caller, size)

    def release_body(self, caller: Hashable, size: int, *, anonymous: bool) -> None:
        """Release reserved memory."""
        if anonymous:
            self._anonymous.give_back(caller, size)
        self._bodies.give_back(None if anonymous else caller, size)

    def _take(self, shares: Shares, kind: _Kind, caller: Hashable, size: int = 1) -> None:
        if shares.take_if_fits(caller, size):
            return
        if shares.full(size):
            raise self._overloaded(kind, _FULL[kind])
        self.crowded += 1
        raise TooManyRequests(_CROWDED[kind], code=CROWDED, retry_after_s=RETRY_AFTER_S)

    def _overloaded(self, kind: _Kind, detail: str) -> Unavailable:
        self.refused[kind] += 1
        return Unavailable(detail, code="overloaded", retry_after_s=RETRY_AFTER_S)


T = TypeVar("T")

# Enough for the restart or fail-over of a database, and less than the response timeout of load balancers.
HOLD_TIMEOUT_S: Final = 15.0
# Calls of callers with a cached credential; each takes a task and some kilobytes.
HELD_CALLS_MAX: Final = 1_000
# Calls whose credential must be looked up in the database.
HELD_ANONYMOUS_MAX: Final = 250


class HeldCalls:
    """The calls that wait for the database during an outage.

    `waited` counts the calls that waited, and `refused` the calls that were refused because too many
    waited.
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
        """Refuse the calls that wait now.

        Another node is ready, so only this node lacks the database.
        """
        for scope in self._waiting:
            scope.cancel()

    async def hold(
        self, work: Callable[[], Awaitable[T]], until: float, caller: Hashable, *, anonymous: bool
    ) -> T:
        """Return the result of `work`, retried during a database outage.

        Args:
            work, until: see `retry_until_available`.
            caller: the caller, which may use a share of the limit.
            anonymous: True if the caller's credential is unknown without the database.

        Raises:
            Unavailable: the refusal of the last attempt, or of the first attempt if too many calls wait.
        """
        try:
            return await work()
        except Unavailable as refusal:
            if refusal.reason not in RETRYABLE_CODES or trio.current_time() >= until:
                raise
            shares = self._anonymous if anonymous else self._known
            if not shares.take_if_fits(caller):
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
                shares.give_back(caller)
        raise first
