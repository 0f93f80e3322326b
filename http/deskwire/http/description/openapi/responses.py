"""The successful responses of a route, and the headers of all responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from deskwire.http.api.routing import Media, Route
from deskwire.http.description.openapi.links import links
from deskwire.http.description.openapi.samples import sample
from deskwire.http.description.openapi.schemas import Schema, Schemas


class ResponseHeader(Struct, frozen=True):
    """A header of responses with the statuses for which `on` is true; without `always`, of some of them."""

    name: str
    description: str
    schema: Schema
    on: Callable[[int], bool]
    always: bool = True


HEADERS: Final = (
    ResponseHeader(
        "X-Request-Id",
        "The id of this request, for support questions.",
        {"type": "string", "pattern": "^req_[0-9A-HJKMNP-TV-Z]{26}$"},
        lambda status: True,
    ),
    ResponseHeader(
        "WWW-Authenticate",
        "The kind of credential that is required.",
        {"type": "string", "const": "Bearer"},
        lambda status: status == 401,
    ),
    ResponseHeader(
        "Retry-After",
        "The seconds to wait before a retry.",
        {"type": "integer", "minimum": 0},
        lambda status: status in (429, 503),
    ),
    ResponseHeader(
        "RateLimit-Limit",
        "The number of calls in a burst.",
        {"type": "integer", "minimum": 0},
        lambda status: True,
        always=False,
    ),
    ResponseHeader(
        "RateLimit-Remaining",
        "The number of remaining calls.",
        {"type": "integer", "minimum": 0},
        lambda status: True,
        always=False,
    ),
    ResponseHeader(
        "RateLimit-Reset",
        "The seconds until the full burst is available again.",
        {"type": "integer", "minimum": 0},
        lambda status: True,
        always=False,
    ),
    ResponseHeader(
        "Idempotent-Replayed",
        "`true` if the request was carried out before. The earlier response is repeated.",
        {"type": "string", "const": "true"},
        lambda status: status == 200,
        always=False,
    ),
    ResponseHeader(
        "ETag",
        "The entity tag of the whole file or object; send it as `If-Match` with a change.",
        {"type": "string"},
        lambda status: status in (206, 304),
    ),
    ResponseHeader(
        "Content-Range",
        "The part of the file in the response, or the size of the file (RFC 9110).",
        {"type": "string"},
        lambda status: status in (206, 416),
    ),
)
"""The headers of responses. To add one, add a line."""

_JSON: Final = "application/json"
_DESCRIPTIONS: Final = {
    200: "The request succeeded.",
    204: "The request succeeded. The response has no body.",
    206: "The requested part of the file.",
    302: "The current version is at `Location`.",
    303: "The page to open next is at `Location`.",
    304: "The content is unchanged.",
    404: "There is none of this id. The page says so.",
}


def header_components() -> dict[str, Schema]:
    """Return all response headers by name."""
    return {
        each.name: {"description": each.description, "required": each.always, "schema": each.schema}
        for each in HEADERS
    }


def headers(status: int) -> dict[str, Schema]:
    """Return references to the headers of a response with this status."""
    return {each.name: _reference(each.name) for each in HEADERS if each.on(status)}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/headers/{name}"}


def responses(route: Route, schemas: Schemas, routes: Sequence[Route]) -> dict[str, Schema]:
    """Return the successful responses of a route, by status."""
    answer = route.answer
    if isinstance(answer, Media):
        successes = {str(status): _media(answer.content_type, status) for status in answer.statuses}
        return successes | {
            str(status): {"description": _DESCRIPTIONS[status], "headers": headers(status)}
            for status in answer.bare
        }
    schema = schemas.of(answer)
    response: Schema = {
        "description": _description(schema, schemas),
        "headers": headers(200)
        | ({"ETag": _reference("ETag")} if route.tagged and route.method != "DELETE" else {}),
        "content": {"application/json": {"schema": schema, "example": sample(schema, schemas.components)}},
    }
    linked = dict(links(route, routes))
    found = {"200": {**response, "links": linked} if linked else response}
    if route.revalidated:
        found["304"] = {"description": _DESCRIPTIONS[304], "headers": headers(304)}
    return found


def _media(content_type: str, status: int) -> Schema:
    # Without a schema, generated clients return nothing.
    schema = {"schema": {"type": "object", "additionalProperties": True}} if content_type == _JSON else {}
    return {
        "description": _DESCRIPTIONS[status],
        "headers": headers(status),
        "content": {content_type: schema},
    }


def _description(schema: Schema, schemas: Schemas) -> str:
    reference = schema.get("$ref", "").rpartition("/")[2]
    return str(schemas.components.get(reference, {}).get("description") or _DESCRIPTIONS[200])
