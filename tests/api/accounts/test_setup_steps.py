"""The first steps of a project: done by their deeds, shown by permission, and each project's own."""

from __future__ import annotations

import httpx
import pytest

from tests.api.accounts.test_second_factor import enrol
from tests.support.api.browsers import browser, enter, staff
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.import_lines import bring, conversation
from tests.support.api.service import Service
from tests.support.api.staff import person

ALL = ["chat", "colleague", "history", "webhook", "secondFactor"]


async def done(http: httpx.AsyncClient, **headers: str) -> list[str]:
    """Return the steps that are done."""
    answer = await http.get("/setup", headers=headers)
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()["steps"] if each["done"]]


async def test_each_step_is_done_by_its_deed(service: Service) -> None:
    http = service.dashboard
    answer = (await http.get("/setup")).json()
    assert answer == {"steps": [{"name": name, "done": False} for name in ALL]}
    channel = await make_channel(service)
    assert await done(http) == []  # no customer has opened the chat
    async with Browser(service, channel) as customer:
        assert (await customer.start(signed(channel, "ada"))).status_code == 200
    assert await done(http) == ["chat"]
    await staff(service, "owner", "grace@example.com")
    await bring(service.http, conversation("old-1"))
    assert await done(http) == ["chat", "colleague", "history"]
    endpoint = await service.http.post("/s2s/webhooks", json={"url": "http://127.0.0.1:9999/hook"})
    assert endpoint.status_code == 200, endpoint.text
    assert await done(http) == ["chat", "colleague", "history", "webhook"]
    async with browser(service) as page:
        await enter(page, "grace@example.com")
        await enrol(page)
        project = {"project": service.demo["projectId"]}
        assert await done(page, **project) == ALL
        await service.http.delete(f"/s2s/webhooks/{endpoint.json()['id']}")
        assert await done(page, **project) == ["chat", "colleague", "history", "secondFactor"]


async def test_open_invitation_counts_as_a_colleague(service: Service) -> None:
    (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
    body = {"email": "grace@example.com", "role": "agent"}
    path = f"/organisations/{organisation['id']}/invitations"
    assert (await service.dashboard.post(path, json=body)).status_code == 200
    assert await done(service.dashboard) == ["colleague"]


@pytest.mark.parametrize(
    ("role", "steps"), [("viewer", ["secondFactor"]), ("agent", ["secondFactor"]), ("admin", ALL)]
)
async def test_role_decides_which_steps_are_shown(service: Service, role: str, steps: list[str]) -> None:
    async with person(service, role) as someone:
        someone.http.headers["project"] = service.demo["projectId"]
        answer = await someone.http.get("/setup")
    assert [each["name"] for each in answer.json()["steps"]] == steps


async def test_other_project_has_steps_of_its_own(service: Service) -> None:
    (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
    path = f"/organisations/{organisation['id']}/projects"
    other = (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]
    await bring(service.http, conversation("old-1"))
    assert await done(service.dashboard) == ["history"]
    assert await done(service.dashboard, project=other) == []


async def test_server_key_has_no_steps(service: Service) -> None:
    answer = await service.http.get("/setup", headers={"project": service.demo["projectId"]})
    assert answer.status_code == 401
