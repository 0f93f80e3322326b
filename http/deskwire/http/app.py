"""The Quart-Trio app: takes a request through its route's checks to its handler, and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import orjson
from quart import Response, g, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from deskwire.engine.ids import new_id
from deskwire.http import (
    contact_export,
    contacts,
    dashboard,
    deliveries,
    description,
    events,
    health,
    imports,
    members,
    memory,
    metrics,
    organisations,
    project,
    projects,
    s2s,
    stream,
    survey_insights,
    survey_responses,
    surveys,
    teams,
    tickets,
    tokens,
    translations,
    uploads,
    users,
    voice,
    webhooks,
    workflows,
)
from deskwire.http.cors import Cors
from deskwire.http.exchange import Asked, Reply, carried_out, failed, note
from deskwire.http.headers import complete
from deskwire.http.pacing import PacedConnection, PacedRequest
from deskwire.http.paths import CONVERTERS
from deskwire.http.problems import PROBLEM, problem
from deskwire.http.quotas import header_fields
from deskwire.http.request_id import REQUEST_ID
from deskwire.http.routing import Route
from deskwire.http.services import Services
from deskwire.http.upgrades import RefusedUpgrade

_MODULES: Final = (
    project,
    s2s,
    contacts,
    contact_export,
    imports,
    events,
    webhooks,
    deliveries,
    stream,
    dashboard,
    workflows,
    tickets,
    voice,
    teams,
    uploads,
    translations,
    memory,
    surveys,
    survey_responses,
    survey_insights,
    tokens,
    users,
    organisations,
    members,
    projects,
    health,
    metrics,
    description,
)
ROUTES: Final[tuple[Route, ...]] = tuple(route for module in _MODULES for route in module.routes.table)
_HTTP_CODES: Final = {404: "not_found", 405: "method_not_allowed"}


def make_app(services: Services) -> QuartTrio:
    """The ASGI app with all routes."""
    app = QuartTrio(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = None  # each route has its own bound, and one has none
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.asgi_websocket_class = RefusedUpgrade
    app.asgi_http_class = PacedConnection
    app.request_class = PacedRequest
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.url_map.converters.update(CONVERTERS)
    for route in ROUTES:
        app.add_url_rule(
            route.path,
            route.name,
            _view(services, route),
            methods=[route.method],
            provide_automatic_options=False,
        )
    app.register_error_handler(HTTPException, _refused_by_quart)
    app.register_error_handler(Exception, _failed)
    cors = Cors(services.limits.cors_origins, ROUTES)
    app.before_request(partial(_begin, services))
    app.before_request(partial(_asked_beforehand, app, cors))
    app.after_request(partial(_end, services, cors))
    return app


def _view(services: Services, route: Route) -> Callable[..., Coroutine[Any, Any, Response]]:
    async def view(**path: str) -> Response:
        asked = Asked(
            _request_id(),
            request.method,
            route,
            path,
            dict(request.args.lists()),
            request.headers,
            request.remote_addr,
            request.mimetype,
            request.content_length,
            request.body,
        )
        try:
            reply, g.quota = await carried_out(services, asked)
        except BaseException as error:  # noqa: BLE001  # here, as quart-trio drops what comes with a cancellation
            reply = failed(asked.id, error)
        return _response(reply)

    return view


def _response(reply: Reply) -> Response:
    response = Response(
        reply.body if reply.pieces is None else reply.pieces,
        reply.status,
        headers=dict(reply.headers),
        content_type=reply.content_type or None,
    )
    if not reply.content_type:
        response.headers.pop("Content-Type", None)
    if reply.pieces is not None:
        response.timeout = None  # what bounds it is the time that each write may take
    return response


def _request_id() -> str:
    return str(g.request_id)


async def _begin(services: Services) -> None:
    g.request_id = new_id("req", services.clock())
    g.started = time.perf_counter()
    g.quota = None
    REQUEST_ID.set(g.request_id)


async def _asked_beforehand(app: QuartTrio, cors: Cors) -> Response | None:
    adapter = app.create_url_adapter(request)
    return None if adapter is None else cors.preflight(request, adapter)


async def _end(services: Services, cors: Cors, response: Response) -> Response:
    response.headers["X-Request-Id"] = _request_id()
    if g.quota is not None:
        response.headers.update(header_fields(g.quota))
    cors.open_up(request, response.headers)
    complete(response.headers, secure=request.scheme == "https")
    rule = request.url_rule.rule if request.url_rule else None
    note(services, request.method, rule, response.status_code, g.started, _request_id())
    return response


async def _refused_by_quart(error: HTTPException) -> Response:
    """What never reached a handler: unknown path, wrong method."""
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    headers = {}
    valid_methods = getattr(error, "valid_methods", None)
    if valid_methods:
        headers["Allow"] = ", ".join(sorted(_allowed(valid_methods)))
    detail = {
        404: "There is no such path.",
        405: f"This path answers to {headers.get('Allow', 'other methods')}.",
    }.get(status, error.description or "The request can't be served.")
    document = problem(status, _HTTP_CODES.get(status, "bad_request"), detail, _request_id())
    return Response(orjson.dumps(document), status, headers=headers, content_type=PROBLEM)


def _allowed(methods: Iterable[str]) -> set[str]:
    return {method for method in methods if method != "OPTIONS"}


async def _failed(error: Exception) -> Response:
    return _response(failed(_request_id(), error))
