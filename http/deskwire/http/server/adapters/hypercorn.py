"""Hypercorn with a stricter HTTP/1.1, for requests off the fast path (ADR 25).

* HTTP/2 is refused, also from clients that start with it: none of the limits here would apply to it (ADR 41).
  `Upgrade: h2c` is ignored, because RFC 9113 has removed it.
* A request with both `Content-Length` and `Transfer-Encoding` is refused, because two readers could see two
  ends of it (RFC 9112 6.1). h11 itself refuses a second `Content-Length`.
* A method in small letters is refused. Methods are case-sensitive (RFC 9110 9.1), so a proxy's rule for
  `POST` does not match `post`, but Hypercorn would treat them alike.
* Data after the last request of a connection (`Connection: close`, HTTP/1.0) is left unread (RFC 9112 9.6).
  Hypercorn would answer 400 to the request before it, although that request is carried out.
* The last response of a connection says so (RFC 9112 9.6): the response to a request whose body was not read,
  and the last one before a stop. Hypercorn would just close.
* A client that waits for `100 (Continue)` gets it once the body is read, so a large body that is refused by
  its head is never sent (RFC 9110 10.1.1). Hypercorn would request each body.
* A response that has begun is finished, whatever arrives in the meantime. Hypercorn would cut it off.
* A request for the stream ends Hypercorn's part: the connection belongs to the stream from there on (ADR 7).
  So does a later request that the fast path accepts. Any other websocket upgrade is refused, because the app
  serves none.
* Body data of one read is passed on as one piece, and a body in more than 512 chunks of a few bytes is
  refused: each piece costs as much as one of 64 KiB, and anonymous clients may send them.
* A head of more than 16 KiB is refused before it is parsed, even if it arrives in one read.
* A malformed request gets a problem document with a request id, like every other refusal.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, cast

import h11
import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, RawData, Updated
from hypercorn.events import Event as ConnectionEvent
from hypercorn.protocol.events import Body, EndBody, Response
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.trio.lifespan import Lifespan
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import (
    ASGIFramework,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    ConnectionState,
    LifespanState,
    Scope,
)

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.http1 import phrase
from deskwire.engine.core.ids import new_id
from deskwire.http.api.output.responses import STRICT_TRANSPORT, missing_headers
from deskwire.http.api.problems import raw_problem
from deskwire.http.server.fast_path import FastPath
from deskwire.http.transport.connection import STREAM_REQUEST, FrontStream, TlsFrontStream
from deskwire.http.transport.connection_slots import SLOT

log: Final = structlog.get_logger(__name__)

_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
# States of a client that sends no further request.
_LAST: Final = frozenset({h11.MUST_CLOSE, h11.CLOSED})
_REFUSALS: Final = {
    431: ("header_too_large", "The request's line and headers are too large."),
    501: ("unsupported_transfer_encoding", "The only transfer encoding that is spoken here is chunked."),
}
# Bytes of a head. h11 checks the limit only between reads, and would parse a longer head that arrives in
# one read.
_HEAD_MAX: Final = 16 * 1024
_TINY_BYTES: Final = 64
# Chunks with fewer than `_TINY_BYTES` that a body may have; no legitimate client sends more of them.
_TINY_MAX: Final = 512
_TINY: Final = (
    "chunks_too_small",
    f"The body came in more than {_TINY_MAX} chunks of less than {_TINY_BYTES} bytes; send larger ones.",
)
_BLANK_LINES: Final = (b"\r\n\r\n", b"\n\n")
# During a stop, the first request of a connection, whose first bytes have arrived, may take this long to
# begin.
_FIRST_REQUEST_TIMEOUT_S: Final = 0.5
_UNREADABLE: Final = ("bad_request", "This is not a well-formed HTTP request.")
_VERSIONS: Final = frozenset({b"1.0", b"1.1"})
_VERSION: Final = ("http_version_not_supported", "HTTP/1.1 is spoken here; put a proxy in front for HTTP/2.")
_NOWHERE: Final = ("not_found", "There is no such path.")
_SMALL: Final = ("bad_request", "The method must be in capital letters.")


class HandOver(Exception):
    """The next request is for the stream or the fast path.

    `data` has its bytes and all received after it.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data: Final = data


class StrictH11(H11Protocol):
    """Hypercorn's protocol with the changes above.

    `fast_path_accepts` returns whether the fast path accepts a later request's head.
    """

    fast_path_accepts: Callable[[bytes], bool]
    _method = b""
    _chunk_bytes = 0  # bytes of the current chunk
    _tiny = 0  # tiny chunks of this body

    async def handle(self, event: ConnectionEvent) -> None:
        """Handle an event of the connection."""
        if not (isinstance(event, RawData) and event.data and self.connection.their_state in _LAST):
            await super().handle(event)

    async def _handle_events(self) -> None:
        pieces: list[bytes] = []
        while self.connection.their_state not in _LAST:
            if self.connection.their_state is h11.IDLE and self._head_too_large():
                await self._send_error_response(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                await self.send(Closed())
                return
            try:
                event = self.connection.next_event()
            except h11.RemoteProtocolError as error:
                await self._not_readable(error)
                return
            if isinstance(event, h11.Data) and self.stream is not None:
                pieces.append(bytes(event.data))
                if self._has_tiny_chunks(event):
                    await self._refuse_tiny_chunks()
                    return
                continue
            if pieces and self.stream is not None:
                await self.stream.handle(Body(stream_id=STREAM_ID, data=b"".join(pieces)))
                pieces.clear()
            if isinstance(event, h11.Request):
                self._method, self._chunk_bytes, self._tiny = event.method, 0, 0
                await self.send(Updated(idle=False))
                await self._check_protocol(event)
                await self._create_stream(event)
            elif event is h11.PAUSED:
                await self._answered()
            elif self.stream is None or isinstance(event, h11.ConnectionClosed) or event is h11.NEED_DATA:
                return
            elif isinstance(event, h11.EndOfMessage):
                await self.stream.handle(EndBody(stream_id=STREAM_ID))

    def _head_too_large(self) -> bool:
        """True if more bytes have arrived than a head may have, without its end."""
        come = self.connection.trailing_data[0]
        return len(come) > _HEAD_MAX and all(come.find(line, 0, _HEAD_MAX) < 0 for line in _BLANK_LINES)

    def _has_tiny_chunks(self, event: h11.Data) -> bool:
        """Count the chunk that ends with this piece.

        Returns whether the body has too many tiny chunks.
        """
        self._chunk_bytes += len(event.data)
        if event.chunk_end:
            self._tiny += self._chunk_bytes < _TINY_BYTES
            self._chunk_bytes = 0
        return self._tiny > _TINY_MAX

    async def _refuse_tiny_chunks(self) -> None:
        log.info("http.chunks_too_small")
        if self.connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            await self._refuse(HTTPStatus.BAD_REQUEST, *_TINY)
            await self.send(Closed())
        else:
            await self._answered()  # which closes the connection, because its body has no end

    async def _continue_body(self) -> None:
        if self.connection.they_are_waiting_for_100_continue:
            headers = self.config.response_headers("h11")
            await self._send_h11_event(h11.InformationalResponse(status_code=100, headers=headers))

    async def _answered(self) -> None:
        await self.can_read.clear()
        await self.can_read.wait()

    async def _not_readable(self, error: h11.RemoteProtocolError) -> None:
        if self.connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            await self._send_error_response(error.error_status_hint)
            await self.send(Closed())
        elif self.stream is not None:
            await self._answered()  # which closes the connection, because no request can follow

    async def stream_send(self, event: StreamEvent) -> None:
        """Send a part of a response.

        Its head gets the missing headers.
        """
        if isinstance(event, Response) and event.status_code >= HTTPStatus.OK:
            ends = self.connection.their_state is h11.SEND_BODY or self.context.terminated.is_set()
            extra = [(b"connection", b"close")] if ends else []
            event = replace(event, headers=[*event.headers, *missing_headers(event.headers), *extra])
        await super().stream_send(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        """Do nothing: Hypercorn would switch to another protocol at the client's request."""

    async def _create_stream(self, request: h11.Request) -> None:
        if request.http_version not in _VERSIONS:
            await self._refuse(505, *_VERSION)
        elif _FRAMING <= {name for name, _ in request.headers}:
            await self._send_error_response(400)
        elif request.method != request.method.upper():
            await self._refuse(400, *_SMALL)
        elif _line(request).startswith(STREAM_REQUEST) or (
            self.keep_alive_requests and self.fast_path_accepts(_head(request))
        ):
            raise HandOver(_head(request) + self.connection.trailing_data[0])
        elif _asks_for_websocket(request):
            await self._refuse(404, *_NOWHERE)
        else:
            self.connection_state[SLOT].continue_body = self._continue_body
            await super()._create_stream(request)
            return
        await self.send(Closed())

    async def _send_error_response(self, status_code: int) -> None:
        await self._refuse(status_code, *_REFUSALS.get(status_code, _UNREADABLE))

    async def _refuse(self, status: int, code: str, detail: str) -> None:
        request_id = new_id("req", wall_clock())
        headers, body = raw_problem(status, code, detail, request_id)
        log.info("http.unreadable", status=status, code=code, request_id=request_id)
        if self.ssl:
            headers.append((STRICT_TRANSPORT[0].lower().encode(), STRICT_TRANSPORT[1].encode()))
        extra = [*headers, (b"connection", b"close"), *self.config.response_headers("h11")]
        reason = phrase(status).encode()
        content = () if self._method == b"HEAD" else (h11.Data(data=body),)  # RFC 9110 9.3.2
        parts = (
            h11.Response(status_code=status, headers=extra, reason=reason),
            *content,
            h11.EndOfMessage(),
        )
        # One write, because between two writes the app may notice the end and close the connection.
        await self.send(RawData(data=b"".join(self.connection.send(part) or b"" for part in parts)))


def _line(request: h11.Request) -> bytes:
    return b"%b %b HTTP/%b\r\n" % (request.method, request.target, request.http_version)


def _head(request: h11.Request) -> bytes:
    """Return the request's head in a form that parses to the same request."""
    fields = b"".join([b"%b: %b\r\n" % field for field in request.headers.raw_items()])
    return _line(request) + fields + b"\r\n"


def _asks_for_websocket(request: h11.Request) -> bool:
    headers = {name: value.lower() for name, value in request.headers}
    wishes = {wish.strip() for wish in headers.get(b"connection", b"").split(b",")}
    return (
        request.method == b"GET"
        and b"upgrade" in wishes
        and headers.get(b"upgrade", b"").strip() == b"websocket"
    )


class StrictServer(TCPServer):
    """Hypercorn's handler of a connection, with the strict protocol.

    A connection with its first request is not idle.

    If `handed_on`, the connection is open, and its next request is for the stream or the fast path.

    Args:
        fast_path_accepts: returns whether the fast path accepts a request with that head.
    """

    handed_on = False
    _new = True

    def __init__(
        self,
        app: ASGIWrapper,
        config: Config,
        context: WorkerContext,
        state: ConnectionState,
        stream: FrontStream,
        fast_path_accepts: Callable[[bytes], bool],
    ) -> None:
        super().__init__(app, config, context, state, cast(Any, stream))
        self._fast_path_accepts = fast_path_accepts

    async def _idle_timeout(self) -> None:
        if self._new:
            self._new = False
            await trio.sleep(_FIRST_REQUEST_TIMEOUT_S)
        await super()._idle_timeout()

    async def _read_data(self) -> None:
        made = self.protocol.protocol
        self.protocol.protocol = strict = StrictH11(
            made.app,
            made.config,
            made.context,
            made.task_group,
            made.connection_state,
            made.ssl,
            made.client,
            made.server,
            made.send,
        )
        strict.fast_path_accepts = self._fast_path_accepts
        try:
            await super()._read_data()
        except HandOver as request:
            cast(FrontStream, self.stream).push_back(request.data)
            self.handed_on = True

    async def _close(self) -> None:
        if not self.handed_on:
            await super()._close()


# Time limit of the end of a response, whose body has been sent by then. It allows for pauses of the whole
# process (a slow disk, a stopped machine), which count as well.
_LAST_WRITE_TIMEOUT_S: Final = 5.0


class HypercornServer:
    """Serves connections with Hypercorn's own connection handler.

    Args:
        app: the ASGI application, which gets all requests but `GET /app/...`.
        idle_s: how long a connection may wait for its next request.
        head_s: how long the head of a request may take from its first byte (HTTP/1.1).
        fast_path: gets the connection back with the first request that it accepts; None for no fast path.
    """

    def __init__(
        self, app: ASGIFramework, *, idle_s: float, head_s: float, fast_path: FastPath | None = None
    ) -> None:
        self._app = app
        self._config = _settings(idle_s)
        self._head_s = head_s
        self._fast_path = fast_path
        self._state: LifespanState = {}
        self._context = WorkerContext(None)

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Return the context of the app's lifespan, in which connections are served.

        Raises the exceptions of the app's startup.
        """
        lifespan = Lifespan(ASGIWrapper(self._app), self._config, self._state)
        async with trio.open_nursery() as nursery:
            await nursery.start(lifespan.handle_lifespan)
            await lifespan.wait_for_startup()
            yield
            await lifespan.wait_for_shutdown()
            nursery.cancel_scope.cancel()

    async def serve(self, stream: FrontStream) -> bool:
        """Serve a connection.

        Returns True if its next request is for the stream or the fast path, with its bytes pushed back.
        """
        connection = trio.CancelScope()
        stream.set_head_timeout(self._head_s, connection)
        app = ASGIWrapper(_finishing(self._app, stream))
        own = ConnectionState({**self._state, SLOT: stream.slot})
        secure = isinstance(stream, TlsFrontStream)

        def fast_path_accepts(head: bytes) -> bool:
            return self._fast_path is not None and self._fast_path.accepts(head, secure=secure)

        server = StrictServer(app, self._config, self._context, own, stream, fast_path_accepts)
        with connection:
            await server
        return server.handed_on

    async def stop(self) -> None:
        """End the connections: idle ones at once, the others after their response."""
        await self._context.terminated.set()


def _settings(idle_s: float) -> Config:
    settings = Config()
    settings.errorlog = logging.getLogger("hypercorn.error")  # through the service's log, with its redaction
    settings.keep_alive_timeout = idle_s
    settings.include_server_header = False
    return settings


def _finishing(app: ASGIFramework, stream: FrontStream) -> ASGIFramework:
    """Return `app`, whose last message of a response can't be cancelled.

    If a request body was left unread, Hypercorn closes the connection within that call, after notifying the
    app of the disconnect; quart-trio then cancels the call, and the connection would stay open. The same call
    prepares a connection for its next request: if it is cut off, the connection is closed, because it would
    never read again.
    """

    async def finishing(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def send_whole(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                with trio.move_on_after(_LAST_WRITE_TIMEOUT_S, shield=True) as sending:
                    await send(message)
                if sending.cancelled_caught:
                    await trio.aclose_forcefully(stream)
            else:
                await send(message)

        with stream.serving():
            await stream.ensure_turn()
            await app(scope, receive, send_whole)

    return finishing
