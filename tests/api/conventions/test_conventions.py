"""The conventions of every call: credentials, problems, validation, limits (decisions 1 and 2)."""

from __future__ import annotations

import json
import time
from itertools import repeat
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import trio

from deskwire.engine.core import build
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.stores import beside

PATHS = {
    "conversation_id": "cnv_00000000000000000000000000",
    "endpoint_id": "whk_0",
    "team_id": "team_0",
    "ticket_id": "tkt_0",
    "key_id": "key_0",
    "organisation_id": "org_00000000000000000000000000",
    "project_id": "prj_00000000000000000000000000",
    "user_id": "usr_00000000000000000000000000",
    "path:user_id": "nobody",
}


def assert_problem(answer: httpx.Response) -> None:
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.json()
    assert {"type", "title", "status", "detail", "code", "requestId"} <= document.keys()
    assert document["status"] == answer.status_code
    assert document["requestId"] == answer.headers["X-Request-Id"]


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"sub": "usr_00000000000000000000000000"},
        {"sub": None},
        {"aud": "stream"},
    ],
)
async def test_an_access_token_that_is_not_quite_right_is_refused(
    service: Service, claims: dict[str, Any]
) -> None:
    secret = (service.directory / "secret").read_text().strip()
    good = jwt.decode(service.demo["token"], secret, algorithms=["HS256"])
    wanted = {name: value for name, value in {**good, **claims}.items() if value is not None}
    token = jwt.encode(wanted, secret, algorithm="HS256")
    headers = {"Authorization": f"Bearer {token}"}
    assert (await service.dashboard.get("/conversations", headers=headers)).status_code == 401


async def test_an_unsigned_token_and_one_of_another_secret_are_refused(service: Service) -> None:
    secret = (service.directory / "secret").read_text().strip()
    claims = jwt.decode(service.demo["token"], secret, algorithms=["HS256"])
    for token in (
        jwt.encode(claims, "", algorithm="none"),
        jwt.encode(claims, "another secret of quite the same length", algorithm="HS256"),
        jwt.encode(claims, secret, algorithm="HS512"),
    ):
        answer = await service.dashboard.get("/conversations", headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")


async def test_the_project_header_is_needed_and_must_name_ones_own_project(service: Service) -> None:
    async with httpx.AsyncClient(base_url=f"{service.url}/v3") as http:
        headers = {"Authorization": f"Bearer {service.demo['token']}"}
        missing = await http.get("/conversations", headers=headers)
        assert (missing.status_code, missing.json()["code"]) == (400, "missing_project")
        for foreign in ("prj_00000000000000000000000000", "x", "prj_"):
            answer = await http.get("/conversations", headers={**headers, "project": foreign})
            assert (answer.status_code, answer.json()["code"]) == (404, "project_not_found")


async def test_signing_in_gives_a_token_that_works(service: Service) -> None:
    user = service.demo["user"]
    answer = (await service.http.post("/auth/token", json=user)).json()
    headers = {"Authorization": f"Bearer {answer['token']}"}
    assert (await service.dashboard.get("/conversations", headers=headers)).status_code == 200
    for wrong in ({**user, "password": "x"}, {**user, "email": "nobody@demo.example"}):
        refused = await service.http.post("/auth/token", json=wrong)
        assert (refused.status_code, refused.json()["code"]) == (401, "invalid_login")


async def test_every_problem_of_a_body_is_named(service: Service) -> None:
    body = {
        "contact": {"userId": "", "nmae": "x", "email": 7},
        "title": "x" * 501,
        "message": {"text": "", "author": {"type": "robot"}},
        "visible": "yes",
    }
    answer = await service.http.post("/s2s/conversations", json=body)
    assert answer.status_code == 422
    assert_problem(answer)
    found = {(each["pointer"], each["code"]) for each in answer.json()["errors"]}
    assert found == {
        ("/contact/userId", "too_short"),
        ("/contact/nmae", "unknown_field"),
        ("/contact/email", "invalid"),
        ("/title", "too_long"),
        ("/message/text", "too_short"),
        ("/message/author/type", "not_allowed"),
        ("/visible", "invalid"),
    }
    assert await service.types() == []


async def test_query_parameters_are_checked_by_name(service: Service) -> None:
    answer = await service.http.get("/s2s/events?limit=0&wat=1&wait=31&limit=2&types=nope")
    assert answer.status_code == 400
    pointers = {each["pointer"] for each in answer.json()["errors"]}
    assert pointers == {"/limit", "/wat", "/wait", "/types"}
    for query in ("limit=201", "limit=x", "types=nope", "after=x", "wait=nan"):
        refused = await service.http.get(f"/s2s/events?{query}")
        assert refused.status_code == 400, query
        assert refused.json()["errors"][0]["pointer"] == f"/{query.partition('=')[0]}"


@pytest.mark.parametrize(
    "body",
    [b"{", b"nope", b'{"text": "\\ud800"}', b'{"text": NaN}', b"\xff", b"[" * 100_000, b'{"text": 1e999}'],
    ids=["cut", "no-json", "lone-surrogate", "nan", "no-utf8", "deep", "infinite"],
)
async def test_a_body_that_is_not_json_is_a_400(service: Service, body: bytes) -> None:
    conversation = await service.create()
    path = f"/s2s/conversations/{conversation['id']}/messages"
    answer = await service.http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_json")


@pytest.mark.parametrize("body", [b"[]", b"7", b'"text"', b"null"])
async def test_a_body_that_is_no_object_is_a_422(service: Service, body: bytes) -> None:
    answer = await service.http.post(
        "/s2s/conversations", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422


async def test_other_content_types_are_refused(service: Service) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"Content-Type": content_type}
        answer = await service.http.post("/s2s/conversations", content=b"{}", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


async def test_a_body_that_is_too_large_is_refused_while_it_arrives(service: Service) -> None:
    conversation = await service.create()
    path = f"/s2s/conversations/{conversation['id']}/messages"
    status, body = await service.declare("POST", path, (1 << 20) + 1)
    assert (status, json.loads(body)["code"]) == (413, "body_too_large")
    head = (
        f"POST /v3{path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json"
    )
    first = f"{head}\r\nAuthorization: Bearer {service.demo['serverKey']}\r\n\r\n".encode()
    status, body = await service.talk(first, repeat(b"8000\r\n" + b"x" * 0x8000 + b"\r\n"))
    assert (status, json.loads(body)["code"]) == (413, "body_too_large")


async def test_an_unknown_path_and_a_wrong_method_are_problems(service: Service) -> None:
    unknown = await service.http.get("/s2s/nothing")
    assert unknown.status_code == 404
    assert_problem(unknown)
    wrong = await service.http.delete("/s2s/events")
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "GET, HEAD")
    assert_problem(wrong)


async def test_upgrade_of_another_path_is_refused_with_a_reason(service: Service) -> None:
    """Send it on a new connection and on a used one."""
    upgrade = "GET /v3/s2s/events HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    with trio.fail_after(HANG_TIMEOUT_S):
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            first = b""
            while not first.endswith(b"}\n"):
                first += await stream.receive_some(65_536)
            await stream.send_all((upgrade + key).encode())
            answer = b""
            async for data in stream:
                answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404")
    assert b"x-request-id" in head.lower()
    assert json.loads(body)["status"] == 404


async def test_a_foreign_project_sees_nothing_of_ours(tmp_path: Path) -> None:
    """Decisions 1: another project's object looks like none at all."""
    async with running(tmp_path) as service:
        conversation = await service.create(message={"text": "ours"})
        other = await foreign_key(tmp_path)
        async with httpx.AsyncClient(
            base_url=f"{service.url}/v3", headers={"Authorization": f"Bearer {other}"}
        ) as http:
            path = f"/s2s/conversations/{conversation['id']}"
            for method, tail, body in (
                ("GET", "", None),
                ("PATCH", "", {"title": "x"}),
                ("DELETE", "", None),
                ("GET", "/messages", None),
                ("POST", "/messages", {"text": "x"}),
                ("POST", "/close", None),
                ("GET", "/events", None),
            ):
                answer = await http.request(method, path + tail, json=body)
                unknown = await http.request(
                    method, f"/s2s/conversations/{PATHS['conversation_id']}{tail}", json=body
                )
                assert answer.status_code == unknown.status_code == 404
                assert {**answer.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}
            assert (await http.get("/s2s/events")).json()["items"] == []
            assert (await http.get("/s2s/contacts/u1")).status_code == 404
        assert await service.fetch(conversation) == conversation


async def foreign_key(directory: Path) -> str:
    """Put a server key of another project into the database beside the running service."""
    from deskwire.engine.accounts.server_keys import hash_server_key, new_server_key

    key = new_server_key()
    with beside(directory) as connection:
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (77, 'org_x', 'Other', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (77, 'prj_x', 77, 'Other', 'otherstream', 0)"
        )
        connection.execute(
            "INSERT INTO server_keys (rowid, id, project, hash, tail, label, created_at) "
            "VALUES (77, 'key_x', 77, ?, 'tail', 'other', 0)",
            (hash_server_key(key),),
        )
    return key


async def test_health_and_readiness_answer_without_a_credential(service: Service) -> None:
    async with httpx.AsyncClient(base_url=service.url) as http:
        alive = (await http.get("/healthz")).json()
        assert alive == {"status": "ok", "version": build.version(), "commit": build.commit()}
        assert (await http.get("/readyz")).json() == {"status": "ready"}
        assert (await http.get("/")).json()["service"] == "deskwire"


async def test_demo_json_is_private_and_complete(service: Service) -> None:
    path = service.directory / "demo.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text()).keys() == {
        *("baseUrl", "projectId", "serverKey", "streamKey", "user", "token", "channelId", "channelSecret")
    }
    assert service.demo["baseUrl"] == service.url


@pytest.mark.parametrize("bound_s", [0.05, 5.0])
async def test_a_connection_is_answered_or_closed_after_the_process_stood_still(
    service: Service, monkeypatch: pytest.MonkeyPatch, bound_s: float
) -> None:
    """Stop the process just after a response, like a slow disk or a stopped machine; below the limit no client notices."""
    monkeypatch.setattr("deskwire.http.server.adapters.hypercorn._LAST_WRITE_TIMEOUT_S", bound_s)
    with trio.fail_after(HANG_TIMEOUT_S):
        assert (await service.http.get("/s2s/project")).status_code == 200
        time.sleep(0.2)  # noqa: ASYNC251  # the whole process stands still
        try:
            second = (await service.http.get("/s2s/project")).status_code
        except httpx.TransportError:
            second = 0
    assert second == 200 or bound_s < 1
