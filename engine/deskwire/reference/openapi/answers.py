"""What a route answers when all is well, its headers, and where to go on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from pydantic import BaseModel

from deskwire.http.routing import Media, Route
from deskwire.reference.openapi.names import operation_id
from deskwire.reference.openapi.parameters import PathParameter, path_parameters
from deskwire.reference.openapi.samples import sample
from deskwire.reference.openapi.schemas import Schema, Schemas


@dataclass(frozen=True, slots=True)
class AnswerHeader:
    """A header of answers, those with the statuses that `on` is true for."""

    name: str
    description: str
    schema: Schema
    on: Callable[[int], bool]


HEADERS: Final = (
    AnswerHeader(
        "X-Request-Id",
        "The id of this request, for questions about it.",
        {"type": "string", "pattern": "^req_[0-9A-HJKMNP-TV-Z]{26}$"},
        lambda status: True,
    ),
    AnswerHeader(
        "WWW-Authenticate",
        "Which kind of credential is asked for.",
        {"type": "string", "const": "Bearer"},
        lambda status: status == 401,
    ),
    AnswerHeader(
        "Retry-After",
        "After how many seconds to try again.",
        {"type": "integer", "minimum": 0},
        lambda status: status in (429, 503),
    ),
    AnswerHeader(
        "ETag", "The entity tag of the whole.", {"type": "string"}, lambda status: status in (206, 304)
    ),
    AnswerHeader(
        "Content-Range",
        "Which part it is, or how large the file is (RFC 9110).",
        {"type": "string"},
        lambda status: status in (206, 416),
    ),
)
"""The headers of answers; another one is another line."""

_SAID: Final = {
    200: "All is well.",
    204: "Done; there is no body.",
    206: "The part.",
    304: "It is unchanged.",
}


def header_components() -> dict[str, Schema]:
    """All headers of answers, by name."""
    return {each.name: {"description": each.description, "schema": each.schema} for each in HEADERS}


def headers(status: int) -> dict[str, Schema]:
    """References to the headers of an answer with this status."""
    return {each.name: {"$ref": f"#/components/headers/{each.name}"} for each in HEADERS if each.on(status)}


def answers(route: Route, schemas: Schemas, routes: Sequence[Route]) -> dict[str, Schema]:
    """The responses of a route that are no refusal, by status."""
    answer = route.answer
    if isinstance(answer, Media):
        found = {str(status): _media(answer.content_type, status) for status in answer.statuses}
        return found | {
            str(status): {"description": _SAID[status], "headers": headers(status)} for status in answer.bare
        }
    schema = schemas.of(answer)
    response: Schema = {
        "description": _said(schema, schemas),
        "headers": headers(200),
        "content": {"application/json": {"schema": schema, "example": sample(schema, schemas.components)}},
    }
    linked = dict(_links(route, routes))
    return {"200": {**response, "links": linked} if linked else response}


def _media(content_type: str, status: int) -> Schema:
    return {"description": _SAID[status], "headers": headers(status), "content": {content_type: {}}}


def _said(schema: Schema, schemas: Schemas) -> str:
    reference = schema.get("$ref", "").rpartition("/")[2]
    return str(schemas.components.get(reference, {}).get("description") or _SAID[200])


def _links(route: Route, routes: Sequence[Route]) -> Iterator[tuple[str, Schema]]:
    """What can be done with the object that a route makes, or with the first that it lists."""
    made, pointer = _object(route)
    if made is None:
        return
    here = dict(path_parameters(route))
    for other in routes:
        needed = dict(path_parameters(other))
        named = [
            name for name, each in needed.items() if each.shape is not None and issubclass(made, each.shape)
        ]
        if not named or other is route:
            continue
        subject = named[-1]
        if other.access.kind != route.access.kind and _made_for(other, needed[subject], routes):
            continue
        rest = needed.keys() - {subject}
        if rest <= here.keys() and (subject not in here or route.method == "PUT"):
            values = {subject: f"$response.body#{pointer}/{needed[subject].field}"}
            values |= {name: f"$request.path.{name}" for name in sorted(rest)}
            yield operation_id(other), {"operationId": operation_id(other), "parameters": values}


def _made_for(route: Route, named: PathParameter, routes: Sequence[Route]) -> bool:
    """Whether those who may call the route can make what stands in its path, or list it."""
    shape = named.shape
    return any(
        made is not None and shape is not None and issubclass(made, shape)
        for made, _ in (_object(other) for other in routes if other.access.kind == route.access.kind)
    )


def _object(route: Route) -> tuple[type[BaseModel] | None, str]:
    """The model of what a route makes or lists, and where in the answer it stands."""
    answer: Any = route.answer
    if isinstance(answer, Media):
        return None, ""
    if get_args(answer):
        answer = get_args(answer)[0]
    items = answer.model_fields.get("items")
    if route.method == "GET" and items is not None:
        return get_args(items.annotation)[0], "/items/0"
    makes = (route.method == "POST" and not route.path.endswith(">")) or route.method == "PUT"
    return (answer, "") if makes else (None, "")
