"""No body, path or query makes the service fail: every one is taken or refused (ADR 25)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import orjson
import pytest

from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from tests.api.conventions.test_guards import WITH_BODY, Walk, walking

pytestmark = pytest.mark.long  # each route with each bad text or spelling

VALUES: Final = (
    b"[" * 1_000 + b"]" * 1_000,  # the deepest that is JSON here
    b"[" * 300 + b"]" * 300,  # read, but not written again
    b"1e308",
    b"99999999999999999999999999",
    b'"\\u0000"',
    b'"\\ud83d\\ude00\\u202e"',
    b'"' + b"x" * 30_000 + b'"',
    b'[null, 1, "a", {}]',
)
PATHS: Final = (
    "%00",
    "%ff",
    "%ED%A0%80",
    "..%2f..%2fetc",
    "'%22;--",
    "a" * 5_000,
    "%F0%9F%98%80",
    "-1",
    "1e9",
)


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    async with walking(tmp_path) as started:
        yield started


def bodies(route: Route) -> Iterator[bytes]:
    """Yield bodies with each value in the place of every field."""
    assert route.body is not None
    names = [field.alias or name for name, field in route.body.model_fields.items()]
    for value in VALUES:
        yield orjson.dumps(dict.fromkeys(names, orjson.Fragment(value))) if names else value


async def test_no_value_in_any_field_causes_an_internal_error(walk: Walk) -> None:
    for route in WITH_BODY:
        headers = walk.headers(route) | {"Content-Type": "application/json"}
        for body in bodies(route):
            answer = await walk.http.request(route.method, walk.path(route), headers=headers, content=body)
            assert answer.status_code < 500, (route.operation_id, body[:80], answer.text)


async def test_no_text_in_a_path_or_query_causes_an_internal_error(walk: Walk) -> None:
    names = dict(walk.names)
    for route in ROUTES:
        headers = walk.headers(route)
        for text in PATHS if "<" in route.path else ():
            walk.names = dict.fromkeys(("organisation_id", "project_id", "path:user_id"), text)
            path = walk.path(route).replace("nothing", text)
            answer = await walk.http.request(route.method, path, headers=headers)
            assert answer.status_code < 500, (route.operation_id, text, answer.text)
        walk.names = names
        for text in (*PATHS, "") if route.method == "GET" and route.query.model_fields else ():
            given = [f"{name}={text}" for name in route.query.model_fields]
            for some in (
                given[at : at + 8] for at in range(0, len(given), 8)
            ):  # all of them are too long an URL
                answer = await walk.http.get(f"{walk.path(route)}?{'&'.join(some)}", headers=headers)
                assert answer.status_code < 500, (route.operation_id, text, answer.text)
