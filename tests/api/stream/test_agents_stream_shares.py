"""The limit on agents' streams, of which one organisation can't use all (ADR 41)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.api.agent_stream import page
from tests.support.api.openapi_check import caller
from tests.support.api.service import Service, running
from tests.support.api.staff import client, code, hire, person, sign_in
from tests.support.log_leaks import plant
from tests.support.sockets.admin_socket import operate

PASSWORD = plant("another long password")


@asynccontextmanager
async def stranger(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """An owner of another organisation, with a project of it."""
    await operate(service, "org.create", name="Elsewhere")
    await operate(service, "project.create", organisation="Elsewhere", project={"name": "Theirs"})
    eve = {"email": "eve@example.com", "password": PASSWORD, "role": "owner"}
    await operate(service, "user.create", organisation="Elsewhere", **eve)
    token = (await sign_in(service, "eve@example.com", PASSWORD)).json()["token"]
    async with client(service, token) as http:
        (project,) = (await http.get("/projects")).json()["items"]
        http.headers["project"] = project["id"]
        yield http


async def test_accounts_of_one_organisation_leave_streams_for_others(tmp_path: Path) -> None:
    async with (
        running(tmp_path, agent_streams=12) as service,
        stranger(service) as eve,
        AsyncExitStack() as held,
    ):
        (organisation,) = (await eve.get("/organisations")).json()["items"]
        desks = [eve]
        for number in range(2):
            body = {"email": f"v{number}@example.com", "role": "viewer", "name": "V"}
            hired = (await eve.post(f"/organisations/{organisation['id']}/members", json=body)).json()
            token = (await sign_in(service, hired["email"], hired["password"], PASSWORD)).json()["token"]
            theirs = {"Authorization": f"Bearer {token}", "project": eve.headers["project"]}
            desks.append(await held.enter_async_context(caller(f"{service.url}/v3", theirs)))
        for taken in range(6):
            await held.enter_async_context(page(desks[taken % 3]))
        for desk in desks:
            refused = await desk.get("/stream")
            assert code(refused) == (429, "too_many_streams")
            assert "organisation" in refused.json()["detail"]
            assert refused.headers["retry-after"] == "30"
        for _ in range(3):
            await held.enter_async_context(page(service.dashboard))
        assert code(await service.dashboard.get("/stream"))[0] == 429, (
            "three are left for other organisations"
        )


async def test_projects_of_one_organisation_share_its_streams(tmp_path: Path) -> None:
    async with (
        running(tmp_path, agent_streams=4) as service,
        stranger(service) as eve,
        page(service.dashboard),
        page(service.dashboard),
    ):
        (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
        path = f"/organisations/{organisation['id']}/projects"
        second = (await service.dashboard.post(path, json={"name": "Second"})).json()["id"]
        assert code(await service.dashboard.get("/stream", headers={"project": second}))[0] == 429
        async with page(eve) as desk:
            assert desk.hello["streamId"]


async def test_a_closed_stream_makes_room_for_its_organisation(tmp_path: Path) -> None:
    async with running(tmp_path, agent_streams=2) as service:
        for _ in range(3):
            async with page(service.dashboard) as desk:
                assert desk.hello["streamId"]
                assert code(await service.dashboard.get("/stream"))[0] == 429


async def test_new_members_per_hour_are_limited(tmp_path: Path) -> None:
    async with running(tmp_path, members_per_hour=2) as service, stranger(service) as eve:
        await hire(service, "agent")
        again = {"email": "agent@example.com", "role": "agent"}
        (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
        members = f"/organisations/{organisation['id']}/members"
        assert code(await service.dashboard.post(members, json=again)) == (409, "already_member")
        await hire(service, "viewer")
        body = {"email": "third@example.com", "role": "viewer"}
        refused = await service.dashboard.post(members, json=body)
        assert code(refused) == (429, "too_many_members")
        assert "DESKWIRE_MEMBERS_PER_HOUR" in refused.json()["detail"]
        assert 0 < int(refused.headers["retry-after"]) <= 1_800
        (elsewhere,) = (await eve.get("/organisations")).json()["items"]
        answer = await eve.post(f"/organisations/{elsewhere['id']}/members", json=body)
        assert answer.status_code == 200, "another organisation has its own bound"


async def test_limit_on_members_can_be_disabled(tmp_path: Path) -> None:
    async with running(tmp_path, members_per_hour=0) as service, person(service, "agent") as agent:
        assert agent.id


@pytest.mark.parametrize("key", ["one", "two"])
async def test_repeated_request_does_not_count_for_the_members_limit(tmp_path: Path, key: str) -> None:
    async with running(tmp_path, members_per_hour=2) as service:
        (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
        members, headers = f"/organisations/{organisation['id']}/members", {"Idempotency-Key": key}
        for email in ("a@example.com", "b@example.com"):
            body = {"email": email, "role": "viewer"}
            first = await service.dashboard.post(
                members, json=body, headers={"Idempotency-Key": f"{key}{email}"}
            )
            assert first.status_code == 200
        body = {"email": "c@example.com", "role": "viewer"}
        assert code(await service.dashboard.post(members, json=body, headers=headers))[0] == 429
