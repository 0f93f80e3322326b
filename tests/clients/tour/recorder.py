"""Calls operations of a running service, and records each request with its response."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import quote

import httpx

from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from deskwire.http.description.asyncapi.parts import capitalized
from tests.support.api.openapi_check import described
from tests.support.api.service import Service
from tests.support.sockets.issuer import Issuer

NO_BODY: Final = object()
_BY_BACKEND: Final = ("server_key",)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a request.

    Args:
        name: its name in the description.
        place: `path`, `query` or `header`.
        format: its format in the description, such as `date-time`; None without one.
    """

    name: str
    place: str
    value: Any
    format: str | None = None


@dataclass(frozen=True)
class Exchange:
    """A request of an operation, and the response of the service.

    Args:
        name: the operation's id, with a number after the first call: `listEvents 2`.
        template: the path with its parameters in braces.
        secured: True if the operation requires a credential.
        has_body: True if the request has a JSON body, which may be null.
        request_model: the name of the body's model in generated clients.
        response_model: the name of the response's schema; None for a response without a component.
    """

    name: str
    operation: str
    tag: str
    method: str
    template: str
    path: str
    secured: bool
    parameters: list[Parameter]
    has_body: bool
    body: Any
    request_model: str
    response_model: str | None
    status: int
    response: Any

    def given(self, place: str) -> dict[str, Any]:
        """Return the parameters in the query, the headers or the path, by name."""
        return {each.name: each.value for each in self.parameters if each.place == place}

    def as_json(self) -> dict[str, Any]:
        """Return the exchange for a client's program."""
        return asdict(self)


@dataclass
class Recorder:
    """Calls operations by their ids.

    Args:
        receiver: the address of a webhook receiver that accepts everything.
        issuer: the OpenID provider of the service.
    """

    service: Service
    receiver: str
    issuer: Issuer
    exchanges: list[Exchange] = field(default_factory=list)

    async def __call__(
        self,
        operation_id: str,
        *path: object,
        body: Any = NO_BODY,
        client: httpx.AsyncClient | None = None,
        **parameters: Any,
    ) -> Any:
        """Call an operation, record the exchange, and return the parsed response.

        Args:
            path: the values of the path's parameters, in their order.
            client: the caller; the default is the backend or the owner, as the operation requires.
            parameters: query parameters and headers; a `_` inside a name stands for a `-`,
                and one at its end sets it apart from a word of Python.
        """
        route = _ROUTES[operation_id]
        operation = described()["paths"][route.public_path][route.method.lower()]
        given = self._parameters(operation, route, path, parameters, client)
        address = route.public_path
        for each in given:
            if each.place == "path":
                address = address.replace(f"{{{each.name}}}", quote(str(each.value), safe=""))
        caller = client or (self.service.http if route.access.kind in _BY_BACKEND else self.service.dashboard)
        answer = await caller.request(
            route.method,
            f"{self.service.url}{address}",
            params={each.name: _text(each.value) for each in given if each.place == "query"},
            headers={each.name: str(each.value) for each in given if each.place == "header"},
            **({} if body is NO_BODY else {"json": body}),
        )
        assert answer.is_success, f"{operation_id}: {answer.status_code} {answer.text}"
        content = operation["responses"][str(answer.status_code)].get("content", {})
        earlier = sum(each.operation == operation_id for each in self.exchanges)
        self.exchanges.append(
            Exchange(
                f"{operation_id} {earlier + 1}" if earlier else operation_id,
                operation_id,
                operation["tags"][0],
                route.method,
                route.public_path,
                address,
                bool(operation["security"]) and {} not in operation["security"],
                given,
                body is not NO_BODY,
                None if body is NO_BODY else body,
                # Generators name an inline schema of a body so.
                _model(operation.get("requestBody", {}).get("content", {}))
                or capitalized(operation_id) + "Request",
                _model(content),
                answer.status_code,
                answer.json() if answer.content else None,
            )
        )
        return self.exchanges[-1].response

    def _parameters(
        self,
        operation: Mapping[str, Any],
        route: Route,
        path: tuple[object, ...],
        given: Mapping[str, Any],
        client: httpx.AsyncClient | None,
    ) -> list[Parameter]:
        """Return the parameters with their places; the project of a user's call is among them."""
        names = re.findall(r"{(\w+)}", route.public_path)
        assert len(names) == len(path), (route.operation_id, names, path)
        known = {each["name"]: each for each in operation.get("parameters", ())}
        values = {name.rstrip("_").replace("_", "-"): value for name, value in given.items()}
        needs_project = (
            known.get("project", {}).get("in") == "header" and route.access.kind not in _BY_BACKEND
        )
        if needs_project and client is None and "project" not in values:
            values["project"] = self.service.demo["projectId"]
        found = [Parameter(name, "path", value) for name, value in zip(names, path, strict=True)]
        return found + [
            Parameter(name, known[name]["in"], value, known[name]["schema"].get("format"))
            for name, value in values.items()
        ]


_ROUTES: Final = {route.operation_id: route for route in ROUTES}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _model(content: Mapping[str, Any]) -> str | None:
    """Return the name of the component that JSON content has."""
    schema = content.get("application/json", {}).get("schema", {})
    reference: str | None = schema.get("$ref")
    return None if reference is None else reference.rpartition("/")[2]
