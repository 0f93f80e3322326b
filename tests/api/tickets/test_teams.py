"""Teams over HTTP, and the effect of their deletion on tickets (decisions 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.api.conversations.test_dashboard import member
from tests.api.tickets.test_tickets import agent_of, changes_in, fetch, foreign_ticket, log_of, make, pointers
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S

UNKNOWN = "team_00000000000000000000000000"


async def make_team(service: Service, name: str, **fields: Any) -> dict[str, Any]:
    answer = await service.dashboard.post("/teams", json={"name": name, **fields})
    assert answer.status_code == 200, answer.text
    team: dict[str, Any] = answer.json()
    return team


async def test_a_team_is_made_read_changed_listed_and_deleted(service: Service) -> None:
    agent = await agent_of(service)
    team = await make_team(service, "Returns", members=[agent["id"]])
    assert team.keys() == {"id", "name", "members", "createdAt", "updatedAt"}
    assert team["members"] == [{"id": agent["id"], "name": agent["name"]}]
    path = f"/teams/{team['id']}"
    assert (await service.dashboard.get(path)).json() == team
    renamed = (await service.dashboard.patch(path, json={"name": "returns"})).json()
    assert (renamed["name"], renamed["members"]) == ("returns", team["members"])
    assert (await service.dashboard.patch(path, json={"name": "returns"})).json() == renamed
    emptied = (await service.dashboard.patch(path, json={"members": []})).json()
    assert emptied["members"] == []
    page = (await service.dashboard.get("/teams", params={"limit": "1"})).json()
    assert [each["name"] for each in page["items"]] == ["returns"]
    rest = (await service.dashboard.get("/teams", params={"cursor": page["nextCursor"]})).json()
    assert ([each["name"] for each in rest["items"]], rest["nextCursor"]) == (["Support"], None)
    assert (await service.dashboard.delete(path)).json() == {"id": team["id"], "deleted": True}
    for method in ("GET", "PATCH", "DELETE"):
        body = {"name": "x"} if method == "PATCH" else None
        gone = await service.dashboard.request(method, path, json=body)
        assert (gone.status_code, gone.json()["code"]) == (404, "team_not_found")


async def test_names_are_unique_in_a_project_regardless_of_case(service: Service) -> None:
    team = await make_team(service, "Returns")
    for call in (
        service.dashboard.post("/teams", json={"name": "RETURNS"}),
        service.dashboard.patch(f"/teams/{team['id']}", json={"name": "support"}),
    ):
        answer = await call
        assert (answer.status_code, answer.json()["code"]) == (409, "team_name_taken")
    await service.dashboard.delete(f"/teams/{team['id']}")
    await make_team(service, "Returns")


async def test_every_problem_of_a_team_is_named(service: Service) -> None:
    foreign_ticket(service)  # and a user of another organisation
    agent = await agent_of(service)
    refused = await service.dashboard.post("/teams", json={"name": "", "members": ["a", "a"], "x": 1})
    assert pointers(refused) == {"/name": "too_short", "/members": "duplicate", "/x": "unknown_field"}
    refused = await service.dashboard.post(
        "/teams", json={"name": "T", "members": ["usr_9", agent["id"], "usr_0"]}
    )
    assert (refused.status_code, pointers(refused)) == (
        422,
        {"/members/0": "unknown", "/members/2": "unknown"},
    )
    own = await make_team(service, "T")
    for body, found in (
        ({}, {"": "required"}),
        ({"name": None, "members": None}, {"/name": "not_nullable", "/members": "not_nullable"}),
    ):
        refused = await service.dashboard.patch(f"/teams/{own['id']}", json=body)
        assert (refused.status_code, pointers(refused)) == (422, found)


async def test_a_team_of_another_organisation_looks_like_an_unknown_one(service: Service) -> None:
    foreign_ticket(service)
    for method in ("GET", "PATCH", "DELETE"):
        body = {"name": "x"} if method == "PATCH" else None
        answers = [
            await service.dashboard.request(method, f"/teams/{each}", json=body)
            for each in ("team_9", UNKNOWN)
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert len({str({**answer.json(), "requestId": ""}) for answer in answers}) == 1
    assert [each["name"] for each in (await service.dashboard.get("/teams")).json()["items"]] == ["Support"]
    await make_team(service, "Other")  # the name is taken only in the other organisation


@pytest.mark.parametrize(("role", "manages"), [("viewer", False), ("agent", False), ("admin", True)])
async def test_every_member_reads_teams_and_admins_manage_them(
    service: Service, role: str, manages: bool
) -> None:
    team = await make_team(service, "T")
    headers = {"Authorization": f"Bearer {member(service, role)}"}
    for method, path, body in (
        ("GET", "/teams", None),
        ("GET", f"/teams/{team['id']}", None),
        ("POST", "/teams", {"name": "U"}),
        ("PATCH", f"/teams/{team['id']}", {"name": "V"}),
        ("DELETE", f"/teams/{team['id']}", None),
    ):
        answer = await service.dashboard.request(method, path, json=body, headers=headers)
        if method == "GET" or manages:
            assert answer.status_code == 200, (method, path, answer.text)
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
            assert "members.manage" in answer.json()["detail"]


async def test_deleted_team_loses_its_tickets(service: Service) -> None:
    team = await make_team(service, "Returns")
    ticket = await make(service, processingTeam=team["id"])
    await service.dashboard.delete(f"/teams/{team['id']}")
    refused = await service.dashboard.patch(f"/tickets/{ticket['id']}", json={"processingTeam": team["id"]})
    assert pointers(refused) == {"/processingTeam": "unknown"}
    with trio.fail_after(HANG_TIMEOUT_S):
        while (await fetch(service, ticket))["processingTeam"]:  # noqa: ASYNC110  # removed after the call, without a notification
            await trio.sleep(0.01)  # poll: there is no notification
    (entry, _) = await log_of(service, ticket)
    assert (entry["actor"]["type"], changes_in(entry)) == ("system", {"processingTeam": (team["id"], None)})


async def test_snoozed_ticket_wakes_automatically_even_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        soon, over_the_restart = await make(service), await make(service)
        for ticket, duration in ((soon, 0.05), (over_the_restart, 0.5)):
            body = {"selection": {"ids": [ticket["id"]]}, "payload": {"duration": duration}}
            assert (await service.dashboard.put("/tickets/bulk", json=body)).status_code == 200
        await woken(service, soon)
    async with running(tmp_path) as service:
        await woken(service, over_the_restart)
        (entry, *_) = await log_of(service, over_the_restart)
        assert entry["actor"] == {"type": "system", "id": None, "name": None}


async def woken(service: Service, ticket: dict[str, Any]) -> None:
    """Return once the ticket is awake."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while (await fetch(service, ticket))["snoozedUntil"]:  # noqa: ASYNC110  # the time is the system's
            await trio.sleep(0.01)  # poll: there is no notification


async def test_conversation_is_assigned_to_a_new_team_but_not_a_deleted_one(service: Service) -> None:
    conversation, team = await service.create(), await make_team(service, "Returns")
    assignee = {"type": "team", "id": team["id"]}
    assert (await service.do(conversation, "assign", assignee=assignee))["assignee"]["name"] == "Returns"
    await service.dashboard.delete(f"/teams/{team['id']}")
    path = f"/s2s/conversations/{conversation['id']}/assign"
    refused = await service.http.post(path, json={"assignee": assignee})
    assert (refused.status_code, pointers(refused)) == (422, {"/assignee/id": "unknown"})
    assert (await service.fetch(conversation))["assignee"]["name"] == "Returns"
