"""The fast path: plain API calls are served without a framework (ADR 7).

A connection stays here while its requests are plain and their routes are `direct`. A request is plain if `plain_request`
parses its head, it is no long poll, and no page of another origin sent it. Any other request is handed over unread, with all
data after it, to Hypercorn and Quart, which can serve everything. The next plain request returns the connection.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, suppress
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from math import inf
from typing import Any, Final
from urllib.parse import unquote

import trio

from deskwire.engine.core.http1 import END, HEAD_MAX, RequestHead, phrase, plain_request
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.limits.rate_limit import Quota
from deskwire.http.api.input.headers import PlainFields, mimetype_of
from deskwire.http.api.output.responses import BASELINE, STRICT_TRANSPORT
from deskwire.http.api.pipeline import (
    REQUEST_ID,
    ApiRequest,
    ApiResponse,
    handle,
    internal_error_response,
    query_parameters,
    record_response,
)
from deskwire.http.api.rate_limits import header_fields
from deskwire.http.api.route_trie import RouteTrie
from deskwire.http.api.routing import CUSTOMER_PATHS, Route
from deskwire.http.api.services import Services
from deskwire.http.stream.sse import EventStreamBody
from deskwire.http.transport.connection import (
    DRAIN_BYTES_MAX,
    DRAIN_TIMEOUT_S,
    STREAM_REQUEST,
    FrontStream,
    TlsFrontStream,
)
from deskwire.http.transport.hangups import Hangups

# Statuses whose responses have no content and no content length (RFC 9110 8.6).
_WITHOUT_CONTENT: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)

_BEGINNINGS: Final = (b"GET /", b"POST /", b"PUT /", b"PATCH /", b"DELETE /")
# Time limit for the rest of a head that arrives in several segments; Hypercorn serves slower clients.
_HEAD_REST_TIMEOUT_S: Final = 0.5
_RECENT_REQUEST_S: Final = 1.0
# During a stop, a recently used connection is kept for this long, because its next request may be on its
# way.
_NEXT_REQUEST_TIMEOUT_S: Final = 0.25

_Match = tuple[RequestHead, Route, dict[str, str]]


class FastPath:
    """Serves connections until their first request that is not plain.

    Args:
        routes: all routes; only `direct` ones are served.
        idle_s: how long a connection may wait for its next request.
    """

    def __init__(self, services: Services, routes: Iterable[Route], *, idle_s: float) -> None:
        self._services = services
        self._table = RouteTrie(routes, direct=True)
        self._idle_s = idle_s
        self._waiting: dict[
            trio.CancelScope, tuple[float, FrontStream]
        ] = {}  # start of the wait; the longest wait first
        self._wakeup = trio.Event()
        self._stopping = False
        self._hangups = Hangups()

    async def run(self) -> None:
        """Close connections that have been idle for too long, and end the events of clients that have gone, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hangups.run)
            nursery.start_soon(self._close_idle)

    async def _close_idle(self) -> None:
        """Close connections that have been idle for too long; one task, because a timer each would cost more."""
        while True:
            if not self._waiting:
                self._wakeup = trio.Event()
                await self._wakeup.wait()
                continue
            scope, (since, _) = next(iter(self._waiting.items()))
            if trio.current_time() < since + self._idle_s:
                await trio.sleep_until(since + self._idle_s)
            else:
                del self._waiting[scope]
                scope.cancel()

    def stop(self) -> None:
        """End the connections: idle ones at once, the others after their response.

        A request that has arrived unread or may be on its way is still answered; otherwise its client would
        not know whether it was carried out.
        """
        self._stopping, now = True, trio.current_time()
        for scope, (since, stream) in self._waiting.items():
            if now - since < _RECENT_REQUEST_S or stream.has_unread_data():
                scope.deadline = now + _NEXT_REQUEST_TIMEOUT_S
            else:
                scope.cancel()

    async def serve(self, stream: FrontStream) -> bool:
        """Answer requests.

        Returns True if the next request is not plain, with its bytes pushed back.

        Raises BrokenResourceError if the client has disconnected.
        """
        connection = _Connection(stream)
        stream.set_idle(idle=False)
        with trio.CancelScope() as scope:
            while True:
                if connection.buffer:
                    if connection.served:
                        await trio.lowlevel.checkpoint()  # lets other tasks run between pipelined requests
                    await stream.next_turn()
                elif not await self._next(connection, stream, scope):
                    return False
                if _is_incomplete_head(connection.buffer):
                    await connection.receive_head()
                match = self._match(connection)
                if match is None:
                    stream.push_back(connection.buffer)
                    stream.set_idle(idle=True)
                    return True
                connection.served = True
                answered = await self._respond(connection, *match)
                del match  # events may be written for hours, and need nothing of the request
                if isinstance(answered, EventStreamBody):
                    connection.buffer = b""
                    with self._hangups.watching(connection.descriptor, scope.cancel):
                        await connection.send_chunks(answered)
                elif answered:
                    continue
                return False
        return False

    async def _next(self, connection: _Connection, stream: FrontStream, scope: trio.CancelScope) -> bool:
        """Wait for the first bytes of a request.

        Returns False if none arrive in time.
        """
        stream.set_idle(idle=True)
        now = trio.current_time()
        self._waiting[scope] = now, stream
        if self._stopping:  # the stop began while a response without `connection: close` was sent
            scope.deadline = now + _NEXT_REQUEST_TIMEOUT_S
        if len(self._waiting) == 1:
            self._wakeup.set()
        try:
            # A request that arrives with the cancellation is not started, because it could be cancelled half way.
            return await connection.receive() and not scope.cancel_called
        finally:
            self._waiting.pop(scope, None)
            if self._stopping:
                scope.deadline = inf
            stream.set_idle(idle=False)

    def accepts(self, head: bytes, *, secure: bool) -> bool:
        """Return whether a request with this head, blank line included, is served here."""
        return len(head) <= HEAD_MAX and self._found(head, secure) is not None

    def _match(self, connection: _Connection) -> _Match | None:
        """Take the next request from the buffer.

        Returns None if it is incomplete or not plain.
        """
        end = connection.buffer.find(END, 0, HEAD_MAX) + len(END)
        match = self._found(connection.buffer[:end], connection.secure) if end >= len(END) else None
        if match is not None:
            connection.begin(end, match[0].length or 0)
        return match

    def _found(self, data: bytes, secure: bool) -> _Match | None:
        """Return the parsed head with its route.

        Returns None if the request is not for the fast path.
        """
        head = plain_request(data)
        if head is None or _is_long_poll(head.query):
            return None
        if not (head.path.startswith(CUSTOMER_PATHS) or self._own_page(head, secure)):
            return None
        found = self._table.find(head.path.split("/"))  # a plain path has no percent-encoding
        route = None if found is None else found[0].routes.get(head.method)
        return None if found is None or route is None else (head, route, found[1])

    def _own_page(self, head: RequestHead, secure: bool) -> bool:
        """Return whether the request comes from no foreign origin.

        Requests of other origins need CORS headers, which the pipeline adds for customers' calls only.
        """
        origins = head.fields.get("origin")
        if origins is None:
            return True
        services = self._services
        return (
            len(origins) == 1
            and origins[0] not in services.limits.cors_origins
            and services.sessions.is_own(origins[0], PlainFields(head.fields), secure=secure)
        )

    async def _respond(
        self, connection: _Connection, head: RequestHead, route: Route, path: dict[str, str]
    ) -> bool | EventStreamBody[Any]:
        """Serve the request and write its response.

        Returns whether the connection may have another request, or the events that are to be written from now on.
        """
        services, began = self._services, time.perf_counter()
        at = services.clock()
        request_id = new_id("req", at)
        REQUEST_ID.set(request_id)
        headers = PlainFields(head.fields)
        request = ApiRequest(
            request_id,
            at,
            head.method,
            route,
            path,
            partial(query_parameters, head.query),
            headers,
            connection.peer,
            mimetype_of(headers.get("content-type")),
            head.length,
            connection,
            connection.whole,
            connection.slot,
            connection.secure,
        )
        left = None
        try:
            response, left = await handle(services, request)
        except _Disconnected:
            return False
        except BaseException as error:  # noqa: BLE001  # the request's top level: a bug ends in one response of 500
            response = internal_error_response(request_id, error)
        record_response(services, head.method, route.path, response.status, began, request_id)
        if connection.missing and not head.last:
            await self._drain_body(connection)
        pieces = response.pieces
        endless = isinstance(pieces, EventStreamBody)
        keep_alive = not (head.last or self._stopping or connection.missing or endless)
        await connection.send(_written(response, request_id, left, connection.secure, keep_alive))
        if isinstance(pieces, EventStreamBody):
            return pieces
        if pieces is not None:
            async for piece in pieces:
                await connection.send(piece)
        return keep_alive

    async def _drain_body(self, connection: _Connection) -> None:
        """Read the rest of an unwanted body, if it is small and arrives soon."""
        if connection.missing <= DRAIN_BYTES_MAX:
            with trio.move_on_after(DRAIN_TIMEOUT_S), suppress(_Disconnected):
                async for _ in connection:
                    pass


def _is_incomplete_head(data: bytes) -> bool:
    """Return whether the buffer holds an incomplete plain request head."""
    return (
        data.find(END, 0, HEAD_MAX) < 0
        and len(data) < HEAD_MAX
        and data.startswith(_BEGINNINGS)
        and not data.startswith(STREAM_REQUEST)
    )


def _is_long_poll(query: str) -> bool:
    """Return whether the query asks to wait for events.

    Quart serves long polls, because their clients may disconnect.
    """
    return "wait=" in (unquote(query) if "%" in query else query)


class _Disconnected(Exception):
    """The client has disconnected before its request was complete."""


class _Connection:
    """A connection's buffer.

    Iterating yields the body of a request that had not arrived completely.

    `buffer` holds received data, `missing` is the number of unread bytes of the body, and `whole` is the body
    if it has arrived with the head. `served` is True once a request was.
    """

    __slots__ = ("_stream", "buffer", "missing", "peer", "secure", "served", "slot", "whole")

    def __init__(self, stream: FrontStream) -> None:
        self._stream = stream
        self.buffer = stream.take_back()  # a request that has arrived is answered even during a stop
        self.missing = 0
        self.served = False
        self.whole: bytes | None = None
        self.peer = stream.peer
        self.slot = stream.slot
        self.secure = isinstance(stream, TlsFrontStream)

    async def receive(self) -> bool:
        """Wait for more bytes.

        Returns False at the end. Raises BrokenResourceError.
        """
        data = await self._stream.receive_next()
        self.buffer += data
        return bool(data)

    async def receive_head(self) -> None:
        """Wait briefly for the rest of a head. Raises BrokenResourceError."""
        with trio.move_on_after(_HEAD_REST_TIMEOUT_S):
            while _is_incomplete_head(self.buffer) and await self.receive():
                pass

    def begin(self, end: int, length: int) -> None:
        """Take a head of this length from the buffer, and the body if it is complete."""
        upto = end + length
        if len(self.buffer) < upto:
            self.missing, self.whole, self.buffer = length, None, self.buffer[end:]
        else:
            self.missing, self.whole, self.buffer = 0, self.buffer[end:upto], self.buffer[upto:]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self.missing:
            raise StopAsyncIteration
        try:
            if not self.buffer and not await self.receive():
                raise _Disconnected
        except trio.BrokenResourceError as error:
            raise _Disconnected from error
        piece, self.buffer = self.buffer[: self.missing], self.buffer[self.missing :]
        self.missing -= len(piece)
        return piece

    async def send_chunks(self, pieces: EventStreamBody[Any]) -> None:
        """Write pieces in chunks until they end. Raises BrokenResourceError."""
        async with aclosing(pieces):
            async for piece in pieces:
                await self.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self.send(b"0\r\n\r\n")

    @property
    def descriptor(self) -> int:
        """The file descriptor of the connection; negative once it is closed."""
        return self._stream.socket.fileno()

    async def send(self, data: bytes) -> None:
        """Write all data. Raises BrokenResourceError."""
        rest = self._stream.send_now(data)
        if rest:
            await self._stream.send_all(rest)


@lru_cache(maxsize=256)
def _head(status: int, content_type: str, secure: bool, own: frozenset[str]) -> str:
    """Return the status line and the common headers of a kind of response.

    `own` names headers that the response sets itself.
    """
    fields = [*BASELINE, STRICT_TRANSPORT] if secure else [*BASELINE]
    fields = [field for field in fields if field[0] not in own]
    if content_type:
        fields.append(("content-type", content_type))
    return f"HTTP/1.1 {status} {phrase(status)}\r\n{_lines(fields)}"


@lru_cache(maxsize=256)
def _own_lines(headers: tuple[tuple[str, str], ...]) -> str:
    """Return the headers that a response sets itself; most responses that set some have the same ones."""
    return _lines(headers)


def _lines(fields: Iterable[tuple[str, str]]) -> str:
    return "".join([f"{name.lower()}: {value}\r\n" for name, value in fields])


def _written(
    response: ApiResponse, request_id: str, left: Quota | None, secure: bool, keep_alive: bool
) -> bytes:
    """Return the response as bytes."""
    endless = isinstance(response.pieces, EventStreamBody)
    known = response.pieces is None or "Content-Length" in response.headers
    assert known or endless, "a direct route knows the length"
    head = _head(response.status, response.content_type, secure, frozenset(response.headers))
    bare = response.pieces is not None or response.status in _WITHOUT_CONTENT
    length = "" if bare else f"content-length: {len(response.body)}\r\n"
    if endless:
        length = "transfer-encoding: chunked\r\n"
    own = _own_lines(tuple(response.headers.items())) if response.headers else ""
    if response.cookies:
        own += _lines(("Set-Cookie", cookie) for cookie in response.cookies)
    quota = "" if left is None else _lines(header_fields(left).items())
    close = "" if keep_alive else "connection: close\r\n"
    date = _date(int(time.time()))
    whole = f"{head}date: {date}\r\nx-request-id: {request_id}\r\n{length}{own}{quota}{close}\r\n"
    return whole.encode("ascii") + response.body


@lru_cache(maxsize=1)
def _date(now_s: int) -> str:
    """Return a time in seconds since the epoch as an HTTP date (RFC 9110 5.6.7)."""
    return formatdate(now_s, usegmt=True)
