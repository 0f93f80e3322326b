"""The generated modules are those of the present description, and each method calls its operation."""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sdk.generate.description import Operation, described
from sdk.generate.python import generated
from sdk.generate.python_resources import NameTaken, resources, snake_case
from sdk.generate.synchronous import synchronous

from deskwire.http.api.route_trie import RouteTrie, path_segments
from deskwire.http.app import ROUTES
from deskwire_sdk import APIError, AsyncDeskwire, Deskwire
from tests.support.api.service import Service

from .conftest import in_thread


def test_the_generated_modules_are_up_to_date() -> None:
    old = [path.name for path, text in generated(subprocess.run).items() if path.read_text("utf-8") != text]
    assert not old, f"Run `make sdk`: {old} are not those of the present description."


def method_of(client: Any, operation: Operation) -> Any:
    """Return the method of an operation."""
    for attribute in operation.resource:
        client = getattr(client, attribute)
    return getattr(client, operation.name)


def arguments_of(method: Any) -> tuple[list[str], dict[str, Any]]:
    """Return values for the path, and for the required keywords."""
    parameters = inspect.signature(method).parameters.values()
    positional = ["x/y" for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    keywords: dict[str, Any] = {
        each.name: "x" for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty
    }
    values = {"file": ("a.txt", b"a"), "lines": [b"{}"], "body": {}}
    return positional, {name: values.get(name, value) for name, value in keywords.items()}


def consume(result: Any) -> None:
    """Send the request of a result that sends it when it is read."""
    if hasattr(result, "read"):
        result.read()
    elif isinstance(result, Iterator):
        next(result, None)
        result.close()  # type: ignore[attr-defined]  # an export


async def test_every_method_calls_its_operation(service: Service) -> None:
    table = RouteTrie(ROUTES)
    sent: list[httpx.Request] = []
    http = httpx.Client(event_hooks={"request": [sent.append]})

    def call(client: Deskwire, operation: Operation) -> None:
        sent.clear()
        method = method_of(client, operation)
        positional, keywords = arguments_of(method)
        refused: APIError | None = None
        try:
            consume(method(*positional, **keywords))
        except APIError as error:
            refused = error
        assert refused is None or (refused.code is not None and refused.status < 500), operation.id
        (request,) = sent
        found = table.find(path_segments(request.url.raw_path.decode().partition("?")[0]))
        assert found is not None, operation.id
        route = found[0].routes[request.method]
        assert (route.method, route.public_path) == (operation.method, operation.path)

    def calls() -> None:
        client = Deskwire(
            service.demo["serverKey"], base_url=service.url, project="prj_1", http_client=http, max_retries=0
        )
        for operation in described().operations:
            call(client, operation)

    await in_thread(calls)
    await in_thread(http.close)


def test_both_clients_have_every_method_with_the_same_arguments() -> None:
    clients = AsyncDeskwire("sk_1", base_url="http://x"), Deskwire("sk_1", base_url="http://x")
    for operation in described().operations:
        there, here = (inspect.signature(method_of(each, operation)) for each in clients)
        assert [*there.parameters.values()] == [*here.parameters.values()], operation.id
        assert len(there.parameters) >= len(operation.path_parameters) + len(operation.query)


def test_a_field_of_a_body_that_is_named_as_a_parameter_is_refused() -> None:
    said = described()
    operation = next(each for each in said.operations if each.id == "postMessage")
    name = operation.body.schema["$ref"].rpartition("/")[2]  # type: ignore[union-attr]  # it has a body
    schema = {**said.schemas[name], "properties": {"conversationId": {"type": "string"}}}
    planted = replace(said, operations=(operation,), schemas={**said.schemas, name: schema})
    with pytest.raises(NameTaken, match="postMessage: conversation_id"):
        resources(planted, asynchronous=False)


@pytest.mark.parametrize(
    ("wire", "python"),
    [("userId", "user_id"), ("If-Match", "if_match"), ("from", "from_"), ("socket_id", "socket_id")],
)
def test_names_of_the_wire_become_names_of_python(wire: str, python: str) -> None:
    assert snake_case(wire) == python


def test_the_synchronous_form_has_no_word_of_the_asynchronous_one() -> None:
    text = synchronous(
        "import anyio\n"
        "# async only\nimport asyncio\n# end of async only\n"
        "class AsyncPage(AsyncIterator[int]):\n"
        "    async def __anext__(self) -> int:\n"
        "        await anyio.sleep(await self.next())\n"
        "        raise StopAsyncIteration\n"
    )
    assert text.partition("\n\n")[2] == (
        "import time\n"
        "class Page(Iterator[int]):\n"
        "    def __next__(self) -> int:\n"
        "        time.sleep(self.next())\n"
        "        raise StopIteration\n"
    )
