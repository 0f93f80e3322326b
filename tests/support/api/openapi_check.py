"""Checks every answer of a test's client against the API's own description, so that the two can't drift."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import httpx
import jsonschema_rs
import orjson

from deskwire.http.api.route_trie import RouteTrie, path_segments
from deskwire.http.app import ROUTES
from deskwire.http.description.openapi.document import closed_document, document
from deskwire.http.description.openapi.references import reachable
from tests.support.deadlines import HANG_TIMEOUT_S

PROBLEM: Final = "application/problem+json"
_UNKNOWN: Final = {"not_found", "method_not_allowed"}
_MENDING: Final = (
    "Say it where the route is added: routes.add(…, answer=…, errors=(…)), shapes are in deskwire.http.schemas; "
    "what holds for many routes is a line in deskwire.http.description.openapi.refusals.RULES or answers.HEADERS."
)


class Undocumented(AssertionError):
    """An answer that is not in the description."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{_MENDING}"


@cache
def described() -> Mapping[str, Any]:
    """Return the API's description."""
    return document()


@cache
def exact() -> Mapping[str, Any]:
    """Return the description with exactly the fields and values of this release."""
    return closed_document()


_TABLE: Final = RouteTrie(ROUTES)


@dataclass(frozen=True)
class _Answer:
    """The status of an answer to an operation."""

    method: str
    path: str
    status: str

    def __str__(self) -> str:
        return f"{self.method} {self.path} answered {self.status}"


@cache
def _said_of(answer: _Answer) -> Mapping[str, Any] | None:
    """Return the description of the answer; None if it has none."""
    operation = exact()["paths"][answer.path][answer.method.lower()]
    found: Mapping[str, Any] | None = operation["responses"].get(answer.status)
    if found is not None and "$ref" in found:
        found = exact()["components"]["responses"][found["$ref"].rpartition("/")[2]]
    return found


@cache
def _validator(answer: _Answer, content_type: str) -> jsonschema_rs.Draft202012Validator:
    schema = (_said_of(answer) or {})["content"][content_type].get("schema", {})
    # A validator compiles all that it is given, and there are hundreds of schemas.
    needed = reachable(schema, exact()["components"]["schemas"])
    return jsonschema_rs.Draft202012Validator({**schema, "components": {"schemas": needed}})


UNCHECKED: Final[dict[str, Any]] = {"unchecked": True}
"""Extensions of a request whose answer must not be read in full, or has events that no service makes."""


def caller(
    base_url: str, headers: Mapping[str, str], *, verify: ssl.SSLContext | bool = True
) -> httpx.AsyncClient:
    """Return a client that checks each of its answers against the description."""
    return httpx.AsyncClient(
        base_url=base_url,
        headers=headers,
        timeout=HANG_TIMEOUT_S,
        verify=verify,
        event_hooks={"response": [check]},
    )


async def check(response: httpx.Response) -> None:
    """Raise Undocumented unless the description has exactly this answer. For httpx's hook `response`."""
    request = response.request
    if "unchecked" in request.extensions:
        return
    found = _TABLE.find(path_segments(request.url.raw_path.decode("ascii").partition("?")[0]))
    route = None if found is None else found[0].routes.get(request.method)
    if route is None:
        await _check_unknown(response)
        return
    if request.method == "HEAD":
        return
    answer = _Answer(route.method, route.public_path, str(response.status_code))
    told = _said_of(answer)
    if told is None:
        await response.aread()
        raise Undocumented(f"{answer}, which is not described: {response.text[:300]}")
    known = exact()["components"]["headers"]
    wanted = [name for name in told.get("headers", ()) if known[name]["required"]]
    missing = [name for name in wanted if name not in response.headers]
    if missing:
        raise Undocumented(f"{answer} without {missing}")
    await _check_content(response, answer, told.get("content", {}))


async def _check_content(response: httpx.Response, answer: _Answer, content: Mapping[str, Any]) -> None:
    sent = response.headers.get("Content-Type", "").partition(";")[0]
    if not content or "*/*" in content:
        return
    if sent not in content:
        raise Undocumented(f"{answer} with {sent or 'no type'}, not with {[*content]}")
    if not sent.endswith(("/json", "+json")):
        return
    value = orjson.loads(await response.aread())
    wrong = [f"{each.instance_path}: {each.message}" for each in _validator(answer, sent).iter_errors(value)]
    if wrong:
        raise Undocumented(f"{answer} with what does not fit: {wrong[:5]}\n{response.text[:1000]}")
    if sent == PROBLEM and value["code"] not in content[sent]["examples"]:
        raise Undocumented(
            f"{answer} with the code {value['code']}, not one of {[*content[sent]['examples']]}"
        )


async def _check_unknown(response: httpx.Response) -> None:
    """Check that an unknown path or method is refused as documented in the introduction."""
    if response.status_code in (404, 405):
        code = orjson.loads(await response.aread())["code"]
        assert code in _UNKNOWN, code
        assert (response.status_code == 405) == ("Allow" in response.headers)
