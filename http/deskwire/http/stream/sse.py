"""Server-sent events: the format of an agent's stream (HTML, 9.2).

The `data` of a stored event is its envelope, byte for byte, and its `id` is the `Last-Event-ID` of a later
request. Ephemeral events and events about the stream itself have no id.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf
from typing import Any, Final

import orjson
import structlog
import trio

from deskwire.engine.agents.stream import AgentStream, AgentStreamBatch, Bye
from deskwire.engine.agents.streams import AgentStreams, presence_event
from deskwire.engine.core.errors import Unavailable

log: Final = structlog.get_logger(__name__)

# Seconds without an event after which a comment is written, unless the client prefers fewer.
HEARTBEAT_INTERVAL_S: Final = 15.0
_PREFERRED: Final = re.compile(r"(?:^|[,;\s])heartbeat=(?:\"?)(\d{1,2})(?:\"?)(?=$|[,;\s])", re.IGNORECASE)
EVENT_STREAM: Final = "text/event-stream"
# A credential with less time than this has expired: clocks differ by as much.
_CREDENTIAL_MARGIN_S: Final = 0.01
_RETRY: Final = b"retry: 1000\n"
_COMMENT: Final = b":\n\n"
_RETRY_AFTER_MS: Final[dict[Bye, int]] = {
    "shutdown": 500,
    "session_ended": 30_000,
    "permission_lost": 30_000,
    "too_many_streams": 30_000,
}


def preferred_heartbeat(prefer: str | None) -> float:
    """Return the heartbeat interval that a `Prefer` header requests (RFC 7240).

    It is from 1 to HEARTBEAT_INTERVAL_S. The desk requests one per second, so that it notices within three
    seconds that the service does not respond.
    """
    found = _PREFERRED.search(prefer or "")
    return HEARTBEAT_INTERVAL_S if found is None else min(max(1.0, float(found[1])), HEARTBEAT_INTERVAL_S)


OpenStream = Callable[[], Awaitable[AgentStream]]


class EventStreamBody(AsyncIterator[bytes]):
    """The stream in chunks.

    It is opened by the first read, because then its close is certain.

    Args:
        opening: opens the stream.
        good_for: returns the seconds for which the caller's credential stays valid, 0 if it has ended.
        heartbeat_s: seconds without an event after which a comment is written.
    """

    def __init__(
        self,
        streams: AgentStreams,
        opening: OpenStream,
        good_for: Callable[[], Awaitable[float]],
        heartbeat_s: float = HEARTBEAT_INTERVAL_S,
    ) -> None:
        self._streams = streams
        self._opening = opening
        self._good_for = good_for
        self._heartbeat_s = heartbeat_s
        self._good_until = -inf
        self._stream: AgentStream | None = None
        self._over = False

    async def __anext__(self) -> bytes:
        """Return the next chunk.

        The goodbye is the last one.
        """
        if self._over:
            raise StopAsyncIteration
        try:
            if self._stream is None:
                self._stream = await self._opening()
                await self._check(
                    self._stream
                )  # checked again, because only now do later changes find the stream
                return _RETRY + self._hello(self._stream)
            return await self._next(self._stream)
        except Unavailable as error:  # the client reconnects and continues where it was
            log.warning("agents.stream_cut_off", reason=error.reason)
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

    async def _next(self, stream: AgentStream) -> bytes:
        with trio.move_on_at(min(trio.current_time() + self._heartbeat_s, self._good_until)):
            return self._written(await stream.next())
        if trio.current_time() >= self._good_until - _CREDENTIAL_MARGIN_S:
            await self._check(stream)
        return _COMMENT

    async def _check(self, stream: AgentStream) -> None:
        """End the stream if the credential is no longer valid.

        A session may have been used in the meantime.
        """
        good_for = await self._good_for()
        self._good_until = trio.current_time() + good_for
        if good_for < _CREDENTIAL_MARGIN_S:
            self._streams.end(stream, "session_ended")
            self._good_until = inf  # from now on wait for the goodbye without a limit

    def _hello(self, stream: AgentStream) -> bytes:
        start = stream.start
        return _about_stream(
            b"hello",
            {
                "streamId": stream.id,
                "resumedAfter": start.resumed_after,
                "gap": start.gap,
                "at": start.at,
                "heartbeatS": int(self._heartbeat_s),
                "presence": self._streams.present(stream.viewer.project.rowid),
            },
        )

    def _written(self, batch: AgentStreamBatch) -> bytes:
        counters = self._streams.counters
        ephemeral = [*batch.ephemeral]
        if batch.present:
            assert self._stream is not None, "a batch is of an open stream"
            present = self._streams.present(self._stream.viewer.project.rowid, batch.present)
            ephemeral.append(presence_event(present))
        pieces = [b"id: %b\ndata: %b\n\n" % (event.id.encode(), event.body) for event in batch.events]
        pieces += [b"event: passing\ndata: %b\n\n" % event.body for event in ephemeral]
        counters.events += len(batch.events)
        counters.ephemeral += len(ephemeral)
        if batch.bye is not None:
            self._over = True
            pieces.append(
                _about_stream(b"bye", {"reason": batch.bye, "retryAfterMs": _RETRY_AFTER_MS[batch.bye]})
            )
        return b"".join(pieces)


def _about_stream(event: bytes, data: dict[str, Any]) -> bytes:
    """Return an event about the stream itself."""
    return b"event: %b\ndata: %b\n\n" % (event, orjson.dumps(data))
