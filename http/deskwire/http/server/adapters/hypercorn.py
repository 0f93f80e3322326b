"""HTTP/1.1 as Hypercorn speaks it, without what lets a request slip past a proxy (ADR 25).

* HTTP/2 is refused, also where a client begins with it unasked: none of the bounds here would hold in it (ADR 41).
  `Upgrade: h2c` is left alone, as RFC 9113 has dropped it.
* A request with both `Content-Length` and `Transfer-Encoding` is refused: two readers could see two ends of it
  (RFC 9112 6.1). So is a `Content-Length` beside another, by h11 itself.
* A method in small letters is refused. Methods are case-sensitive (RFC 9110 9.1), so a proxy's rule for `POST` lets
  `post` pass, and Hypercorn would take the one for the other.
* What follows a request that was said to be the last (`Connection: close`, HTTP/1.0) is left unread (RFC 9112 9.6).
  Hypercorn would answer 400 to the request before it, which is carried out all the same.
* An answer behind which the connection ends says so (RFC 9112 9.6): that to a request whose body was not read, and
  the last one before a stop. Hypercorn would just close.
* A client that waits for `100 (Continue)` is sent it once the body is read, so not for a large one that is refused by its
  head (RFC 9110 10.1.1). Hypercorn would ask for each body.
* An answer that has begun is finished, whatever comes in meanwhile. Hypercorn would cut it off.
* A request for the stream ends what Hypercorn serves: the connection is the stream's from there on (ADR 7). So does a
  later request that the fast path takes (ADR 7). Any other websocket's upgrade is refused here, as none is served behind this.
* What comes of a body in one read goes on as one piece, and a body in more than 512 chunks of a few bytes is refused: each
  costs as much as one of 64 KiB, and a stranger may send them.
* A head of more than 16 KiB is refused before it is parsed, also where it comes in one read.
* What can't be read is answered with a problem document that has a request's id, as everything else.
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
_LAST: Final = frozenset({h11.MUST_CLOSE, h11.CLOSED})
"""States of a client that has nothing more to ask."""
_REFUSALS: Final = {
    431: ("header_too_large", "The request's line and headers are too large."),
    501: ("unsupported_transfer_encoding", "The only transfer encoding that is spoken here is chunked."),
}
_HEAD_MAX: Final = 16 * 1024
"""Bytes of a head. h11 bounds one that comes in several reads, and would parse a longer one that comes in one read."""
_TINY_BYTES: Final = 64
_TINY_MAX: Final = 512
"""Chunks of less than so many bytes that a body may have; no client that has something to send writes more of them."""
_TINY: Final = (
    "chunks_too_small",
    f"The body came in more than {_TINY_MAX} chunks of less than {_TINY_BYTES} bytes; send larger ones.",
)
_BLANK_LINES: Final = (b"\r\n\r\n", b"\n\n")
_FIRST_REQUEST_TIMEOUT_S: Final = 0.5
"""How long a connection's first request, whose first bytes have come with it, may take to begin when a stop has begun."""
_UNREADABLE: Final = ("bad_request", "This is not a well-formed HTTP request.")
_VERSIONS: Final = frozenset({b"1.0", b"1.1"})
_VERSION: Final = ("http_version_not_supported", "HTTP/1.1 is spoken here; put a proxy in front for HTTP/2.")
_NOWHERE: Final = ("not_found", "There is no such path.")
_SMALL: Final = ("bad_request", "The method must be in capital letters.")


class HandOver(Exception):
    """The next request is for the stream or the fast path; with its bytes, and all that came behind it."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data: Final = data


class StrictH11(H11Protocol):
    """Hypercorn's protocol with these changes; `elsewhere` tells of a later request's head whether others take it."""

    elsewhere: Callable[[bytes], bool]
    _method = b""
    _chunk_bytes = 0  # of the chunk that is being read
    _tiny = 0  # chunks of this body

    async def handle(self, event: ConnectionEvent) -> None:
        """Take what has come on the connection."""
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
        """Return whether more than a head may have has come, without its end."""
        come = self.connection.trailing_data[0]
        return len(come) > _HEAD_MAX and all(come.find(line, 0, _HEAD_MAX) < 0 for line in _BLANK_LINES)

    def _has_tiny_chunks(self, event: h11.Data) -> bool:
        """Count the chunk that ends with this piece; return whether the body has too many that are tiny."""
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
            await self._answered()  # which closes the connection, as its body has no end

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
            await self._answered()  # which closes the connection, as nothing can follow

    async def stream_send(self, event: StreamEvent) -> None:
        """Send what an answer is made of; its head gets the headers that it lacks."""
        if isinstance(event, Response) and event.status_code >= HTTPStatus.OK:
            ends = self.connection.their_state is h11.SEND_BODY or self.context.terminated.is_set()
            told = [(b"connection", b"close")] if ends else []
            event = replace(event, headers=[*event.headers, *missing_headers(event.headers), *told])
        await super().stream_send(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        """Leave it alone: Hypercorn would go on in another protocol where a client speaks of one."""

    async def _create_stream(self, request: h11.Request) -> None:
        if request.http_version not in _VERSIONS:
            await self._refuse(505, *_VERSION)
        elif _FRAMING <= {name for name, _ in request.headers}:
            await self._send_error_response(400)
        elif request.method != request.method.upper():
            await self._refuse(400, *_SMALL)
        elif _line(request).startswith(STREAM_REQUEST) or (
            self.keep_alive_requests and self.elsewhere(_head(request))
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
        told = [*headers, (b"connection", b"close"), *self.config.response_headers("h11")]
        reason = phrase(status).encode()
        content = () if self._method == b"HEAD" else (h11.Data(data=body),)  # RFC 9110 9.3.2
        parts = (
            h11.Response(status_code=status, headers=told, reason=reason),
            *content,
            h11.EndOfMessage(),
        )
        # In one write: between two of them the app may learn of the end, and close the connection.
        await self.send(RawData(data=b"".join(self.connection.send(part) or b"" for part in parts)))


def _line(request: h11.Request) -> bytes:
    return b"%b %b HTTP/%b\r\n" % (request.method, request.target, request.http_version)


def _head(request: h11.Request) -> bytes:
    """The request's head as it may have come."""
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
    """Hypercorn's handler of a connection, with the strict protocol. It is not idle while it brings its first request.

    With `handed_on` the connection is left open, and what comes next on it is a request for others.

    Args:
        elsewhere: whether the fast path takes a request with that head.
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
        elsewhere: Callable[[bytes], bool],
    ) -> None:
        super().__init__(app, config, context, state, cast(Any, stream))
        self._elsewhere = elsewhere

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
        strict.elsewhere = self._elsewhere
        try:
            await super()._read_data()
        except HandOver as request:
            cast(FrontStream, self.stream).push_back(request.data)
            self.handed_on = True

    async def _close(self) -> None:
        if not self.handed_on:
            await super()._close()


# DOC hypercorn_server.py: """Hypercorn with the app, as the server of what is not plain."""
#


_LAST_WRITE_TIMEOUT_S: Final = 5.0
"""Bound on the end of a response; the body has been sent by then. It is of the order of how long the whole
process may stand still (a slow disk, a stopped machine), as that counts, too."""


class HypercornServer:
    """A server of whole connections by Hypercorn's own handler of them, whatever is asked on them.

    Args:
        app: the ASGI application, given everything but `GET /app/...`.
        idle_s: how long a connection may wait for its next request.
        head_s: how long the head of a request may take from its first byte (HTTP/1.1).
        fast_path: takes the connection back with the first request that it serves; None to have the app serve all.
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
        """Return a context in which it serves, that of the app's lifespan; left when no connection is. Raises what the app's startup raises."""
        lifespan = Lifespan(ASGIWrapper(self._app), self._config, self._state)
        async with trio.open_nursery() as nursery:
            await nursery.start(lifespan.handle_lifespan)
            await lifespan.wait_for_startup()
            yield
            await lifespan.wait_for_shutdown()
            nursery.cancel_scope.cancel()

    async def serve(self, stream: FrontStream) -> bool:
        """Serve a connection; return True if its next request is for others, with its bytes pushed back."""
        connection = trio.CancelScope()
        stream.set_head_timeout(self._head_s, connection)
        app = ASGIWrapper(_finishing(self._app, stream))
        own = ConnectionState({**self._state, SLOT: stream.slot})
        secure = isinstance(stream, TlsFrontStream)

        def elsewhere(head: bytes) -> bool:
            return self._fast_path is not None and self._fast_path.accepts(head, secure=secure)

        server = StrictServer(app, self._config, self._context, own, stream, elsewhere)
        with connection:
            await server
        return server.handed_on

    async def stop(self) -> None:
        """Let connections end: those that wait for a request at once, the others with their response."""
        await self._context.terminated.set()


def _settings(idle_s: float) -> Config:
    settings = Config()
    settings.errorlog = logging.getLogger("hypercorn.error")  # the log's own way, redaction included
    settings.keep_alive_timeout = idle_s
    settings.include_server_header = False
    return settings


def _finishing(app: ASGIFramework, stream: FrontStream) -> ASGIFramework:
    """`app` with its last message of a response kept from being cancelled.

    Hypercorn closes a connection whose request body was left unread within that very call, after telling the
    app of the disconnect; on hearing of which quart-trio cancels the call, and the connection would stay. The
    same call makes a connection ready for its next request: one for which it was cut off is closed, as it
    would never read again.
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
