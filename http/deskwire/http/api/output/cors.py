"""CORS: access for pages of the origins that the operator names (ADR 25).

Pages may call the routes for users' tokens, sign-in, files and the stream's authorization. Other calls with a
server key are not open to them, because a server key does not belong in a browser. No response allows the
browser's own credentials: the cookie of a session is accepted from pages of our own origin only (ADR 15).

Pages of any origin may read the responses to customers' calls. These take no cookie, and their handlers check the
page's origin against the channel (`auth.customers`), so that a refusal can be read, too.
"""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from quart import Request, Response
from werkzeug.datastructures import Headers

from deskwire.http.api.route_trie import RouteNode
from deskwire.http.api.routing import BASE, CUSTOMER_PATHS, Route

_USERS: Final = frozenset({"dashboard", "either", "user", "organisation", "project"})
_BESIDES: Final = frozenset(
    {f"{BASE}/auth/token", f"{BASE}/s2s/stream/auth", f"{BASE}/uploads/<upload_id>/<name>"}
)
_SENT: Final = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Range, project"
)
_SHOWN: Final = (
    "Content-Disposition, Content-Range, ETag, Idempotent-Replayed, RateLimit-Limit, RateLimit-Remaining, "
    "RateLimit-Reset, Retry-After, WWW-Authenticate, X-Request-Id"
)
# Seconds for which a browser may cache the permission to call.
_KEPT_S: Final = 600
_ANY: Final = "*"
_METHODS: Final = "GET, POST, PUT, PATCH, DELETE"

# The headers with which pages of any origin can read a response.
ANY_PAGE: Final = {"Access-Control-Allow-Origin": _ANY, "Access-Control-Expose-Headers": _SHOWN}


def open_to_pages(route: Route) -> bool:
    """Return whether pages of allowed origins may call this route."""
    return route.access.kind in _USERS or route.path in _BESIDES


class Cors:
    """The CORS headers for allowed origins.

    Args:
        origins: exact ones, in the form that browsers send.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)

    def preflight(self, request: Request, path: str, node: RouteNode | None) -> Response | None:
        """Return the response to a preflight request.

        Returns None for every other request.

        Args:
            path: the unparsed path of the request.
            node: of the request's path.
        """
        wanted = request.headers.get("Access-Control-Request-Method")
        if request.method != "OPTIONS" or wanted is None:
            return None
        if path.startswith(CUSTOMER_PATHS):
            # For an unknown path or method, too: a page can't read the refusal of a request whose preflight has failed.
            return _permission(_ANY, _METHODS)
        if not self._allows(request.headers) or not _takes(node, wanted):
            return None
        permission = _permission(request.headers["Origin"], wanted)
        permission.headers["Vary"] = "Origin, Access-Control-Request-Method"
        return permission

    def open_up(self, request: Request, path: str, route: Route | None, headers: Headers) -> None:
        """Add the headers that let an allowed page read the response.

        `path` is the unparsed path of the request.
        """
        if path.startswith(CUSTOMER_PATHS):
            headers.update(ANY_PAGE)
            return
        if not self._origins or route is None or not open_to_pages(route):
            return
        headers.add("Vary", "Origin")
        if self._allows(request.headers):
            headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
            headers["Access-Control-Expose-Headers"] = _SHOWN

    def _allows(self, headers: Headers) -> bool:
        return headers.get("Origin") in self._origins


def _takes(node: RouteNode | None, method: str) -> bool:
    """Return whether a route open to pages has this method at the node."""
    route = None if node is None else node.routes.get(method)
    return route is not None and open_to_pages(route)


def _permission(origin: str, methods: str) -> Response:
    return Response(
        b"",
        HTTPStatus.NO_CONTENT,
        headers={
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": f"{_SENT}, Last-Event-ID, Prefer" if origin == _ANY else _SENT,
            "Access-Control-Max-Age": str(_KEPT_S),
        },
    )
