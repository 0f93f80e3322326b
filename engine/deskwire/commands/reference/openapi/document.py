"""The document as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import orjson

from deskwire.commands.reference.openapi import refusals
from deskwire.commands.reference.openapi.answers import answers, header_components, headers
from deskwire.commands.reference.openapi.bodies import request_body
from deskwire.commands.reference.openapi.events import webhooks
from deskwire.commands.reference.openapi.parameters import parameters
from deskwire.commands.reference.openapi.schemas import Schema, Schemas
from deskwire.commands.reference.tables import plain
from deskwire.http.api.app import ROUTES
from deskwire.http.api.output.static import Static
from deskwire.http.api.routing import Media, Route
from deskwire.http.schemas.events import ENVELOPES
from deskwire.http.schemas.service import ProblemDocument
from deskwire.http.schemas.surveys import SurveyDefinition
from deskwire.http.schemas.workflows import WorkflowFlow, WorkflowTrigger

_INTRODUCTION: Final = """\
Self-hosted customer support: conversations, tickets, surveys, signed webhooks and a realtime stream over one durable
event log.

- Calls of a backend (`/v3/s2s/...`) carry a **server key**, calls of people an **access token** and, where it is
  listed, the header `project`.
- Bodies are JSON in camelCase. Fields and parameters that are not listed here are refused.
- Lists answer `items` and `nextCursor`; give that as `cursor` for the next page.
- An id that you choose yourself (of a user, a memory entry, a translation) is percent-encoded as a whole where it stands
  in a path: a path is split before it is decoded. Two slashes in a row, or one at the end, lead nowhere.
- Refusals are problem documents (RFC 9457). Their `code` is stable; each response lists those that it may have. An
  unknown path is a 404 `not_found`, an unknown method a 405 `method_not_allowed` with the header `Allow`.
- Every answer has the header `X-Request-Id`.
- The realtime stream is the Pusher Channels protocol, version 7, at `/app/{streamKey}`.
"""

_SCHEMES: Final[Mapping[str, Schema]] = {
    "serverKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "sk_…",
        "description": "A project's server key, for calls of its backend.",
    },
    "accessToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A user's access token, from `POST /v3/auth/token` or the identity provider.",
    },
    "metricsToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of `DESKWIRE_METRICS_TOKEN`; unset, only this machine itself may call.",
    },
}

_SECURITY: Final[Mapping[str, list[dict[str, list[str]]]]] = {
    "none": [],
    "server_key": [{"serverKey": []}],
    "either": [{"serverKey": []}, {"accessToken": []}],
    "metrics": [{"metricsToken": []}, {}],
}
"""What a kind of access asks for; all others ask for an access token."""


@cache
def description() -> Static:
    """The document as it is served; made once, which takes a moment."""
    return Static.of("application/json", orjson.dumps(document()))


def document() -> dict[str, Any]:
    """The document. Raises LookupError for a route that does not say what it answers, and how to mend that."""
    schemas = Schemas(_types(ROUTES))
    problems = refusals.Refusals(schemas.of(ProblemDocument), headers)
    paths: dict[str, Schema] = {}
    for route in ROUTES:
        described = _operation(route, schemas, problems)
        paths.setdefault(route.public_path, {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Deskwire",
            "version": version("deskwire"),
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": _tags(ROUTES),
        "paths": paths,
        "webhooks": webhooks(schemas),
        "components": {
            "schemas": schemas.components,
            "responses": dict(sorted(problems.components.items())),
            "headers": header_components(),
            "examples": refusals.examples(),
            "securitySchemes": _SCHEMES,
        },
    }


def _types(routes: Sequence[Route]) -> Iterator[Any]:
    """Everything that has a schema."""
    yield ProblemDocument
    yield SurveyDefinition
    yield WorkflowFlow
    yield WorkflowTrigger
    yield from ENVELOPES.values()
    for route in routes:
        if route.answer is None:
            raise LookupError(f"{route.operation_id}: say in routes.add(…, answer=…) what it answers")
        if not isinstance(route.answer, Media):
            yield route.answer
        if route.body is not None:
            yield route.body
        yield from route.lines


def _tags(routes: Sequence[Route]) -> list[Schema]:
    """All groups, in the order of the routes."""
    described = {route.tag.name: route.tag.description for route in routes}
    return [{"name": name, "description": description} for name, description in described.items()]


def _operation(route: Route, schemas: Schemas, problems: refusals.Refusals) -> Schema:
    told = plain(route.handler.__doc__)
    operation: Schema = {
        "operationId": route.operation_id,
        "tags": [route.tag.name],
        "summary": route.summary,
        "description": _description(route, told),
        "security": _SECURITY.get(route.access.kind, [{"accessToken": []}]),
    }
    listed = parameters(route)
    if listed:
        operation["parameters"] = listed
    body = request_body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
    operation["responses"] = {**answers(route, schemas, ROUTES), **problems.of(route)}
    return operation


def _description(route: Route, told: str) -> str:
    permission = route.access.permission
    return told if permission is None else f"{told}\n\nPermission: `{permission}`."
