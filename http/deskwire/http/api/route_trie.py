"""The route of a request by the segments of its path.

The fast path and the app use the same lookup (ADR 7).

A path is split before its segments are decoded: an id chosen by a caller may contain any character, slashes
and dots included, and never matches more than one segment.
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
# Begins the parameter that takes the rest of a path, slashes included; no word may follow it.
_REST: Final = "<path:"


def path_of(target: str) -> str:
    """Return the path in a request's target, undecoded and without its query.

    A target is a path or an http URL (RFC 9112 3.2.1, 3.2.2). Any other target, such as one with a fragment,
    gives an empty path, which matches no route: it would be a second name for a path that a proxy knows by
    one name.

    Raises BadRequest for an invalid URL.
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
    """Return the decoded segments of a path (RFC 3986 2.4: split first, then decode).

    Raises BadRequest for invalid percent-encoding or UTF-8.
    """
    parts = path.split("/")
    if "%" not in path:
        return parts
    if _BROKEN.search(path):
        raise _bad("A % in it must be followed by two hexadecimal digits; the sign itself is written %25.")
    try:
        return [unquote(part, errors="strict") for part in parts]
    except UnicodeDecodeError:
        raise _bad("Its percent-encoded bytes must be UTF-8.") from None


def _bad(why: str) -> BadRequest:
    return BadRequest(f"The path can't be read. {why}", code="bad_path")


class RouteNode(Struct):
    """A node of the trie.

    It has the words and the parameter that may follow, and the routes of paths that end here.

    Args:
        names: of the parameters on the way to this node.
        rest: True if the parameter takes the rest of the path.
        routes: by method.
    """

    names: tuple[str, ...] = ()
    rest: bool = False
    words: dict[str, RouteNode] = field(default_factory=dict)
    value: RouteNode | None = None
    routes: dict[str, Route] = field(default_factory=dict)


class RouteTrie:
    """The routes by the segments of their paths.

    A word takes precedence over a parameter, whatever the method.

    Args:
        direct: include only routes that are `direct`.
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
        """Return the node of these segments, and its parameters by name.

        Returns None if no route has this path.
        """
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
