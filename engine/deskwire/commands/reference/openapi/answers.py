"""What a route answers when all is well, and its headers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from deskwire.commands.reference.openapi.links import links
from deskwire.commands.reference.openapi.samples import sample
from deskwire.commands.reference.openapi.schemas import Schema, Schemas
from deskwire.http.api.routing import Media, Route


@dataclass(frozen=True, slots=True)
class AnswerHeader:
    """A header of answers, those with the statuses that `on` is true for, or of these some."""

    name: str
    description: str
    schema: Schema
    on: Callable[[int], bool]
    always: bool = True


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
        "RateLimit-Limit",
        "Calls that the project may make at once.",
        {"type": "integer", "minimum": 0},
        lambda status: True,
        always=False,
    ),
    AnswerHeader(
        "RateLimit-Remaining",
        "How many of them are left.",
        {"type": "integer", "minimum": 0},
        lambda status: True,
        always=False,
    ),
    AnswerHeader(
        "RateLimit-Reset",
        "After how many seconds all are there again.",
        {"type": "integer", "minimum": 0},
        lambda status: True,
        always=False,
    ),
    AnswerHeader(
        "Idempotent-Replayed",
        "The request had been carried out before; this is the answer of then.",
        {"type": "string", "const": "true"},
        lambda status: status == 200,
        always=False,
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
    return {
        each.name: {"description": each.description, "required": each.always, "schema": each.schema}
        for each in HEADERS
    }


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
    linked = dict(links(route, routes))
    return {"200": {**response, "links": linked} if linked else response}


def _media(content_type: str, status: int) -> Schema:
    return {"description": _SAID[status], "headers": headers(status), "content": {content_type: {}}}


def _said(schema: Schema, schemas: Schemas) -> str:
    reference = schema.get("$ref", "").rpartition("/")[2]
    return str(schemas.components.get(reference, {}).get("description") or _SAID[200])
