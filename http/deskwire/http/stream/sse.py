"""Server-sent events: the format of agents' and customers' streams (HTML, 9.2).

The `data` of a stored event is its envelope, byte for byte, and its `id` is the `Last-Event-ID` of a later
request. Ephemeral events and events about the stream itself have no id.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from math import inf
from typing import Any, Final, Generic, TypeVar

import orjson
import structlog
import trio

from deskwire.engine.agents.stream import AgentStream
from deskwire.engine.agents.streams import AgentStreams, presence_event
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.customers.stream import CustomerStream
from deskwire.engine.customers.streams import CustomerStreams
from deskwire.engine.events.event_stream import Ephemeral, EventStream
from deskwire.engine.events.open_streams import OpenStreams

log: Final = structlog.get_logger(__name__)

# Seconds without an event after which a comment is written, unless the client prefers fewer.
HEARTBEAT_INTERVAL_S: Final = 15.0
_PREFERRED: Final = re.compile(r"(?:^|[,;\s])heartbeat=(?:\"?)(\d{1,2})(?:\"?)(?=$|[,;\s])", re.IGNORECASE)
EVENT_STREAM: Final = "text/event-stream"
# A credential with less time than this has expired: clocks differ by as much.
_CREDENTIAL_MARGIN_S: Final = 0.01
_RETRY_MS: Final = 1_000  # before an agent's page connects again
# Customers come back within this time after the end of a connection, so that a website's panels do not return all at once.
_CUSTOMERS_RETRY_MS: Final = (500, 2_500)
_COMMENT: Final = b":\n\n"
_RETRY_AFTER_MS: Final = {
    "shutdown": 500,
    "session_ended": 30_000,
    "permission_lost": 30_000,
    "second_factor_required": 30_000,
    "too_many_streams": 30_000,
}


def preferred_heartbeat(prefer: str | None) -> float:
    """Return the heartbeat interval that a `Prefer` header requests (RFC 7240).

    It is from 1 to HEARTBEAT_INTERVAL_S. The desk requests one per second, so that it notices within three
    seconds that the service does not respond.
    """
    found = _PREFERRED.search(prefer or "")
    return HEARTBEAT_INTERVAL_S if found is None else min(max(1.0, float(found[1])), HEARTBEAT_INTERVAL_S)


S = TypeVar("S", bound=EventStream[Any])


class EventStreamBody(AsyncIterator[bytes], ABC, Generic[S]):
    """The stream in chunks.

    It is opened by the first read, because then its close is certain.

    Args:
        opening: opens the stream.
        heartbeat_s: seconds without an event after which a comment is written.
    """

    def __init__(
        self,
        streams: OpenStreams[S],
        opening: Callable[[], Awaitable[S]],
        heartbeat_s: float = HEARTBEAT_INTERVAL_S,
    ) -> None:
        self._streams = streams
        self._opening: Callable[[], Awaitable[S]] | None = opening
        self._heartbeat_s = heartbeat_s
        self._stream: S | None = None
        self._over = False

    async def __anext__(self) -> bytes:
        """Return the next chunk.

        The goodbye is the last one.
        """
        if self._over:
            raise StopAsyncIteration
        try:
            if self._opening is not None:
                self._stream = await self._opening()
                self._opening = None  # it holds the request
                return await self._first(self._stream)
            assert self._stream is not None, "an open stream is read"
            return await self._next(self._stream)
        except Unavailable as error:  # the client reconnects and continues where it was
            log.warning(f"{self._streams.kind}.stream_cut_off", reason=error.reason)
            self._over = True
            return f": {error.reason}\n\n".encode()

    async def aclose(self) -> None:
        """Close the stream.

        The client has disconnected or has got the goodbye.
        """
        self._over = True
        stream, self._stream = self._stream, None
        if stream is not None:
            self._streams.close(stream)

    @abstractmethod
    async def _first(self, stream: S) -> bytes:
        """Return the chunk with the `hello`."""

    async def _next(self, stream: S) -> bytes:
        with trio.move_on_after(self._heartbeat_s):
            return await self._written(stream)
        return _COMMENT

    @abstractmethod
    async def _written(self, stream: S) -> bytes:
        """Return the chunk of the next items of the stream, once there are any."""

    def _start(self, stream: S) -> dict[str, Any]:
        """Return the start of the stream as `hello` has it."""
        start = stream.start
        return {
            "resumedAfter": start.resumed_after,
            "gap": start.gap,
            "at": start.at,
            "heartbeatS": int(self._heartbeat_s),
        }

    def _passing(self, ephemeral: Sequence[Ephemeral]) -> list[bytes]:
        self._streams.counters.ephemeral += len(ephemeral)
        return [b"event: passing\ndata: %b\n\n" % event.body for event in ephemeral]

    def _bye(self, reason: str, retry_after_ms: int) -> bytes:
        self._over = True
        return _about_stream(b"bye", {"reason": reason, "retryAfterMs": retry_after_ms})


class AgentStreamBody(EventStreamBody[AgentStream]):
    """An agent's stream in chunks.

    Args:
        good_for: returns the seconds for which the caller's credential stays valid, 0 if it has ended.
    """

    _streams: AgentStreams

    def __init__(
        self,
        streams: AgentStreams,
        opening: Callable[[], Awaitable[AgentStream]],
        good_for: Callable[[], Awaitable[float]],
        heartbeat_s: float = HEARTBEAT_INTERVAL_S,
    ) -> None:
        super().__init__(streams, opening, heartbeat_s)
        self._good_for = good_for
        self._good_until = -inf
        self._checked_version = -1

    async def _first(self, stream: AgentStream) -> bytes:
        await self._check(stream)  # checked again, because only now do later changes find the stream
        present = self._streams.present(stream.viewer.project.rowid)
        return _hello(_RETRY_MS, {"streamId": stream.id, **self._start(stream), "presence": present})

    async def _next(self, stream: AgentStream) -> bytes:
        if self._checked_version != self._streams.rights_version:
            await self._check(stream)
        with trio.move_on_at(min(trio.current_time() + self._heartbeat_s, self._good_until)):
            return await self._written(stream)
        if trio.current_time() >= self._good_until - _CREDENTIAL_MARGIN_S:
            await self._check(stream)
        return _COMMENT

    async def _check(self, stream: AgentStream) -> None:
        """End the stream if the credential is no longer valid.

        A session may have been used in the meantime, or its limits have changed: `rights_version` grows, and the next item or heartbeat
        reads them.
        """
        self._checked_version = self._streams.rights_version
        good_for = await self._good_for()
        self._good_until = trio.current_time() + good_for
        if good_for < _CREDENTIAL_MARGIN_S:
            self._streams.end(stream, "session_ended")
            self._good_until = inf  # from now on wait for the goodbye without a limit

    async def _written(self, stream: AgentStream) -> bytes:
        batch = await stream.next()
        ephemeral = [*batch.ephemeral]
        if batch.present:
            present = self._streams.present(stream.viewer.project.rowid, batch.present)
            ephemeral.append(presence_event(present))
        pieces = [b"id: %b\ndata: %b\n\n" % (event.id.encode(), event.body) for event in batch.events]
        pieces += self._passing(ephemeral)
        self._streams.counters.events += len(batch.events)
        if batch.bye is not None:
            pieces.append(self._bye(batch.bye, _RETRY_AFTER_MS[batch.bye]))
        return b"".join(pieces)


class CustomerStreamBody(EventStreamBody[CustomerStream]):
    """A customer's stream in chunks. An event that shows the customer nothing is written as its id alone."""

    _streams: CustomerStreams

    async def _first(self, stream: CustomerStream) -> bytes:
        return _hello(_spread_ms(), self._start(stream))

    async def _written(self, stream: CustomerStream) -> bytes:
        batch = await stream.next()
        pieces = []
        for event in batch.events:
            shown = self._streams.rendered(stream, event)
            data = b"" if shown is None else b"data: %b\n" % shown
            pieces.append(b"id: %b\n%b\n" % (event.id.encode(), data))
        pieces += self._passing(batch.ephemeral)
        self._streams.counters.events += len(batch.events)
        if batch.bye is not None:
            after_ms = _spread_ms() if batch.bye == "shutdown" else _RETRY_AFTER_MS[batch.bye]
            pieces.append(self._bye(batch.bye, after_ms))
        return b"".join(pieces)


def _spread_ms() -> int:
    """Return the time, in milliseconds, after which a customer connects again."""
    return random.randint(*_CUSTOMERS_RETRY_MS)


def _hello(retry_ms: int, data: dict[str, Any]) -> bytes:
    return b"retry: %d\n" % retry_ms + _about_stream(b"hello", data)


def _about_stream(event: bytes, data: dict[str, Any]) -> bytes:
    """Return an event about the stream itself."""
    return b"event: %b\ndata: %b\n\n" % (event, orjson.dumps(data))
