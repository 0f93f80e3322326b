"""Responses compressed by gzip: those that users read, and no others (ADR 15)."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import pytest

from deskwire.http.api.output.compression import COMPRESS_MIN_BYTES, accepts_gzip, compress
from tests.support.api.service import Service, running
from tests.support.api.staff import organisation_of

BY_QUART: Final = {"TE": "trailers"}
"""A header that changes no answer, and makes a request none for the fast path."""


async def raw(http: httpx.AsyncClient, path: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """A response, and its body as it came."""
    request = http.build_request("GET", path, headers=headers)
    answer = await http.send(request, stream=True)
    body = b"".join([each async for each in answer.aiter_raw()])
    assert answer.status_code == 200, body
    return answer, body


async def filled(service: Service) -> None:
    for number in range(5):
        await service.create(f"u{number}", title="A parcel that is late " * 5)


@pytest.fixture
def unchecked(service: Service) -> httpx.AsyncClient:
    """Return the owner's client, whose bodies the test reads itself."""
    return httpx.AsyncClient(base_url=service.dashboard.base_url, headers=service.dashboard.headers)


@pytest.mark.parametrize("way", [{}, BY_QUART], ids=["lane", "quart"])
async def test_a_list_that_a_user_reads_is_packed_if_the_client_takes_that(
    service: Service, unchecked: httpx.AsyncClient, way: dict[str, str]
) -> None:
    await filled(service)
    async with unchecked as http:
        plain, body = await raw(http, "/conversations", **way, **{"Accept-Encoding": "identity"})
        short, packed_body = await raw(http, "/conversations", **way, **{"Accept-Encoding": "br, gzip"})
    assert "Content-Encoding" not in plain.headers
    assert short.headers["Content-Encoding"] == "gzip"
    assert plain.headers["Vary"] == short.headers["Vary"] == "Accept-Encoding"
    assert int(plain.headers["Content-Length"]) == len(body) > COMPRESS_MIN_BYTES
    assert int(short.headers["Content-Length"]) == len(packed_body) < len(body) / 2
    assert orjson.loads(gzip.decompress(packed_body)) == orjson.loads(body)


async def test_short_response_is_not_compressed(service: Service, unchecked: httpx.AsyncClient) -> None:
    async with unchecked as http:
        answer, body = await raw(http, "/users/me", **{"Accept-Encoding": "gzip"})
    assert len(body) < COMPRESS_MIN_BYTES
    assert not {"Content-Encoding", "Vary"} & answer.headers.keys()
    assert not {"content-encoding", "vary"} & answer.headers.keys()


async def test_a_backends_calls_stay_as_they_are(service: Service) -> None:
    await filled(service)
    conversation = await service.create("u9", title="x" * 200, attributes={"k": "v" * 1000})
    for path in (f"/s2s/conversations/{conversation['id']}", "/s2s/events"):
        answer = await service.http.get(path, headers={"Accept-Encoding": "gzip"})
        assert len(answer.content) > COMPRESS_MIN_BYTES
        assert not {"content-encoding", "vary"} & answer.headers.keys()


async def test_response_to_a_change_is_never_compressed(service: Service) -> None:
    """It may show a secret, once."""
    path = f"/organisations/{await organisation_of(service)}/projects"
    made = await service.dashboard.post(path, json={"name": "P" * 200})
    languages = ["en", *(f"de-x-{number:08}" for number in range(49))]
    body = {"settings": {"languages": languages}}
    changed = await service.dashboard.patch(f"/projects/{made.json()['id']}", json=body)
    assert len(changed.content) > COMPRESS_MIN_BYTES / 2
    for answer in (made, changed):
        assert "content-encoding" not in answer.headers


async def test_precompressed_and_streamed_responses_are_not_compressed(service: Service) -> None:
    project = {"Accept-Encoding": "gzip"}
    description = await service.dashboard.get("/openapi.json", headers=project)
    assert description.headers["Vary"] == "Accept-Encoding"
    assert description.headers["ETag"]
    export = await service.dashboard.get(
        f"/organisations/{await organisation_of(service)}/audit.ndjson", headers=project
    )
    assert "content-encoding" not in export.headers


async def test_a_page_of_an_allowed_origin_gets_both_reasons_for_another_answer(tmp_path: Path) -> None:
    async with running(tmp_path, cors_origins=("https://desk.example",)) as service:
        await filled(service)
        answer = await service.dashboard.get("/conversations", headers={"Origin": "https://desk.example"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert sorted(answer.headers.get_list("Vary")) == ["Accept-Encoding", "Origin"]


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZIP", True),
        ("gzip;q=0", False),
        ("gzip;q=0.1, br", True),
        ("*", True),
        ("*;q=0", False),
        ("br, deflate", False),
        ("gzipped", False),
        (";;;,,,q=", False),
    ],
)
def test_client_decides_on_gzip(accepted: str | None, taken: bool) -> None:
    assert accepts_gzip(accepted) is taken


@pytest.mark.parametrize("size", [COMPRESS_MIN_BYTES, 1 << 20])
async def test_compressed_response_has_the_same_content(size: int) -> None:
    body: Any = orjson.dumps(["parcel"] * (size // 9))
    assert gzip.decompress(await compress(body)) == body
