"""The Quart-Trio app for all routes, with backpressure for request bodies.

Quart buffers unread body data, up to the largest body of any route. Here the buffer is limited: the
connection is not read until the handler has taken its part, and TCP slows down the client.

The rest of a body is read before the response is sent, so that the connection can have another request. If
that would be too much or takes too long, the response announces the end of the connection (`hypercorn`, RFC
9112 9.6).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Final

import structlog
import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, ASGISendEvent
from quart import Response as QuartResponse
from quart import g, request
from quart.wrappers import Request
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers.request import TrioBody, TrioRequest
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from deskwire.engine.core.errors import DomainError
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.engine.core.values import replace
from deskwire.http.api.output.cors import Cors
from deskwire.http.api.output.responses import add_missing_headers, json_line
from deskwire.http.api.pipeline import (
    REQUEST_ID,
    ApiRequest,
    ApiResponse,
    handle,
    internal_error_response,
    query_parameters,
    record_response,
    refusal_response,
)
from deskwire.http.api.problems import PROBLEM, problem
from deskwire.http.api.rate_limits import header_fields
from deskwire.http.api.route_trie import RouteTrie, path_of, path_segments
from deskwire.http.api.routing import Route
from deskwire.http.api.services import Services
from deskwire.http.stream.sse import EventStreamBody
from deskwire.http.transport.connection import DRAIN_BYTES_MAX, DRAIN_TIMEOUT_S
from deskwire.http.transport.connection_slots import SLOT

_HTTP_CODES: Final = {404: "not_found", 405: "method_not_allowed"}


class _App(QuartTrio):
    """Quart with our route table instead of its URL map.

    The URL map splits a path after decoding it (ADR 7).
    """

    def __init__(self, services: Services) -> None:
        super().__init__(__name__, static_folder=None)
        self._services = services

    def create_url_adapter(self, request: object) -> None:
        """Return None: the route table finds the route of a request."""

    async def dispatch_request(self, request_context: object = None) -> QuartResponse:
        """Return the response of the request's route.

        Raises HTTPException for an unknown path or method.
        """
        if g.node is None:
            raise NotFound
        g.route = g.node.routes.get(request.method)
        if g.route is None:
            raise MethodNotAllowed(g.node.routes)
        incoming = ApiRequest(
            _request_id(),
            self._services.clock(),
            request.method,
            g.route,
            g.values,
            partial(query_parameters, request.query_string.decode("utf-8", "replace")),
            request.headers,
            request.remote_addr,
            request.mimetype,
            request.content_length,
            request.body,
            slot=request.scope.get("state", {}).get(SLOT),
            secure=request.scheme == "https",
        )
        try:
            response, g.quota = await handle(self._services, incoming)
        except BaseException as error:  # noqa: BLE001  # here, because quart-trio drops exceptions that come with a cancellation
            response = internal_error_response(incoming.id, error)
        if request.method == "HEAD" and isinstance(response.pieces, EventStreamBody):
            response = replace(response, pieces=_nothing())  # it has opened no stream yet, and never ends
        return _response(response)


async def _nothing() -> AsyncIterator[bytes]:
    """Yield nothing."""
    return
    yield


def make_app(services: Services, routes: Iterable[Route]) -> QuartTrio:
    """Return the ASGI app with these routes."""
    app = _App(services)
    app.config["MAX_CONTENT_LENGTH"] = None  # each route has its own limit, and one has none
    app.asgi_http_class = BackpressureConnection
    app.request_class = BackpressureRequest
    app.register_error_handler(DomainError, _refused)
    app.register_error_handler(HTTPException, _refused_by_quart)
    app.register_error_handler(Exception, _failed)
    cors = Cors(services.limits.cors_origins)
    app.before_request(partial(_begin, services))
    app.before_request(partial(_find, RouteTrie(routes)))
    app.before_request(partial(_asked_beforehand, cors))
    app.after_request(partial(_end, services, cors))
    return app


def _response(ours: ApiResponse) -> QuartResponse:
    response = QuartResponse(
        ours.body if ours.pieces is None else ours.pieces,
        ours.status,
        headers=dict(ours.headers),
        content_type=ours.content_type or None,
    )
    for cookie in ours.cookies:
        response.headers.add("Set-Cookie", cookie)
    if not ours.content_type:
        response.headers.pop("Content-Type", None)
    if ours.pieces is not None:
        response.timeout = None  # each of its writes has a timeout
    return response


def _request_id() -> str:
    return str(g.request_id)


async def _begin(services: Services) -> None:
    g.request_id = new_id("req", services.clock())
    g.started = time.perf_counter()
    g.quota = g.route = None
    g.path = ""  # until it is read
    REQUEST_ID.set(g.request_id)


async def _find(table: RouteTrie) -> None:
    """Find the node of the request's path, which is kept as it was sent, percent-encoded. Raises BadRequest."""
    g.path = path_of(request.scope["raw_path"].decode("ascii"))
    found = table.find(path_segments(g.path))
    g.node, g.values = found or (None, {})


async def _asked_beforehand(cors: Cors) -> QuartResponse | None:
    return cors.preflight(request, g.path, g.node)


async def _end(services: Services, cors: Cors, response: QuartResponse) -> QuartResponse:
    response.headers["X-Request-Id"] = _request_id()
    if g.quota is not None:
        response.headers.update(header_fields(g.quota))
    cors.open_up(request, g.path, g.route, response.headers)
    add_missing_headers(response.headers, secure=request.scheme == "https")
    rule = g.route.path if g.route else None
    record_response(services, request.method, rule, response.status_code, g.started, _request_id())
    return response


async def _refused(error: DomainError) -> QuartResponse:
    """Return the response to a request that was refused before its route was known."""
    return _response(refusal_response(error, _request_id()))


async def _refused_by_quart(error: HTTPException) -> QuartResponse:
    """Return the response to a request that has reached no handler.

    Its path is unknown or its method wrong.
    """
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    headers = {}
    valid_methods = getattr(error, "valid_methods", None)
    if valid_methods:
        headers["Allow"] = ", ".join(sorted(valid_methods))
    detail = {
        404: "There is no such path. A slash within an id is sent as %2F.",
        405: f"This path answers to {headers.get('Allow', 'other methods')}.",
    }.get(status, error.description or "The request can't be served.")
    document = problem(status, _HTTP_CODES.get(status, "bad_request"), detail, _request_id())
    return QuartResponse(json_line(document), status, headers=headers, content_type=PROBLEM)


async def _failed(error: Exception) -> QuartResponse:
    return _response(internal_error_response(_request_id(), error))


log: Final = structlog.get_logger(__name__)

# Bytes that may wait for the handler; the connection delivers up to 64 KiB at a time.
BUFFERED_BYTES_MAX: Final = 256 * 1024


class BackpressureBody(TrioBody):
    """A body whose buffer is limited."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        self._taken = trio.Event()
        self._over = trio.Event()
        self._abandoned = False
        self._left = expected_content_length  # None if unknown
        self._unread = 0
        self.ask: Callable[[], Awaitable[None]] | None = None
        """Asks the client for the body, while it waits to be asked."""

    async def __anext__(self) -> bytes:
        """Return the bytes received since the last call.

        The first call sends `100 (Continue)` if the client waits for it.
        """
        if self.ask is not None:
            ask, self.ask = self.ask, None
            await ask()
        data = await super().__anext__()
        self._taken.set()
        return data

    async def room(self) -> None:
        """Return once the buffer has room."""
        while len(self._data) > BUFFERED_BYTES_MAX and not self._abandoned:
            self._taken = trio.Event()
            await self._taken.wait()

    def append(self, data: bytes) -> None:
        """Buffer received data, unless the body was abandoned."""
        self.ask = None
        if self._left is not None:
            self._left -= len(data)
        if not self._abandoned:
            super().append(data)
            return
        self._unread += len(data)
        if self._unread > DRAIN_BYTES_MAX:
            self._over.set()

    def set_complete(self) -> None:
        """Note the end of the body."""
        super().set_complete()
        self._over.set()

    async def abandon(self) -> None:
        """Discard the rest of the body.

        The response is ready, and Hypercorn waits until the body has been read.

        Returns once all of it has arrived, or the connection can't have another request.
        """
        self._abandoned = True
        self._taken.set()
        if self.ask is not None and self._left is not None and self._left <= DRAIN_BYTES_MAX:
            await self.ask()  # after a small body the connection can have another request
        elif self.ask is not None:
            return
        if self._left is None or self._left <= DRAIN_BYTES_MAX:
            with trio.move_on_after(DRAIN_TIMEOUT_S):
                await self._over.wait()


class BackpressureRequest(TrioRequest):
    """A request with a `BackpressureBody`."""

    body_class = BackpressureBody


class BackpressureConnection(TrioASGIHTTPConnection):
    """Quart's handler of a request, for any target.

    It stops reading while the body's buffer is full.
    """

    def _create_request_from_scope(self, send: ASGISendCallable) -> Request:
        self.scope["path"] = "/"  # Quart can't parse every target; the route table uses the raw path
        request = super()._create_request_from_scope(send)
        if request.headers.get("expect", "").lower() == "100-continue":
            assert isinstance(request.body, BackpressureBody)
            request.body.ask = request.scope["state"][SLOT].continue_body
        return request

    async def handle_messages(  # type: ignore[override]  # as in quart-trio
        self, nursery: trio.Nursery, request: Request, receive: ASGIReceiveCallable
    ) -> None:
        """Pass the body on until the client disconnects, which ends the handler."""
        assert isinstance(request.body, BackpressureBody)
        while True:
            message = await receive()
            if message["type"] == "http.request":
                request.body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    request.body.set_complete()
                await request.body.room()
            elif message["type"] == "http.disconnect":
                break
        nursery.cancel_scope.cancel()

    async def handle_request(  # type: ignore[override]  # as in quart-trio
        self, nursery: trio.Nursery, request: Request, send: ASGISendCallable
    ) -> None:
        """Answer the request.

        Once its response begins, its body is discarded.
        """
        body = request.body
        assert isinstance(body, BackpressureBody)

        async def answer(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                await body.abandon()
            await send(message)

        # An exception during a response can only cut it off: Hypercorn closes the connection.
        with contain_failures(lambda failure: log.error("http.failed", exc_info=failure)):
            await super().handle_request(nursery, request, answer)
        nursery.cancel_scope.cancel()
