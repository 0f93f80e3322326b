"""Every route decides about machine credentials: with its permission, without one, or for people alone (ADR 70)."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

import deskwire.http.resources
from deskwire.engine.accounts.machines import Machine
from deskwire.engine.audit.trail import ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from tests.api.conventions.test_guards import Walk, call_of, walking
from tests.support.api.machine_guards import ALSO, ANY, PARTLY, PERSONAL, READS_USER
from tests.support.api.machines import credentials_of, make
from tests.support.api.service import tapping
from tests.support.api.staff import organisation_of

WITH_CREDENTIAL: Final = [
    route for route in ROUTES if route.access.kind not in ("none", "visitor", "metrics", "customer")
]


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    async with walking(tmp_path, rate_limit_per_minute=0) as started:
        yield started


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_the_routes_that_refuse_machines_are_those_of_the_table() -> None:
    assert {call_of(route) for route in WITH_CREDENTIAL if not route.access.machines} == PERSONAL, (
        "a route was added or changed: does it take machine credentials? See tests/support/api/machine_guards.py"
    )


def test_every_route_that_takes_machines_asks_them_for_a_permission() -> None:
    free = {call_of(route) for route in ROUTES if route.access.machines and route.access.permission is None}
    assert free == ANY


def test_the_routes_that_need_several_permissions_are_those_of_the_table() -> None:
    assert {call_of(route): route.access.also for route in ROUTES if route.access.also} == ALSO


def reading_the_user(root: Path) -> Iterator[str]:
    """Yield the functions in which `call.user` or `call.role` is read."""
    for path in sorted(root.rglob("*.py")):
        for function in ast.parse(path.read_text()).body:
            read = {
                node.attr
                for node in ast.walk(function)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "call"
            }
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and read & {"user", "role"}:
                yield f"{path.relative_to(root).with_suffix('').as_posix()}.{function.name}"


def test_every_handler_that_needs_a_signed_in_user_is_listed() -> None:
    (root,) = deskwire.http.resources.__path__
    assert set(reading_the_user(Path(root))) == READS_USER, (
        "a machine is refused there, in the midst of a call: is its route `personal`, or does it sign by `call.access`?"
    )


async def test_a_machine_with_every_permission_is_refused_only_where_a_person_is_needed(walk: Walk) -> None:
    headers = bearer((await make(walk.service))["secret"])
    for route in WITH_CREDENTIAL:
        if call_of(route) in PERSONAL:
            document = (await walk.refused(route, 403, headers=headers)).json()
            assert document["code"] == "person_required", route.operation_id
            assert "for people" in document["detail"]
        else:
            assert await walk.status(route, headers) not in (401, 403, 500), route.operation_id


async def test_a_machine_with_every_permission_is_no_customer(walk: Walk) -> None:
    headers = bearer((await make(walk.service))["secret"])
    for route in ROUTES:
        if route.access.kind == "customer":
            document = (await walk.refused(route, 401, headers=headers)).json()
            assert document["code"] == "wrong_credential_kind", route.operation_id
            assert "ct_" in document["detail"]


async def test_refusal_of_a_machine_names_the_missing_permission(walk: Walk) -> None:
    headers = bearer((await make(walk.service, ()))["secret"])
    for route in WITH_CREDENTIAL:
        call, permission = call_of(route), route.access.permission
        if call in ANY:
            assert await walk.status(route, headers) == 200, route.operation_id
        elif call not in PERSONAL:
            document = (await walk.refused(route, 403, headers=headers)).json()
            assert document["code"] == "permission_denied", route.operation_id
            assert permission is not None
            assert permission in document["detail"]


async def test_machine_may_use_only_its_permission(walk: Walk) -> None:
    asked = {route.access.permission for route in WITH_CREDENTIAL if route.access.machines} - {None}
    for permission in sorted(each for each in asked if each is not None):
        headers = bearer((await make(walk.service, (permission,)))["secret"])
        for route in WITH_CREDENTIAL:
            if route.access.machines and route.access.permission is not None and route.method == "GET":
                status = await walk.status(route, headers)
                assert (status == 403) == (set(route.access.permissions) != {permission}), (
                    route.operation_id,
                    permission,
                    status,
                )


@pytest.mark.parametrize("end", ["expired", "revoked", "rotated"])
async def test_ended_secret_opens_no_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    stores = tapping(monkeypatch)
    async with walking(tmp_path) as walk:
        made = await make(walk.service)
        one = f"{credentials_of(walk.service)}/{made['id']}"
        if end == "revoked":
            assert (await walk.service.dashboard.delete(one)).status_code == 200
        elif end == "rotated":
            answer = await walk.service.dashboard.post(f"{one}/rotate", json={"overlapSeconds": 0})
            assert answer.status_code == 200, answer.text
        else:
            stored = await stores[0].read(lambda reader: reader.machine(made["id"]))
            assert stored is not None
            over = replace(stored, expires_at=1)
            await stores[0].write(lambda tx: _save_as_operator(tx, over))
        for route in WITH_CREDENTIAL:
            answer = await walk.refused(route, 401, headers=bearer(made["secret"]))
            assert answer.json()["code"] == f"{end}_machine_credential", route.operation_id
            assert answer.headers["WWW-Authenticate"] == "Bearer"


def _save_as_operator(tx: Transaction, machine: Machine) -> None:
    with tx.signed(ChangeOrigin(Actor("operator"))):
        tx.save_machine(machine)


async def test_machine_of_another_project_finds_nothing_of_this_one(walk: Walk) -> None:
    service = walk.service
    path = f"/organisations/{await organisation_of(service)}/projects"
    other = (await service.dashboard.post(path, json={"name": "Bank"})).json()["id"]
    headers = bearer((await make(service, project=other))["secret"])
    for route in WITH_CREDENTIAL:
        ours = headers | {"project": service.demo["projectId"]}
        document = (await walk.refused(route, 404, headers=ours)).json()
        assert document["code"] == "project_not_found", route.operation_id
    conversation = (await service.create())["id"]
    for found in (f"/v3/conversations/{conversation}", f"/v3/s2s/conversations/{conversation}"):
        answer = await walk.http.get(found, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "conversation_not_found")
    answer = await walk.http.get(f"/v3{credentials_of(service)}", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (404, "project_not_found")
    listed = await walk.http.get("/v3/tickets", headers=headers)
    assert listed.json()["items"] == []


async def test_personal_routes_refuse_machines_before_any_change(walk: Walk) -> None:
    headers = bearer((await make(walk.service))["secret"])
    conversation = await walk.service.create()
    for call, shown in PARTLY.items():
        method, _, path = call.partition(" ")
        path = path.replace("{conversationId}", conversation["id"])
        body = {"title": "Changed"} if method == "PATCH" else None
        for params in shown:
            answer = await walk.http.request(method, path, headers=headers, params=params, json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "person_required"), (call, params)
    assert (await walk.service.fetch(conversation))["title"] != "Changed"


def wrong_kinds(route: Route, walk: Walk, webhook: str) -> dict[str, str]:
    """The credentials of other kinds than the route takes, each by its name."""
    demo = walk.service.demo
    wrong = {
        "webhook's signing secret": webhook,
        "stream authorization": f"{demo['streamKey']}:{demo['token']}",
    }
    if route.access.kind == "server_key":
        wrong["access token"] = demo["token"]
    elif route.access.kind != "either":
        wrong["server key"] = demo["serverKey"]
    return wrong


async def test_credential_of_the_wrong_kind_is_named_and_not_repeated(walk: Walk) -> None:
    webhook = f"whsec_{'A' * 32}"
    for route in WITH_CREDENTIAL:
        for kind, credential in wrong_kinds(route, walk, webhook).items():
            headers = bearer(credential) | {"project": walk.service.demo["projectId"]}
            answer = await walk.refused(route, 401, headers=headers)
            document = answer.json()
            assert document["code"] == "wrong_credential_kind", (route.operation_id, kind)
            assert f"{kind} was shown" in document["detail"]
            assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_credential_of_unknown_form_is_refused(walk: Walk) -> None:
    server = await walk.http.get("/v3/s2s/project", headers=bearer("garbage"))
    user = await walk.http.get("/v3/users/me", headers=bearer("garbage"))
    machine = await walk.http.get("/v3/users/me", headers=bearer("mk_unknown"))
    codes = [each.json()["code"] for each in (server, user, machine)]
    assert codes == ["invalid_server_key", "invalid_token", "invalid_machine_credential"]
