"""Which route a plain path is for: the same one that the URL map finds, or none (ADR 28)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from deskwire.http.routing import Method, Route


@dataclass(slots=True)
class _Node:
    """What may stand at one place of a path: words, else a value, and the routes of paths that end there."""

    words: dict[str, _Node] = field(default_factory=dict)
    value: _Node | None = None
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


class Table:
    """The routes by the words of their paths. A word goes before a value, as in the URL map."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node, names = self._root, []
        for part in route.path.split("/"):
            if part.startswith("<"):
                names.append(part.strip("<>").rpartition(":")[2])
                node.value = node.value or _Node()
                node = node.value
            else:
                node = node.words.setdefault(part, _Node())
        node.routes[route.method] = route, tuple(names)

    def find(self, method: Method | str, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route and the values in the path; None where the URL map has to say what becomes of it."""
        node, values = self._root, []
        for part in path.split("/"):
            below = node.words.get(part)
            if below is None:
                below = node.value
                if below is None or not part:
                    return None
                values.append(part)
            node = below
        found = node.routes.get(method)
        return None if found is None else (found[0], dict(zip(found[1], values, strict=True)))
