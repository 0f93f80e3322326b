"""CORS: the pages of other origins that may call the API from a browser, those that the operator names (ADR 25).

Only routes that a user's token opens, signing in, files, and the stream's authorization are open to them; other
calls with a server key are not, as that belongs into no browser. No answer allows credentials of the browser's own:
a session's cookie counts for pages of our own origin alone (ADR 15).
"""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from quart import Request, Response
from werkzeug.datastructures import Headers

from deskwire.http.api.route_trie import RouteNode
from deskwire.http.api.routing import BASE, Route

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
_KEPT_S: Final = 600
"""How long a browser may remember the permission to call."""


def open_to_pages(route: Route) -> bool:
    """Tell whether pages of other origins may call this route, if they may call any."""
    return route.access.kind in _USERS or route.path in _BESIDES


class Cors:
    """Answers for the origins that are allowed.

    Args:
        origins: exact ones, as browsers write them.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)

    def preflight(self, request: Request, node: RouteNode | None) -> Response | None:
        """The answer to a browser that asks whether it may call; None for every other request.

        Args:
            node: where the request's path leads.
        """
        wanted = request.headers.get("Access-Control-Request-Method")
        if not self._origins or request.method != "OPTIONS" or wanted is None:
            return None
        if not self._allows(request.headers) or not _takes(node, wanted):
            return None
        return Response(
            b"",
            HTTPStatus.NO_CONTENT,
            headers={
                "Access-Control-Allow-Origin": request.headers["Origin"],
                "Access-Control-Allow-Methods": wanted,
                "Access-Control-Allow-Headers": _SENT,
                "Access-Control-Max-Age": str(_KEPT_S),
                "Vary": "Origin, Access-Control-Request-Method",
            },
        )

    def open_up(self, request: Request, route: Route | None, headers: Headers) -> None:
        """Let the page that has called this route read the answer, if it may."""
        if not self._origins or route is None or not open_to_pages(route):
            return
        headers.add("Vary", "Origin")
        if self._allows(request.headers):
            headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
            headers["Access-Control-Expose-Headers"] = _SHOWN

    def _allows(self, headers: Headers) -> bool:
        return headers.get("Origin") in self._origins


def _takes(node: RouteNode | None, method: str) -> bool:
    """Tell whether a route open to pages takes this method at the node."""
    route = None if node is None else node.routes.get(method)
    return route is not None and open_to_pages(route)
