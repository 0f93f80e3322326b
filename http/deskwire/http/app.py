"""The Quart-Trio app: takes a request through its route's checks to its handler, and back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from contextlib import nullcontext
from functools import partial
from http import HTTPStatus
from math import inf
from typing import Any, Final

import orjson
import structlog
import trio
from quart import Request, Response, g, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from deskwire.engine.errors import BadRequest, DomainError, TooLarge, Unauthenticated, UnsupportedMediaType
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
from deskwire.http.access import admit, require_permission
from deskwire.http.cors import Cors
from deskwire.http.headers import complete
from deskwire.http.idempotency import REPLAYED, answered, key_of
from deskwire.http.load import Body
from deskwire.http.pacing import PacedConnection, PacedRequest
from deskwire.http.paths import CONVERTERS
from deskwire.http.problems import problem, problem_of
from deskwire.http.proxies import client_address
from deskwire.http.quotas import header_fields, refusal_of
from deskwire.http.routing import (
    NO_CONTENT,
    Answer,
    Call,
    Caller,
    Incoming,
    Page,
    RawJson,
    Replayed,
    Route,
    Streamed,
)
from deskwire.http.services import Services
from deskwire.http.upgrades import RefusedUpgrade
from deskwire.http.validation import Empty, parse_body, parse_query

log: Final = structlog.get_logger(__name__)

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
_JSON: Final = "application/json"
_NONE_GIVEN: Final = "missing_credential"
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
        try:
            return _response(await _serve(services, route, path))
        except DomainError as refusal:
            if isinstance(refusal, Unauthenticated) and refusal.reason != _NONE_GIVEN:
                services.quotas.note_failure(_client(services))
            return problem_of(refusal, _request_id())

    return view


async def _serve(services: Services, route: Route, path: dict[str, str]) -> Answer:
    load, limits = services.load, services.limits
    if not route.watching:
        load.check(changes=route.method != "GET")
    caller = await _admitted(services, route, path)
    query = parse_query(route.query, dict(request.args.lists()))
    key = key_of(route, request.headers)
    with load.body() as room:
        raw = b""
        limit = inf if route.limit is None else getattr(limits, route.limit)
        if route.body is not None or not route.json_only:
            _check_length(request, limit)
            if not route.streamed:
                raw = await _read(request, limit, limits.body_timeout_s, room)
        if raw and route.json_only and request.mimetype != _JSON:
            raise UnsupportedMediaType(f"The body must be {_JSON}, not {request.mimetype or 'of no type'}.")
        body = Empty() if route.body is None or not route.json_only else parse_body(route.body, raw)
        incoming = Incoming(request.method, request.headers, request.body)
        call = Call(services, caller, path, query, body, raw, incoming, _client(services))
        with nullcontext() if route.watching else load.working():
            return await answered(route, call, key)


def _client(services: Services) -> str | None:
    forwarded_for = request.headers.getlist("X-Forwarded-For")
    return client_address(request.remote_addr, forwarded_for, services.trusted_proxies)


async def _admitted(services: Services, route: Route, path: dict[str, str]) -> Caller:
    """The caller, who may call this, and has not called too often."""
    quotas = services.quotas
    if route.access.kind != "none" or route.method != "GET":
        quotas.check_address(_client(services))
    caller = await admit(services, route.access, request.headers, request.remote_addr, path)
    g.quota = quotas.take(caller.project, caller.user)
    if g.quota is not None and g.quota.retry_after_s:
        raise refusal_of(g.quota)
    require_permission(route.access, caller)
    return caller


def _check_length(incoming: Request, limit: float) -> None:
    """Raises TooLarge for a body that is said to be."""
    if incoming.content_length is not None and incoming.content_length > limit:
        raise _too_large(limit)


def _too_large(limit: float) -> TooLarge:
    return TooLarge(f"The body may have at most {limit:,} bytes.")


async def _read(incoming: Request, limit: float, timeout_s: float, room: Body) -> bytes:
    """The body, bounded while it arrives."""
    body = bytearray()
    with trio.move_on_after(timeout_s) as slow:
        async for chunk in incoming.body:
            room.grow(len(chunk))
            body += chunk
            if len(body) > limit:
                raise _too_large(limit)
    if slow.cancelled_caught:
        raise BadRequest(f"The body did not arrive within {timeout_s:g} s.", code="body_timeout")
    return bytes(body)


def _response(answer: Answer) -> Response:
    if answer is NO_CONTENT:
        return Response(b"", HTTPStatus.NO_CONTENT)
    if isinstance(answer, Page):
        return Response(
            answer.body, answer.status, headers=dict(answer.headers), content_type=answer.content_type
        )
    if isinstance(answer, Replayed):
        return Response(answer.body, HTTPStatus.OK, headers={REPLAYED: "true"}, content_type=_JSON)
    if isinstance(answer, Streamed):
        response = Response(
            answer.pieces, answer.status, headers=dict(answer.headers), content_type=answer.content_type
        )
        response.timeout = None  # what bounds it is the time that each write may take
        return response
    body = answer.body if isinstance(answer, RawJson) else orjson.dumps(answer)
    return Response(body, HTTPStatus.OK, content_type=_JSON)


def _request_id() -> str:
    return str(g.request_id)


async def _begin(services: Services) -> None:
    g.request_id = new_id("req", services.clock())
    g.started = trio.current_time()
    g.quota = None
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=g.request_id)


async def _asked_beforehand(app: QuartTrio, cors: Cors) -> Response | None:
    adapter = app.create_url_adapter(request)
    return None if adapter is None else cors.preflight(request, adapter)


async def _end(services: Services, cors: Cors, response: Response) -> Response:
    response.headers["X-Request-Id"] = _request_id()
    if g.quota is not None:
        response.headers.update(header_fields(g.quota))
    cors.open_up(request, response.headers)
    complete(response.headers, secure=request.scheme == "https")
    # The route, not the path: ids of people may stand in that, and the log outlives their erasure.
    route = request.url_rule.rule if request.url_rule else None
    method, status, seconds = request.method, response.status_code, trio.current_time() - g.started
    services.measured.requests.note(method, route, status, seconds)
    log.info("http.request", method=method, route=route, status=status, ms=round(seconds * 1000, 1))
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
    return problem(status, _HTTP_CODES.get(status, "bad_request"), detail, _request_id(), headers=headers)


def _allowed(methods: Iterable[str]) -> set[str]:
    return {method for method in methods if method != "OPTIONS"}


async def _failed(error: Exception) -> Response:
    """A bug: the log has the traceback, the client the id to ask for."""
    log.error("http.failed", exc_info=error)
    detail = "Something went wrong here. Give the request id when you report it."
    return problem(500, "internal_error", detail, _request_id())
