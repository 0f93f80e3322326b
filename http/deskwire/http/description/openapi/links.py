"""Links from a response to the operations on its object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from deskwire.http.api.routing import Media, Route
from deskwire.http.description.openapi.parameters import path_parameters
from deskwire.http.description.openapi.schemas import Schema
from deskwire.http.schemas.base import Shape, model_of

Found = tuple[type[Shape], str]
"""The model of an object, and its location in a response."""


def links(route: Route, routes: Sequence[Route]) -> Iterator[tuple[str, Schema]]:
    """Yield the links of a route's response, by the linked operation."""
    here = {name for name, _ in path_parameters(route)}
    for other in routes:
        needed = dict(path_parameters(other))
        for subject, named in reversed(needed.items()):
            found = None if named.shape is None else _object(route, named.shape)
            rest = sorted(needed.keys() - {subject})
            if found is None or named.shape is None or other is route or not here.issuperset(rest):
                continue
            if route in _sources(other, named.shape, routes):
                values = {subject: f"$response.body#{found[1]}/{named.field}"}
                values |= {name: f"$request.path.{name}" for name in rest}
                yield other.operation_id, {"operationId": other.operation_id, "parameters": values}
                break


def _sources(route: Route, shape: type[Shape], routes: Sequence[Route]) -> list[Route]:
    """Return the routes whose responses have the object of a route's path.

    Routes with the same credential are preferred, and among them those that create an object over lists.
    """
    every = [each for each in routes if _object(each, shape) is not None]
    same = [each for each in every if each.access.kind == route.access.kind] or every
    return [each for each in same if each.method != "GET"] or same


def _object(route: Route, shape: type[Shape]) -> Found | None:
    """Return the object of this model that a route creates or lists first; None without one."""
    answer: Any = route.answer
    if isinstance(answer, Media):
        return None
    answer = (get_args(answer) or (answer,))[0]
    items = model_of(answer).model_fields.get("items")
    if items is not None and route.method == "GET":
        listed = get_args(items.annotation)[0]
        return (listed, "/items/0") if issubclass(listed, shape) else None
    known = any(
        each.shape is not None and issubclass(shape, each.shape) for _, each in path_parameters(route)
    )
    makes = route.method == "PUT" or (route.method == "POST" and not known)
    return (answer, "") if makes and issubclass(answer, shape) else None
