"""Request bodies, from the models; those that are not plain JSON are described here."""

from __future__ import annotations

from typing import Any, Final

import orjson

from deskwire.engine.core.limits.body_limits import DEFAULT_BODY_LIMITS, variable_of
from deskwire.http.api.input.validation import Empty
from deskwire.http.api.routing import Route
from deskwire.http.description.openapi.samples import BODIES, LINES
from deskwire.http.description.openapi.schemas import Schema, Schemas
from deskwire.http.schemas.base import public_name

_NDJSON: Final = "application/x-ndjson"
_FORM: Final = "application/x-www-form-urlencoded"
_STREAM: Final[Schema] = {
    "type": "object",
    "description": "The channel to subscribe to, and the consumer that subscribes.",
    "properties": {
        "socket_id": {"type": "string", "pattern": "^[0-9]{1,20}\\.[0-9]{1,20}$"},
        "channel_name": {"type": "string", "minLength": 1},
        "consumerId": {"type": "string", "minLength": 1, "maxLength": 128},
        "typingEvents": {"type": "boolean", "description": "Set it to true to receive typing events."},
        "resume": {
            "type": "string",
            "description": "The event to resume after: `auto`, `live`, or the id of an event.",
            "pattern": "^(auto|live|evt_[0-7][0-9A-HJKMNP-TV-Z]{25})$",
        },
    },
    "additionalProperties": False,
}
_SUBSCRIPTION: Final = {
    "socket_id": "1234.5678",
    "channel_name": "private-project-prj_01KZ000000000000000000SH0P",
    "consumerId": "crm-1",
}
_LOGOUT: Final[Schema] = {
    "type": "object",
    "description": "A form with the logout token of the identity provider.",
    "properties": {"logout_token": {"type": "string", "minLength": 1}},
    "required": ["logout_token"],
    "additionalProperties": True,
}
_FORMS: Final = {"endOidcSessions": (_LOGOUT, {"logout_token": "eyJhbGciOi…"})}
_FILE: Final[Schema] = {
    "type": "object",
    "properties": {"file": {"type": "string", "contentMediaType": "application/octet-stream"}},
    "required": ["file"],
    "additionalProperties": False,
}


def request_body(route: Route, schemas: Schemas) -> Schema | None:
    """Return the request body of a route; None without one."""
    taken = _taken(route, schemas)
    return taken if taken is None or route.limit is None else {"description": _bound(route.limit), **taken}


def _bound(limit: int | str) -> str:
    """Return the description of a limit."""
    if isinstance(limit, int):
        return f"At most {limit:,} bytes."
    setting = "upload_limit_bytes" if limit == "upload_body_bytes" else limit
    return (
        f"At most {DEFAULT_BODY_LIMITS[setting]:,} bytes, unless `{variable_of(setting)}` sets another limit."
    )


def _taken(route: Route, schemas: Schemas) -> Schema | None:
    """Return the body of a route without its limit."""
    if route.lines:
        return {"required": True, "content": {_NDJSON: _lines(route, schemas)}}
    if route.streamed:
        return {"required": True, "content": {"multipart/form-data": {"schema": _FILE}}}
    if (form := _FORMS.get(route.operation_id)) is not None:
        schema, example = form
        return {"required": True, "content": {_FORM: {"schema": schema, "example": example}}}
    if not route.json_only:
        media: dict[str, Any] = {"schema": _STREAM, "example": _SUBSCRIPTION}
        return {"required": False, "content": {"application/json": media, _FORM: media}}
    if route.body is None or route.body is Empty:
        return None
    schema = schemas.of(route.body)
    component = schemas.components[public_name(route.body)]
    return {
        "required": bool(component.get("required")),
        "content": {"application/json": {"schema": schema, "example": BODIES[public_name(route.body)]}},
    }


def _lines(route: Route, schemas: Schemas) -> Schema:
    """Return the media type of a body of JSON lines."""
    schema = {
        "type": "string",
        "description": "One JSON object per line, each in one of these forms.",
        "contentMediaType": _NDJSON,
        "contentSchema": {"oneOf": [schemas.of(each) for each in route.lines]},
    }
    shown = [orjson.dumps(LINES[public_name(each)]).decode() + "\n" for each in route.lines]
    return {"schema": schema, "example": "".join(shown)}
