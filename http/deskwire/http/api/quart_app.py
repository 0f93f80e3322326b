"""The Quart-Trio app: takes a request through its route's checks to its handler, and back."""

from __future__ import annotations

import time
from functools import partial
from http import HTTPStatus
from typing import Final

from quart import Response as QuartResponse
from quart import g, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from deskwire.engine.core.errors import DomainError
from deskwire.engine.core.ids import new_id
from deskwire.http.api.app import ROUTES
from deskwire.http.api.output.cors import Cors
from deskwire.http.api.output.headers import complete
from deskwire.http.api.output.lines import line_of
from deskwire.http.api.pipeline import Request, Response, failed, handle, note, parameters, refused
from deskwire.http.api.problems import PROBLEM, problem
from deskwire.http.api.rate_limits import header_fields
from deskwire.http.api.request_id import REQUEST_ID
from deskwire.http.api.services import Services
from deskwire.http.server.connections import PLACE
from deskwire.http.server.pacing import PacedConnection, PacedRequest
from deskwire.http.server.route_trie import Table, parts_of, path_of

_HTTP_CODES: Final = {404: "not_found", 405: "method_not_allowed"}


class _App(QuartTrio):
    """Quart, with our table in the place of its URL map, which splits a path when it is decoded already (ADR 7)."""

    def __init__(self, services: Services) -> None:
        super().__init__(__name__, static_folder=None)
        self._services = services

    def create_url_adapter(self, request: object) -> None:
        """Return None: the table says which route a request is for."""

    async def dispatch_request(self, request_context: object = None) -> QuartResponse:
        """Have the request carried out. Raises HTTPException for an unknown path or method."""
        if g.place is None:
            raise NotFound
        g.route = g.place.routes.get(request.method)
        if g.route is None:
            raise MethodNotAllowed(g.place.routes)
        incoming = Request(
            _request_id(),
            self._services.clock(),
            request.method,
            g.route,
            g.values,
            partial(parameters, request.query_string.decode("utf-8", "replace")),
            request.headers,
            request.remote_addr,
            request.mimetype,
            request.content_length,
            request.body,
            place=request.scope.get("state", {}).get(PLACE),
            secure=request.scheme == "https",
        )
        try:
            response, g.quota = await handle(self._services, incoming)
        except BaseException as error:  # noqa: BLE001  # here, as quart-trio drops what comes with a cancellation
            response = failed(incoming.id, error)
        return _response(response)


def make_app(services: Services) -> QuartTrio:
    """The ASGI app with all routes."""
    app = _App(services)
    app.config["MAX_CONTENT_LENGTH"] = None  # each route has its own bound, and one has none
    app.asgi_http_class = PacedConnection
    app.request_class = PacedRequest
    app.register_error_handler(DomainError, _refused)
    app.register_error_handler(HTTPException, _refused_by_quart)
    app.register_error_handler(Exception, _failed)
    cors = Cors(services.limits.cors_origins)
    app.before_request(partial(_begin, services))
    app.before_request(partial(_find, Table(ROUTES)))
    app.before_request(partial(_asked_beforehand, cors))
    app.after_request(partial(_end, services, cors))
    return app


def _response(ours: Response) -> QuartResponse:
    response = QuartResponse(
        ours.body if ours.pieces is None else ours.pieces,
        ours.status,
        headers=dict(ours.headers),
        content_type=ours.content_type or None,
    )
    if not ours.content_type:
        response.headers.pop("Content-Type", None)
    if ours.pieces is not None:
        response.timeout = None  # what bounds it is the time that each write may take
    return response


def _request_id() -> str:
    return str(g.request_id)


async def _begin(services: Services) -> None:
    g.request_id = new_id("req", services.clock())
    g.started = time.perf_counter()
    g.quota = g.route = None
    REQUEST_ID.set(g.request_id)


async def _find(table: Table) -> None:
    """Find where the request's path leads. Raises BadRequest."""
    found = table.find(parts_of(path_of(request.scope["raw_path"].decode("ascii"))))
    g.place, g.values = found or (None, {})


async def _asked_beforehand(cors: Cors) -> QuartResponse | None:
    return cors.preflight(request, g.place)


async def _end(services: Services, cors: Cors, response: QuartResponse) -> QuartResponse:
    response.headers["X-Request-Id"] = _request_id()
    if g.quota is not None:
        response.headers.update(header_fields(g.quota))
    cors.open_up(request, g.route, response.headers)
    complete(response.headers, secure=request.scheme == "https")
    rule = g.route.path if g.route else None
    note(services, request.method, rule, response.status_code, g.started, _request_id())
    return response


async def _refused(error: DomainError) -> QuartResponse:
    """Answer what was refused before its route was known."""
    return _response(refused(error, _request_id()))


async def _refused_by_quart(error: HTTPException) -> QuartResponse:
    """Answer what never reached a handler: an unknown path, a wrong method."""
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
    return QuartResponse(line_of(document), status, headers=headers, content_type=PROBLEM)


async def _failed(error: Exception) -> QuartResponse:
    return _response(failed(_request_id(), error))
