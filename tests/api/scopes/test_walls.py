"""No machine credential comes across what it may not read, by any call and by nothing that it makes (ADR 70).

Each permission alone, and with the one to manage webhooks, makes every call of the API; the responses, and what endpoints are
sent, are searched for markers of data that it may not read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio

from deskwire.engine.accounts.machines import EVERY_PERMISSION
from deskwire.engine.events.types import LISTABLE
from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from tests.api.events.test_channels_agree import receiving
from tests.api.webhooks.test_deliveries import ended
from tests.support.api.machines import credentials_of, make
from tests.support.api.scope_walls import LISTING_NEEDS, SEES, Planted, mark, seen_in
from tests.support.api.service import running
from tests.support.deadlines import HANG_TIMEOUT_S

MANAGE = "webhooks.manage"
UNREACHED = {"conversations.reply": {"thread"}}
"""Views in responses of calls that the planted project refuses: here, the answer to a waiting step."""

OTHERS_CREDENTIALS = {"changeCredential", "rotateCredential"}
"""The calls that refuse the planted credential to every machine, because none of them has created it."""

_ORDER = {"GET": 0, "PUT": 1, "PATCH": 2, "POST": 3, "DELETE": 4}
CALLED = sorted(
    (route for route in ROUTES if route.access.machines), key=lambda route: (_ORDER[route.method], route.path)
)
"""Calls of machines; removals come last."""


@pytest.fixture
async def planted(tmp_path: Path) -> AsyncIterator[Planted]:
    async with running(tmp_path, rate_limit_per_minute=0) as service:
        made = Planted(service)
        await made.plant()
        yield made


async def call(http: httpx.AsyncClient, planted: Planted, route: Route, **headers: str) -> tuple[int, str]:
    """Make a call; the status and the text of the answer."""
    sent = planted.sent(route)
    sent["headers"] = {**sent.get("headers", {}), **headers}
    with trio.move_on_after(HANG_TIMEOUT_S):
        answer = await http.request(route.method, planted.path(route), **sent)
        return answer.status_code, answer.text
    raise AssertionError(f"{route.operation_id} was not answered")


def client(planted: Planted, secret: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx.AsyncClient(base_url=planted.service.url, headers=headers, timeout=HANG_TIMEOUT_S)


async def test_every_call_of_the_matrix_succeeds(planted: Planted) -> None:
    """Otherwise a new call would be refused for its body, and its walls never be tried: see `scope_walls.BODIES`."""
    refused: dict[str, str] = {}
    async with client(planted, (await make(planted.service))["secret"]) as http:
        for route in CALLED:
            if "merge" in route.path:
                await planted.plant_another()
            status, text = await call(http, planted, route)
            if status in (400, 401, 403, 415, 422, 500):
                refused[route.operation_id] = text
            if route.method == "DELETE":
                await planted.plant()
    assert refused.keys() == OTHERS_CREDENTIALS, refused


def test_table_lists_the_views_of_each_permission() -> None:
    assert SEES.keys() == EVERY_PERMISSION


@pytest.mark.thorough
@pytest.mark.parametrize("permission", sorted(EVERY_PERMISSION))
async def test_permission_shows_exactly_the_views_in_the_table(planted: Planted, permission: str) -> None:
    secret = (await make(planted.service, (permission,)))["secret"]
    reached = set[str]()
    async with client(planted, secret) as http:
        for route in CALLED:
            status, text = await call(http, planted, route)
            needed = set(route.access.permissions)
            assert needed <= {permission} or status == 403, (route.operation_id, status)
            assert seen_in(text) <= SEES[permission], (route.operation_id, text)
            reached |= seen_in(text) if status == 200 else set()
            if route.method in ("DELETE", "PUT") and status == 200:
                await planted.plant()
    assert reached == SEES[permission] - UNREACHED.get(permission, set()), "the table promises too much"


@pytest.mark.thorough
@pytest.mark.parametrize("permission", sorted(EVERY_PERMISSION))
async def test_endpoints_get_only_events_that_their_credential_may_read(
    planted: Planted, permission: str
) -> None:
    service = planted.service
    for each in (await service.http.get("/s2s/webhooks")).json()["items"]:
        await service.http.delete(f"/s2s/webhooks/{each['id']}")
    secret = (await make(service, {permission, MANAGE}))["secret"]
    async with client(planted, secret) as http, receiving() as receiver:
        listed = await _registered(http, receiver.url, permission)
        body = {"url": receiver.url, "events": sorted(listed), "internal": True}
        made = await http.post("/v3/s2s/webhooks", json=body)
        assert made.status_code == 200, made.text
        await planted.plant_events()
        assert await ended(service, made.json(), 1)
        sent = [seen_in(request.body) for request in receiver.requests]
    assert set().union(*sent) <= SEES[permission] | SEES[MANAGE]


async def _registered(http: httpx.AsyncClient, url: str, permission: str) -> set[str]:
    """The types that an endpoint may list; each is tried alone, and all types of the contract by an empty list."""
    allowed = set[str]()
    for name in LISTABLE:
        body = {"url": url, "events": [name], "internal": True}
        answer = await http.post("/v3/s2s/webhooks", json=body)
        needed = LISTING_NEEDS.get(name) or LISTING_NEEDS.get(name.partition(".")[0], "conversations.read")
        assert (answer.status_code == 200) == (needed in (permission, MANAGE)), (name, answer.text)
        if answer.status_code == 200:
            allowed.add(name)
            await http.delete(f"/v3/s2s/webhooks/{answer.json()['id']}")
    return allowed


@pytest.mark.thorough
async def test_stored_response_respects_lost_permissions(planted: Planted) -> None:
    service = planted.service
    for route in (each for each in CALLED if each.idempotent):
        made = await make(service)
        one = f"{credentials_of(service)}/{made['id']}"
        key = {"Idempotency-Key": route.operation_id}
        async with client(planted, made["secret"]) as http:
            status, _ = await call(http, planted, route, **key)
            for left in ([], [route.access.permission]):
                body = {"permissions": left}
                assert (await service.dashboard.patch(one, json=body)).status_code == 200
                again, text = await call(http, planted, route, **key)
                sees = frozenset[str]().union(*(SEES[each] for each in left if each is not None))
                assert seen_in(text) <= sees, (route.operation_id, left, text)
                assert left or again == 403, (route.operation_id, status, again)
        await service.dashboard.delete(one)


async def test_nothing_that_a_credential_has_made_lets_anyone_in_after_its_end(planted: Planted) -> None:
    service = planted.service
    made = await make(service)
    path = f"/v3{credentials_of(service)}"
    async with client(planted, made["secret"]) as http:
        body = {"name": "Child", "permissions": sorted(EVERY_PERMISSION)}
        child = (await http.post(path, json=body)).json()["secret"]
        rotated = (await http.post(f"{path}/{made['id']}/rotate", json={})).json()["secret"]
        hook = {"url": "http://127.0.0.1:9999/own", "events": []}
        endpoint = (await http.post("/v3/s2s/webhooks", json=hook)).json()
    await service.dashboard.delete(f"{credentials_of(service)}/{made['id']}")
    for secret in (made["secret"], child, rotated):
        async with client(planted, secret) as http:
            for route in CALLED:
                status, text = await call(http, planted, route)
                assert (status, seen_in(text)) == (401, set()), route.operation_id
    found = (await service.http.get(f"/s2s/webhooks/{endpoint['id']}")).json()
    assert found["status"] == "disabled"


def test_markers_are_found_in_responses() -> None:
    assert seen_in(f"x{mark('note')}".encode()) == {"note"}
