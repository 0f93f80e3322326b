"""Every route asks for its credential, permission, body and method, tried one by one (decisions 1 to 3; ADR 25)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import jwt
import pytest
from pydantic import BaseModel

from deskwire.engine.accounts.people import PERMISSIONS
from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from deskwire.http.description.error_codes import CODES
from deskwire.http.resources.workflows import ChangeWorkflowRequest, ValidateWorkflowRequest
from tests.support.api.customers import SITE, Browser, make_channel, signed
from tests.support.api.route_guards import Guard, guards
from tests.support.api.service import Service, running
from tests.support.api.staff import organisation_of, person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.log_leaks import plant

WITH_CREDENTIAL: Final = [
    route for route in ROUTES if route.access.kind not in ("none", "visitor", "metrics")
]
WITH_BODY: Final = [route for route in ROUTES if route.body is not None]
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
DOCUMENTED: Final = {(each.status, each.code) for each in CODES}


def call_of(route: Route) -> str:
    return f"{route.method} {route.public_path}"


def bound_of(route: Route) -> str:
    return f"{route.limit // 1024} KiB" if isinstance(route.limit, int) else route.limit or "none"


def test_every_route_has_the_guard_that_the_table_says() -> None:
    found = {
        call_of(route): Guard(
            route.access.kind,
            route.access.permission or "-",
            bound_of(route) if route.body else "-",
        )
        for route in ROUTES
    }
    assert found == guards(), (
        "a route was added, removed or changed: is tests/support/api/route_guards.py to follow?"
    )


def test_a_method_that_changes_something_never_needs_a_permission_to_read_only() -> None:
    reading = {call for call, guard in guards().items() if guard.permission.endswith(".read")}
    assert {call for call in reading if not call.startswith("GET ")} == {  # these change nothing
        "POST /v3/engagement/surveys/{surveyId}/validate",
        "POST /v3/workflows/simulate",
        "POST /v3/workflows/validate",
        "POST /v3/s2s/stream/auth",
        # These change the user's own state: the current view, the read positions, and the followed conversations.
        "PUT /v3/stream/{streamId}/view",
        "PUT /v3/conversations/{conversationId}/seen",
        "PUT /v3/conversations/{conversationId}/mentions/seen",
        "PUT /v3/conversations/{conversationId}/follow",
        "DELETE /v3/conversations/{conversationId}/follow",
        "PUT /v3/inbox/seen",
        # Bulk jobs may change rows of the user alone; actions that change more need a further permission.
        "POST /v3/bulk-jobs",
        "POST /v3/bulk-jobs/{bulkJobId}/cancel",
        "POST /v3/bulk-jobs/{bulkJobId}/undo",
        # Views of one's own; shared ones need a further permission.
        "POST /v3/views",
        "PATCH /v3/views/{viewId}",
        "DELETE /v3/views/{viewId}",
    }


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Return a model and those of its fields, by the names in their schema."""
    yield model
    for field in model.model_fields.values():
        for inner in _classes(field.annotation):
            yield from models(inner)


def _classes(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _classes(part)


def test_no_body_and_no_query_takes_a_field_that_it_does_not_name() -> None:
    for route in ROUTES:
        for model in (route.body, route.query, *route.lines):
            if model is not None and not issubclass(
                model, ChangeWorkflowRequest | ValidateWorkflowRequest
            ):  # its own check names all problems
                assert all(each.model_config.get("extra") == "forbid" for each in models(model)), (
                    route.operation_id
                )


@dataclass
class Walk:
    """A service with a caller of each kind, and the objects that its paths name."""

    service: Service
    http: httpx.AsyncClient
    names: Mapping[str, str]
    customer: str
    session: str

    def path(self, route: Route) -> str:
        return re.sub("<([^>]+)>", lambda match: self.names.get(match[1], "nothing"), route.path)

    def headers(self, route: Route, credential: str | None = None) -> dict[str, str]:
        demo = self.service.demo
        if route.access.kind == "customer":
            return {"Authorization": f"Bearer {credential or self.customer}", "Origin": SITE}
        if route.access.session_only and credential is None:
            return {"Cookie": f"deskwire={self.session}", "Sec-Fetch-Site": "same-origin"}
        own = demo["serverKey"] if route.access.kind in ("server_key", "either") else demo["token"]
        return {"Authorization": f"Bearer {credential or own}", "project": demo["projectId"]}

    async def status(self, route: Route, headers: Mapping[str, str]) -> int:
        """Return the status of a call's response; endless responses are not read."""
        request = self.http.build_request(route.method, self.path(route), headers=headers)
        answer = await self.http.send(request, stream=True)
        if answer.headers.get("Content-Type") != "text/event-stream":
            await answer.aread()
        await answer.aclose()
        return answer.status_code

    async def refused(self, route: Route, status: int, **request: Any) -> httpx.Response:
        """The answer to a call, which is this refusal, in its documented form."""
        answer = await self.http.request(route.method, self.path(route), **request)
        assert answer.status_code == status, (route.operation_id, answer.text)
        document = answer.json()
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert document["requestId"] == answer.headers["X-Request-Id"]
        assert (status, document["code"]) in DOCUMENTED, route.operation_id
        _, _, credential = request.get("headers", {}).get("Authorization", "").partition(" ")
        assert not credential or credential not in answer.text, route.operation_id
        return answer


@asynccontextmanager
async def walking(directory: Path, **settings: Any) -> AsyncIterator[Walk]:
    async with running(directory, **settings) as service:
        names = {
            "organisation_id": await organisation_of(service),
            "project_id": service.demo["projectId"],
        }
        channel = await make_channel(service)
        async with (
            httpx.AsyncClient(base_url=service.url, timeout=HANG_TIMEOUT_S) as http,
            Browser(service, channel) as browser,
        ):
            await browser.start(signed(channel, "u1"))
            entered = await http.post("/v3/auth/session", json=service.demo["user"])
            session = plant(entered.cookies["deskwire"])
            http.cookies.clear()
            yield Walk(service, http, names, str(browser.token), session)


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    async with walking(tmp_path) as started:
        yield started


async def revoked_key(service: Service) -> str:
    """Return a server key that has just been revoked."""
    path = f"/projects/{service.demo['projectId']}/keys"
    made = (await service.dashboard.post(path, json={"label": "gone"})).json()
    assert (await service.dashboard.post(f"{path}/{made['id']}/revoke")).status_code == 200
    return str(made["key"])


def expired_token(service: Service) -> str:
    """Return a token of the demo's owner that has just expired."""
    secret = (service.directory / "secret").read_text().strip()
    claims = jwt.decode(service.demo["token"], secret, algorithms=["HS256"])
    return jwt.encode({**claims, "exp": 1}, secret, algorithm="HS256")


async def test_every_route_refuses_wrong_credentials(walk: Walk) -> None:
    demo, revoked, expired = walk.service.demo, await revoked_key(walk.service), expired_token(walk.service)
    assert len(WITH_CREDENTIAL) > 100
    for route in WITH_CREDENTIAL:
        kind = route.access.kind
        wrong = {"server_key": [demo["token"], revoked], "either": [revoked, expired]}.get(
            kind, [demo["serverKey"], expired]
        )
        tried = [None, "Bearer", "Basic eDp5", "Bearer sk_unknown", *(f"Bearer {each}" for each in wrong)]
        for credential in tried:
            headers = {"project": demo["projectId"]} | (
                {} if credential is None else {"Authorization": credential}
            )
            answer = await walk.refused(route, 401, headers=headers)
            assert answer.headers["WWW-Authenticate"] == "Bearer", route.operation_id


async def test_no_credential_is_taken_from_the_query_or_a_cookie(walk: Walk) -> None:
    demo = walk.service.demo
    for route in WITH_CREDENTIAL:
        secret = demo["serverKey"] if route.access.kind == "server_key" else demo["token"]
        headers = {"project": demo["projectId"], "Cookie": f"token={secret}; Authorization={secret}"}
        params = {"access_token": secret, "token": secret, "Authorization": f"Bearer {secret}"}
        await walk.refused(route, 401, headers=headers, params=params)


async def test_viewer_is_refused_by_permission_and_reads_the_rest(walk: Walk) -> None:
    async with person(walk.service, "viewer") as viewer:
        for route in WITH_CREDENTIAL:
            permission = None if route.access.kind == "server_key" else route.access.permission
            headers = walk.headers(route, viewer.token)
            if permission is not None and permission not in PERMISSIONS["viewer"]:
                answer = await walk.refused(route, 403, headers=headers)
                document = answer.json()
                assert document["code"] == "permission_denied", route.operation_id
                assert permission in document["detail"]
            elif permission is not None:
                assert await walk.status(route, headers) not in (401, 403), route.operation_id


async def test_every_call_of_users_takes_a_session_but_to_change_something_only_from_our_own_pages(
    walk: Walk,
) -> None:
    demo = walk.service.demo
    entered = await walk.http.post("/v3/auth/session", json=demo["user"])
    walk.http.cookies.clear()
    cookie = {"Cookie": f"deskwire={plant(entered.cookies['deskwire'])}", "project": demo["projectId"]}
    for route in WITH_CREDENTIAL:
        if route.access.kind in ("server_key", "customer"):
            answer = await walk.refused(route, 401, headers=cookie)
            assert answer.json()["code"] == "missing_credential"
        elif route.method == "GET":
            assert await walk.status(route, cookie) not in (401, 403), route.operation_id
        else:
            for page in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
                answer = await walk.refused(route, 403, headers=cookie | page)
                assert answer.json()["code"] == "cross_site_request", route.operation_id


async def test_a_body_over_its_bound_is_refused_by_every_route(tmp_path: Path) -> None:
    bounds = {"body_limit_bytes": 96 * 1024, "network_logs_limit_bytes": 2048, "upload_limit_bytes": 1024}
    async with walking(tmp_path, **bounds) as walk:
        for route in WITH_BODY:
            if route.limit is None:
                continue
            if route.streamed:
                sent: dict[str, Any] = {"files": {"file": ("a.txt", b"a" * 100_000)}}
            else:
                bound = bounds[route.limit] if isinstance(route.limit, str) else min(route.limit, 96 * 1024)
                sent = {"content": b" " * (bound + 1)}
            answer = await walk.refused(route, 413, headers=walk.headers(route), **sent)
            assert answer.json()["code"] == "body_too_large"
            assert route.streamed or f"{bound:,} bytes" in answer.json()["detail"], route.operation_id


async def test_a_body_of_another_type_is_refused_by_every_route_that_says_its_type(walk: Walk) -> None:
    for route in WITH_BODY:
        if route.json_only:
            for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
                headers = walk.headers(route) | {"Content-Type": kind}
                answer = await walk.refused(route, 415, headers=headers, content=b"{}")
                assert answer.json()["code"] == "unsupported_media_type"


async def test_every_path_names_its_methods_when_asked_for_another(walk: Walk) -> None:
    for route in ROUTES:
        path = walk.path(route)
        taken = {other.method for other in ROUTES if other.path == route.path}
        for method in (*METHODS, "OPTIONS", "TRACE"):
            if method not in taken:
                answer = await walk.http.request(method, path)
                assert answer.status_code == 405, (method, path)
                allowed = taken | {"HEAD"} if "GET" in taken else taken
                assert set(answer.headers["Allow"].split(", ")) == allowed, path
