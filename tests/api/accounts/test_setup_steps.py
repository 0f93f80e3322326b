"""The first steps of a project: done by their deeds, shown by permission, each project's own, and hidden for all its members."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.api.accounts.test_roles import member_with
from tests.api.accounts.test_second_factor import enrol
from tests.support.api.agent_stream import page as stream_of
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import browser, enter, staff
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.import_lines import bring, conversation
from tests.support.api.service import Service, running
from tests.support.api.staff import code, person

ALL: Final = ["chat", "colleague", "history", "webhook", "secondFactor"]


async def done(http: httpx.AsyncClient, **headers: str) -> list[str]:
    """Return the steps that are done."""
    answer = await http.get("/setup", headers=headers)
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()["steps"] if each["done"]]


async def test_each_step_is_done_by_its_deed(service: Service) -> None:
    http = service.dashboard
    answer = (await http.get("/setup")).json()
    assert answer == {"hidden": False, "steps": [{"name": name, "done": False} for name in ALL]}
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


async def put_hidden(http: httpx.AsyncClient, *, hidden: bool, **headers: str) -> dict[str, Any]:
    """Hide the list, or show it again, and return the answer."""
    answer = await http.put("/setup", json={"hidden": hidden}, headers=headers)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def test_hidden_list_is_hidden_for_every_member_until_it_is_shown(service: Service) -> None:
    async with person(service, "agent") as ken:
        ken.http.headers["project"] = service.demo["projectId"]
        for hidden in (True, False):
            changed = await put_hidden(service.dashboard, hidden=hidden)
            assert changed == {
                "hidden": hidden,
                "steps": [{"name": each, "done": each == "colleague"} for each in ALL],
            }
            assert (await service.dashboard.get("/setup")).json() == changed
            seen = (await ken.http.get("/setup")).json()
            assert seen == {"hidden": hidden, "steps": [{"name": "secondFactor", "done": False}]}


async def test_hidden_list_of_a_project_leaves_those_of_others(service: Service) -> None:
    (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
    path = f"/organisations/{organisation['id']}/projects"
    other = (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]
    await put_hidden(service.dashboard, hidden=True, project=other)
    assert (await service.dashboard.get("/setup")).json()["hidden"] is False
    assert (await service.dashboard.get("/setup", headers={"project": other})).json()["hidden"] is True


async def test_list_stays_hidden_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        await put_hidden(service.dashboard, hidden=True)
    async with running(tmp_path) as service:
        assert (await service.dashboard.get("/setup")).json()["hidden"] is True


async def test_open_desks_are_notified_of_a_hidden_list(service: Service) -> None:
    async with person(service, "agent") as ken:
        ken.http.headers["project"] = service.demo["projectId"]
        async with stream_of(ken.http) as desk:
            await put_hidden(service.dashboard, hidden=True)
            event = await desk.event()
            assert (event["type"], event["data"]) == ("settings.changed", {"what": "project", "id": None})


async def test_each_change_of_the_list_is_recorded_once(service: Service) -> None:
    for hidden in (False, True, True, False):
        await put_hidden(service.dashboard, hidden=hidden)
    records = await trail(service, action="setup.changed")
    assert [each["changes"] for each in records] == [
        {"hidden": {"before": True, "after": False}},
        {"hidden": {"before": False, "after": True}},
    ]
    assert {(each["object"]["id"], each["actor"]["type"]) for each in records} == {
        (service.demo["projectId"], "user")
    }


@pytest.mark.parametrize(
    ("permissions", "status"),
    [
        (("conversations.read", "projects.manage"), 200),
        (("projects.manage",), 403),
        (("conversations.read", "members.manage", "webhooks.manage"), 403),
    ],
)
async def test_list_is_hidden_by_members_who_see_it_and_manage_the_project(
    service: Service, permissions: tuple[str, ...], status: int
) -> None:
    async with member_with(service, permissions) as (member, _):
        answer = await member.http.put("/setup", json={"hidden": True})
    assert answer.status_code == status, answer.text
    assert status == 200 or code(answer) == (403, "permission_denied")
    assert (await service.dashboard.get("/setup")).json()["hidden"] is (status == 200)


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, {"/hidden"}),
        ({"hidden": None}, {"/hidden"}),
        ({"hidden": 1, "steps": []}, {"/hidden", "/steps"}),
        ({"hidden": "true"}, {"/hidden"}),
    ],
)
async def test_every_problem_of_the_body_is_named(
    service: Service, body: dict[str, Any], pointers: set[str]
) -> None:
    refused = await service.dashboard.put("/setup", json=body)
    assert refused.status_code == 422, refused.text
    assert {each["pointer"] for each in refused.json()["errors"]} == pointers
    assert (await service.dashboard.get("/setup")).json()["hidden"] is False
