"""The OpenAPI document as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import orjson

from deskwire.engine.core.build import version
from deskwire.http.api.auth.sessions import COOKIE_NAME
from deskwire.http.api.input.validation import Empty
from deskwire.http.api.output.static import Static
from deskwire.http.api.routing import AccessKind, Media, Route
from deskwire.http.app import ROUTES
from deskwire.http.description.openapi import refusals
from deskwire.http.description.openapi.bodies import request_body
from deskwire.http.description.openapi.events import TAG, webhooks
from deskwire.http.description.openapi.nulls import without_refused
from deskwire.http.description.openapi.open_schemas import opened
from deskwire.http.description.openapi.parameters import parameters
from deskwire.http.description.openapi.responses import header_components, headers, responses
from deskwire.http.description.openapi.schemas import Schema, Schemas
from deskwire.http.description.tables import plain
from deskwire.http.schemas.conversations import (
    ContactMergedProblem,
    ConversationMergedProblem,
    ConversationMovedOnProblem,
    MessageSplitProblem,
)
from deskwire.http.schemas.customers import VisitorLimitProblem
from deskwire.http.schemas.events import ENVELOPES
from deskwire.http.schemas.extensions import ENVELOPES as EXTENDED
from deskwire.http.schemas.people import FreshProofProblem
from deskwire.http.schemas.service import ProblemDocument
from deskwire.http.schemas.surveys import SurveyDefinition
from deskwire.http.schemas.workflows import WorkflowFlow, WorkflowTrigger

_INTRODUCTION: Final = """\
Self-hosted customer support: conversations, tickets, surveys, signed webhooks and a realtime stream over one durable
event log.

- Calls from a backend (`/v3/s2s/...`) need a **server key**. Calls of people need an **access token** or a browser **session**,
    and, where listed, the header `project`. A **machine credential** can be used for both, where listed.
- Bodies are JSON in camelCase. Fields and parameters that are not listed here are refused.
- Lists return `items` and `nextCursor`. Pass `nextCursor` as `cursor` to get the next page.
- In a path, percent-encode an id of your own (of a user, a memory entry, a translation) as a whole: a path is split
  before it is decoded. A path with two slashes in a row, or one at the end, is not found.
- Errors are problem documents (RFC 9457). Their `code` is stable, and each response lists the codes it may have. An
  unknown path returns 404 `not_found`, an unknown method 405 `method_not_allowed` with the header `Allow`.
- Every response has the header `X-Request-Id`.
- The realtime stream speaks the Pusher Channels protocol, version 7, at `/app/{streamKey}`.
"""

_SCHEMES: Final[Mapping[str, Schema]] = {
    "serverKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "sk_…",
        "description": "The server key of a project, for calls from its backend.",
    },
    "machineCredential": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "mk_…",
        "description": "A machine credential of a project, from `POST /v3/projects/{projectId}/credentials`. Its permissions "
        "limit its calls.",
    },
    "accessToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "The access token of a user, from `POST /v3/auth/token` or the identity provider.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE_NAME,
        "description": "The cookie of `POST /v3/auth/session`; over TLS it is named `__Host-deskwire`. A changing call with it "
        "needs `Sec-Fetch-Site: same-origin`, or the service's own `Origin`.",
    },
    "customerToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "ct_… or cv_…",
        "description": "The token of a customer's session, from `POST /v3/customer/session`. It identifies the customer in one "
        "channel. A page must be on one of the channel's `origins`.",
    },
    "metricsToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of `DESKWIRE_METRICS_TOKEN`. Without one, only calls from the same machine are allowed.",
    },
}

_MACHINE: Final[dict[str, list[str]]] = {"machineCredential": []}
_USER: Final[list[dict[str, list[str]]]] = [{"accessToken": []}, {"session": []}]
_SECURITY: Final[Mapping[AccessKind, list[dict[str, list[str]]]]] = {
    "none": [],
    "server_key": [{"serverKey": []}],
    "either": [{"serverKey": []}, *_USER],
    "metrics": [{"metricsToken": []}, {}],
    "visitor": [{"session": []}, {}],
    "customer": [{"customerToken": []}],
}
"""The credentials that a kind of access requires; all others require a user's."""


@cache
def description() -> Static:
    """Return the document as served. It is built once, which takes a moment."""
    return Static.of("application/json", orjson.dumps(document()))


def document() -> dict[str, Any]:
    """Return the document as served: closed requests, open responses and events."""
    return opened(closed_document())


def closed_document() -> dict[str, Any]:
    """Return the document with exactly the fields and values of this release, against which responses are tested.

    Raises LookupError with advice for a route without a described response.
    """
    schemas = Schemas(shown_types(ROUTES))
    without_refused(schemas.components, ROUTES)
    special = {
        "conversation_moved_on": schemas.of(ConversationMovedOnProblem),
        "conversation_merged": schemas.of(ConversationMergedProblem),
        "message_split": schemas.of(MessageSplitProblem),
        "fresh_proof_required": schemas.of(FreshProofProblem),
        "contact_merged": schemas.of(ContactMergedProblem),
        "visitor_limit": schemas.of(VisitorLimitProblem),
    }
    problems = refusals.RefusalDescriptions(schemas.of(ProblemDocument), headers, special)
    paths: dict[str, Schema] = {}
    for route in ROUTES:
        described = _operation(route, schemas, problems)
        paths.setdefault(route.public_path, {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Deskwire",
            "version": version(),
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [*_tags(ROUTES), TAG],
        "paths": paths,
        "webhooks": webhooks(schemas),
        "components": {
            "schemas": schemas.components,
            "responses": dict(sorted(problems.components.items())),
            "headers": header_components(),
            "examples": problems.examples(),
            "securitySchemes": _SCHEMES,
        },
    }


def shown_types(routes: Sequence[Route]) -> Iterator[Any]:
    """Yield every type with a schema. Raises LookupError with advice for a route without a response model."""
    yield ProblemDocument
    yield ConversationMergedProblem
    yield ConversationMovedOnProblem
    yield MessageSplitProblem
    yield FreshProofProblem
    yield ContactMergedProblem
    yield VisitorLimitProblem
    yield SurveyDefinition
    yield WorkflowFlow
    yield WorkflowTrigger
    yield from ENVELOPES.values()
    yield from EXTENDED.values()
    for route in routes:
        if route.answer is None:
            raise LookupError(
                f"{route.operation_id}: give the model of its response as routes.add(…, answer=…)"
            )
        if not isinstance(route.answer, Media):
            yield route.answer
        if route.body is not None and route.body is not Empty:
            yield route.body
        yield from route.lines


def _tags(routes: Sequence[Route]) -> list[Schema]:
    """Return all tags in the order of the routes. Raises LookupError for two tags with one name."""
    tags = {route.tag.name: route.tag for route in routes}
    twice = sorted({route.tag.name for route in routes if route.tag != tags[route.tag.name]})
    if twice:
        raise LookupError(f"two tags have the name {twice[0]}: share one")
    return [{"name": tag.name, "description": tag.description} for tag in tags.values()]


def _operation(route: Route, schemas: Schemas, problems: refusals.RefusalDescriptions) -> Schema:
    text = plain(route.handler.__doc__)
    operation: Schema = {
        "operationId": route.operation_id,
        "tags": [route.tag.name],
        "summary": route.summary,
        "description": _description(route, text),
        "security": _security(route),
    }
    listed = parameters(route)
    if listed:
        operation["parameters"] = listed
    body = request_body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
        operation["x-codegen-request-body-name"] = "body"  # the parameter's name in generated clients
    found, refused = responses(route, schemas, ROUTES), problems.of(route)
    for status in found.keys() & refused.keys():  # a page for people, and a problem for programs
        document = problems.response(refused[status])
        refused[status] = {**document, "content": found[status]["content"] | document["content"]}
    operation["responses"] = {**found, **refused}
    return operation


def _security(route: Route) -> list[dict[str, list[str]]]:
    needed = _SECURITY.get(route.access.kind, _USER)
    return [*needed, _MACHINE] if route.access.machines else needed


def _description(route: Route, text: str) -> str:
    needed = [f"`{each}`" for each in route.access.permissions]
    if not needed:
        return text
    return f"{text}\n\n{'Permission' if len(needed) == 1 else 'Permissions'}: {', '.join(needed)}."
