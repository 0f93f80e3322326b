"""The route of a request, by the parts of its path; the fast path and the app look it up in the same way (ADR 7).

A path is split first and decoded afterwards, part by part: an id of a caller's choosing may hold anything, slashes and
dots included, and is never taken for more than itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

from deskwire.engine.core.errors import BadRequest
from deskwire.http.api.routing import Route

_BROKEN: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEMES: Final = ("http", "https")
_REST: Final = "<path:"
"""Begins the parameter that takes the rest of a path, slashes included; none of our words can follow it."""


def path_of(target: str) -> str:
    """Return the path in a request's target, as it was sent, without its query.

    A target is a path, or the URL of one by http (RFC 9112 3.2.1, 3.2.2). The path of any other, such as one with a
    fragment, is empty, and leads nowhere: it would be another name for what a proxy in front knows by one.

    Raises BadRequest for a URL that can't be read.
    """
    if target.startswith("/"):
        return target
    try:
        url = urlsplit(target)
    except ValueError:
        raise _bad("The URL that it is in is none.") from None
    if url.scheme not in _SCHEMES or not url.netloc or "#" in target:
        return ""
    return url.path or "/"


def path_segments(path: str) -> list[str]:
    """Return the parts of a path as it was sent, each decoded (RFC 3986 2.4: not before they are separated).

    Raises BadRequest for what is not percent-encoded UTF-8.
    """
    parts = path.split("/")
    if "%" not in path:
        return parts
    if _BROKEN.search(path):
        raise _bad("A % in it must be followed by two hexadecimal digits; the sign itself is written %25.")
    try:
        return [unquote(part, errors="strict") for part in parts]
    except UnicodeDecodeError:
        raise _bad("What is percent-encoded in it must be UTF-8.") from None


def _bad(why: str) -> BadRequest:
    return BadRequest(f"The path can't be read. {why}", code="bad_path")


class RouteNode(Struct):
    """A node in paths: the words that may stand there, else a value, and the routes of paths that end there.

    Args:
        names: those of the values in front of it.
        rest: whether the value here goes on to the path's end.
        routes: by method.
    """

    names: tuple[str, ...] = ()
    rest: bool = False
    words: dict[str, RouteNode] = field(default_factory=dict)
    value: RouteNode | None = None
    routes: dict[str, Route] = field(default_factory=dict)


class RouteTrie:
    """The routes by the words of their paths. A word goes before a value, whatever the method.

    Args:
        direct: find those alone that are `direct`.
    """

    def __init__(self, routes: Iterable[Route], *, direct: bool = False) -> None:
        self._root = RouteNode()
        for route in routes:
            node = self._made(route.path)
            if route.direct or not direct:
                node.routes[route.method] = route
                if route.method == "GET":
                    node.routes["HEAD"] = route  # RFC 9110 9.3.2

    def _made(self, path: str) -> RouteNode:
        node = self._root
        for part in path.split("/"):
            if part.startswith("<"):
                names = (*node.names, part.strip("<>").rpartition(":")[2])
                node.value = node.value or RouteNode(names, part.startswith(_REST))
                assert node.value.names == names, f"{path}: one node, one name"
                node = node.value
            else:
                node = node.words.setdefault(part, RouteNode(node.names))
        return node

    def find(self, parts: Iterable[str]) -> tuple[RouteNode, dict[str, str]] | None:
        """Return the node where the parts of a path lead, and the values among them by name; None if nothing is there."""
        node = self._root
        values: list[str] = []
        for part in parts:
            below = node.words.get(part)
            if below is None:
                below = node.value
                if below is None and node.rest:
                    values[-1] += f"/{part}"
                    continue
                if below is None or not part:
                    return None
                values.append(part)
            node = below
        return (node, dict(zip(node.names, values, strict=True))) if node.routes else None
