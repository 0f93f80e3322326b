"""The operations of the service as the generators of the SDKs see them, read from its OpenAPI document."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from deskwire.http.description.openapi.document import document
from deskwire.http.description.openapi.references import PREFIX, reachable

NAMES: Final = Path(__file__).parents[1] / "operations.toml"
_IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_PROJECT: Final = "project"

Schema = Mapping[str, Any]
BodyKind = Literal["json", "lines", "file"]
AnswerKind = Literal["json", "page", "lines", "text", "bytes", "events", "none"]

_BODIES: Final[Mapping[str, BodyKind]] = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "multipart/form-data": "file",
}
_ANSWERS: Final[Mapping[str, AnswerKind]] = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "text/csv": "text",
    "text/plain": "text",
    "text/event-stream": "events",
    "*/*": "bytes",
}


class NamesDiffer(Exception):
    """Raised if the table of names and the document have different operations; the text lists them."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation: `name` as on the wire."""

    name: str
    required: bool
    schema: Schema
    description: str


@dataclass(frozen=True, slots=True)
class Body:
    """A request body.

    Args:
        schema: of the JSON object, of a line, or of the form's file.
        required: False if an empty body is accepted.
    """

    kind: BodyKind
    schema: Schema
    required: bool


@dataclass(frozen=True, slots=True)
class Response:
    """The successful response of an operation.

    Args:
        schema: of the whole JSON object; empty unless `kind` is `json` or `page`.
        item: of an item of a page; empty for the other kinds.
        cursor: True if the operation takes `cursor`, so that a page may have a successor.
    """

    kind: AnswerKind
    schema: Schema
    item: Schema
    cursor: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with its name in the SDKs.

    Args:
        id: its `operationId`.
        resource: the resources that lead to it, such as `("dashboard", "conversations")`.
        name: the method's name in snake_case.
        headers: further headers; without `project` and `Idempotency-Key`.
        idempotent: True if it takes an `Idempotency-Key`.
        project: True if it takes the header `project`.
        credential: True if it takes a bearer token.
    """

    id: str
    resource: tuple[str, ...]
    name: str
    method: str
    path: str
    summary: str
    description: str
    path_parameters: tuple[Parameter, ...]
    query: tuple[Parameter, ...]
    headers: tuple[Parameter, ...]
    body: Body | None
    response: Response
    idempotent: bool
    project: bool
    credential: bool


@dataclass(frozen=True, slots=True)
class Description:
    """The operations and schemas that the SDKs are generated from.

    Args:
        operations: those that the table names, in its order.
        schemas: the components, by name.
        events: the schemas of the events that webhooks get.
        sent: the names of the schemas that requests consist of.
        received: the names of the schemas that responses and events consist of.
    """

    version: str
    operations: tuple[Operation, ...]
    schemas: Mapping[str, Schema]
    events: tuple[Schema, ...]
    sent: frozenset[str]
    received: frozenset[str]


@cache
def described() -> Description:
    """Return the description that the service of this tree gives.

    Raises:
        NamesDiffer: the table of names lacks an operation, or names one that does not exist.
    """
    return description(document(), tomllib.loads(NAMES.read_text("utf-8")))


def description(openapi: Mapping[str, Any], table: Mapping[str, Any]) -> Description:
    """Return the description of an OpenAPI document with a table of names.

    Raises:
        NamesDiffer: the table lacks an operation, names one that does not exist, or uses a name twice.
    """
    found = {operation["operationId"]: (method, path, operation) for method, path, operation in _all(openapi)}
    _compare(found.keys(), table)
    schemas: dict[str, Schema] = openapi["components"]["schemas"]
    operations = tuple(
        _operation(name, *found[key], schemas=schemas) for key, name in table["operations"].items()
    )
    sent = frozenset(reachable([each.body.schema for each in operations if each.body], schemas))
    events = tuple(_events(openapi))
    received = frozenset(reachable([*(each.response.schema for each in operations), *events], schemas))
    return Description(openapi["info"]["version"], operations, schemas, events, sent, received)


def schema_name(schema: Schema) -> str | None:
    """Return the name of the component that a schema refers to; None if it is written in place."""
    reference = schema.get("$ref", "")
    return reference.removeprefix(PREFIX) if reference.startswith(PREFIX) else None


def _all(openapi: Mapping[str, Any]) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _events(openapi: Mapping[str, Any]) -> Iterator[Schema]:
    """Yield the schemas of the requests that the service sends to webhooks."""
    for methods in openapi["webhooks"].values():
        for operation in methods.values():
            yield operation["requestBody"]["content"]["application/json"]["schema"]


def _compare(found: Iterable[str], table: Mapping[str, Any]) -> None:
    named, left_out = table["operations"], table["left_out"]
    lines = [f"no name for {each}" for each in sorted({*found} - {*named} - {*left_out})]
    lines += [f"no operation {each}" for each in sorted(({*named} | {*left_out}) - {*found})]
    lines += [f"{each} is both named and left out" for each in sorted({*named} & {*left_out})]
    names = list(named.values())
    lines += [f"two operations have the name {each}" for each in sorted({*names}) if names.count(each) > 1]
    if lines:
        raise NamesDiffer(f"{NAMES.name}: " + "; ".join(lines))


def _operation(name: str, method: str, path: str, said: Schema, schemas: Mapping[str, Schema]) -> Operation:
    *resource, last = name.split(".")
    parameters = said.get("parameters", [])
    headers = {each["name"]: each for each in parameters if each["in"] == "header"}
    body = _body(said.get("requestBody"))
    in_body = (
        body.schema.get("properties", {}) if body else {}
    )  # authorizeStream takes its fields in both places
    query = tuple(
        _parameter(each) for each in parameters if each["in"] == "query" and each["name"] not in in_body
    )
    return Operation(
        id=said["operationId"],
        resource=tuple(resource),
        name=last,
        method=method,
        path=path,
        summary=said["summary"],
        description=said["description"],
        path_parameters=tuple(_parameter(each) for each in parameters if each["in"] == "path"),
        query=query,
        headers=tuple(
            _parameter(each) for key, each in headers.items() if key not in (_IDEMPOTENCY_KEY, _PROJECT)
        ),
        body=body,
        response=_response(said["responses"], any(each.name == "cursor" for each in query), schemas),
        idempotent=_IDEMPOTENCY_KEY in headers,
        project=_PROJECT in headers,
        credential=any("session" != key for each in said.get("security", []) for key in each),
    )


def _parameter(said: Mapping[str, Any]) -> Parameter:
    return Parameter(said["name"], said.get("required", False), said["schema"], said.get("description", ""))


def _body(said: Mapping[str, Any] | None) -> Body | None:
    if said is None:
        return None
    content = said["content"]
    media_type = next(each for each in _BODIES if each in content)
    schema = content[media_type].get("schema", {})
    kind = _BODIES[media_type]
    if kind == "lines":
        schema = schema["contentSchema"]
    return Body(kind, schema, said.get("required", False))


def _response(said: Mapping[str, Any], cursor: bool, schemas: Mapping[str, Schema]) -> Response:
    content = next(each for status, each in said.items() if status.startswith("2")).get("content", {})
    if not content:
        return Response("none", {}, {}, False)
    media_type = next(iter(content))
    kind = _ANSWERS[media_type]
    if kind != "json":
        return Response(kind, {}, {}, False)
    schema = content[media_type]["schema"]
    items = [_item(each, schemas) for each in schema.get("anyOf", [schema])]
    if not all(items):
        return Response(kind, schema, {}, False)
    return Response("page", schema, items[0] if len(items) == 1 else {"anyOf": items}, cursor)


def _item(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """Return the schema of an item if this one is that of a page, else an empty one."""
    name = schema_name(schema)
    fields = schemas[name].get("properties", {}) if name else {}
    item: Schema = fields["items"]["items"] if {"items", "nextCursor"} <= fields.keys() else {}
    return item
