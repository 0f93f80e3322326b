"""The reference page of the API: every route with its credential, parameters and fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from pydantic import BaseModel

from deskwire.commands.reference import fields
from deskwire.http.api.input.validation import Query
from deskwire.http.api.routing import BASE, AccessKind, Route
from deskwire.http.app import ROUTES
from deskwire.http.description.openapi.document import document
from deskwire.http.description.tables import markdown_table, plain

INTRODUCTION: Final = f"""\
# API

<!-- Written by `deskwire reference api` from the route table and the models of its bodies and queries. -->

Every path of the API begins with `{BASE}`. [The guide](../guide/api.md) explains credentials, errors, lists
and responses; [errors](errors.md) has the meaning of each error code. Fields and parameters that are not listed here
are refused.
"""

CREDENTIALS: Final[Mapping[AccessKind, str]] = {
    "none": "none",
    "visitor": "a browser's session, or none",
    "server_key": "server key",
    "dashboard": "access token and the header `project`",
    "user": "access token",
    "organisation": "access token of a member",
    "project": "access token of a member of the project's organisation",
    "either": "server key, or access token and the header `project`",
    "customer": "token of a customer's session",
    "metrics": "the token of `DESKWIRE_METRICS_TOKEN`; without one, only calls from the same machine are allowed",
}

_MACHINES: Final = "; or machine credential"
_KEYED: Final = " Takes an `Idempotency-Key`."

_EITHER: Final = "The body is a JSON object or a form with the fields below; fields that it lacks are taken from the query string."


def markdown() -> str:
    """Return the page, with the examples of the OpenAPI document."""
    return "\n".join((INTRODUCTION, *_contents(), "", *_sections(document()["paths"])))


def _contents() -> Iterator[str]:
    rows = [(f"`{route.method} {route.public_path}`", route.summary) for route in ROUTES]
    yield markdown_table(("Call", "Summary"), rows).rstrip()


def _sections(described: Mapping[str, Any]) -> Iterator[str]:
    for tag, routes in groupby(ROUTES, key=lambda route: route.tag):
        yield f"## {tag.name}\n\n{plain(tag.description)}\n"
        for route in routes:
            yield _section(route, described[route.public_path][route.method.lower()])


def _section(route: Route, operation: Mapping[str, Any]) -> str:
    parts = [
        f"### `{route.method} {route.public_path}`\n",
        f"{plain(route.handler.__doc__)}\n",
        f"Credential: {_credential(route)}.{_KEYED if route.idempotent else ''}\n",
        *_table("Query parameter", route.query),
    ]
    if not route.json_only:
        parts.append(f"{_EITHER}\n")
    elif route.body is not None:
        parts += _table("Body field", route.body)
    for line in route.lines:
        parts += _table("Field of the line", line)
    return "\n".join((*parts, *_response(operation)))


def _response(operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the example of a response as collapsed JSON."""
    success = operation["responses"].get("200", {})
    content = success.get("content", {}).get("application/json", {})
    if "example" in content:
        example = json.dumps(content["example"], indent=2, ensure_ascii=False)
        yield f"<details><summary>Response</summary>\n\n```json\n{example}\n```\n\n</details>\n"


def _credential(route: Route) -> str:
    credential = CREDENTIALS[route.access.kind] + (_MACHINES if route.access.machines else "")
    needed = [f"`{each}`" for each in route.access.permissions]
    if not needed:
        return credential
    return f"{credential}; {'permission' if len(needed) == 1 else 'permissions'} {', '.join(needed)}"


def _table(head: str, model: type[BaseModel]) -> Iterator[str]:
    rows = list(fields.rows(model))
    if not rows:
        return
    if issubclass(model, Query):  # a parameter is absent or a string
        rows = [(name, kind.removesuffix(" or null"), default) for name, kind, default in rows]
    else:
        yield f"{plain(model.__doc__)}\n"
    yield markdown_table((head, "Type", "Default"), rows)
