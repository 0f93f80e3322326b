"""Snippets through the wire (ADR 19)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.snippets import snippet as engine
from deskwire.http.resources import snippets as resource
from tests.support.api.service import Service
from tests.support.api.staff import code, organisation_of, person

UNKNOWN = "snp_00000000000000000000000000"
HELLO = {"shortcut": "hi", "title": "Hello", "text": "Hello {contact.name}, it is {agent.name}."}


async def made(http: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """Make a snippet; returns it."""
    answer = await http.post("/snippets", json={**HELLO, **fields})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def team(service: Service, *members: str) -> str:
    """Make a team of these users; its id."""
    answer = await service.dashboard.post("/teams", json={"name": f"T{len(members)}", "members": members})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def test_a_snippet_is_made_read_changed_and_deleted(service: Service) -> None:
    me = (await service.dashboard.get("/users/me")).json()
    hello = await made(service.dashboard, language="pt-br")
    assert hello == {
        **HELLO,
        "id": hello["id"],
        "language": "pt-BR",
        "teamId": None,
        "createdBy": {"id": me["id"], "name": me["name"]},
        "createdAt": hello["createdAt"],
        "updatedAt": hello["createdAt"],
    }
    path = f"/snippets/{hello['id']}"
    assert (await service.dashboard.get(path)).json() == hello
    changes = {"shortcut": "hello", "text": "Hi!", "language": None}
    changed = (await service.dashboard.patch(path, json=changes)).json()
    assert changed == {**hello, **changes, "updatedAt": changed["updatedAt"]}
    assert (await service.dashboard.patch(path, json={"shortcut": "hello"})).json() == changed
    assert (await service.dashboard.delete(path)).json() == {"id": hello["id"], "deleted": True}
    assert code(await service.dashboard.get(path)) == (404, "snippet_not_found")
    assert (await made(service.dashboard, shortcut="hello"))["id"] != hello["id"]


async def test_snippets_are_listed_newest_first_by_pages(service: Service) -> None:
    all_of_them = [await made(service.dashboard, shortcut=f"s{number}") for number in range(5)]
    listed, cursor = [], ""
    while cursor is not None:
        params = {"limit": "2", "cursor": cursor}
        page = (await service.dashboard.get("/snippets", params=params)).json()
        listed += page["items"]
        cursor = page["nextCursor"]
    assert listed == all_of_them[::-1]


async def test_only_one_of_concurrent_requests_gets_a_shortcut(service: Service) -> None:
    other = await made(service.dashboard, shortcut="other")
    answers = []

    async def take(number: int) -> None:
        if number % 2:
            answer = await service.dashboard.post("/snippets", json=HELLO)
        else:
            answer = await service.dashboard.patch(f"/snippets/{other['id']}", json={"shortcut": "hi"})
        answers.append((answer.status_code, answer.json().get("code")))

    async with trio.open_nursery() as nursery:
        for number in (1, 3, 5, 7, 2):
            nursery.start_soon(take, number)
    assert sorted(answers, key=str) == [(200, None), *[(409, "snippet_shortcut_taken")] * 4]
    listed = (await service.dashboard.get("/snippets")).json()["items"]
    assert [each["shortcut"] for each in listed].count("hi") == 1


async def test_a_shortcut_is_free_in_another_project(service: Service) -> None:
    hello = await made(service.dashboard)
    path = f"/organisations/{await organisation_of(service)}/projects"
    other = {"project": (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]}
    there = await service.dashboard.post("/snippets", json=HELLO, headers=other)
    assert there.status_code == 200
    assert (await service.dashboard.get("/snippets", headers=other)).json()["items"] == [there.json()]
    one = f"/snippets/{hello['id']}"
    for answer in (
        await service.dashboard.get(one, headers=other),
        await service.dashboard.patch(one, json={"title": "x"}, headers=other),
        await service.dashboard.delete(one, headers=other),
    ):
        assert code(answer) == (404, "snippet_not_found")
    foreign = await service.dashboard.patch(
        f"/snippets/{there.json()['id']}", json={"teamId": await team(service)}, headers=other
    )
    assert (foreign.status_code, foreign.json()["errors"][0]["code"]) == (422, "unknown")


async def test_agents_change_their_own_and_their_teams_and_admins_all(service: Service) -> None:
    of_owner = await made(service.dashboard)
    async with person(service, "agent") as agent, person(service, "admin") as admin:
        for one in (agent, admin):
            one.http.headers["project"] = service.demo["projectId"]
        mine, others = await team(service, agent.id), await team(service)
        own = await made(agent.http, shortcut="own")
        assert own["createdBy"]["id"] == agent.id
        assert (await agent.http.patch(f"/snippets/{own['id']}", json={"title": "x"})).status_code == 200
        path = f"/snippets/{of_owner['id']}"
        assert code(await agent.http.patch(path, json={"title": "x"})) == (403, "permission_denied")
        assert code(await agent.http.delete(path)) == (403, "permission_denied")
        for fields in ({"teamId": others}, {"teamId": others, "shortcut": "hi"}):
            refused = await agent.http.post("/snippets", json={**HELLO, "shortcut": "t", **fields})
            assert code(refused) == (403, "permission_denied")
        moved = await agent.http.patch(f"/snippets/{own['id']}", json={"teamId": others})
        assert code(moved) == (403, "permission_denied")
        assert (await service.dashboard.patch(path, json={"teamId": mine})).json()["teamId"] == mine
        assert (await agent.http.patch(path, json={"title": "ours"})).json()["title"] == "ours"
        assert (await agent.http.patch(path, json={"teamId": None})).json()["teamId"] is None
        assert code(await agent.http.patch(path, json={"title": "x"})) == (403, "permission_denied")
        assert (await admin.http.patch(f"/snippets/{own['id']}", json={"teamId": others})).status_code == 200
        assert (await admin.http.delete(f"/snippets/{own['id']}")).status_code == 200


async def test_a_viewer_reads_snippets_and_changes_none(service: Service) -> None:
    hello = await made(service.dashboard)
    path = f"/snippets/{hello['id']}"
    async with person(service, "viewer") as viewer:
        viewer.http.headers["project"] = service.demo["projectId"]
        assert (await viewer.http.get("/snippets")).json()["items"] == [hello]
        assert (await viewer.http.get(path)).json() == hello
        for answer in (
            await viewer.http.post("/snippets", json={**HELLO, "shortcut": "x"}),
            await viewer.http.patch(path, json={"title": "x"}),
            await viewer.http.delete(path),
        ):
            assert code(answer) == (403, "permission_denied")
            assert "snippets.manage" in answer.json()["detail"]


async def test_snippets_of_a_deleted_team_stay(service: Service) -> None:
    of_team = await team(service)
    hello = await made(service.dashboard, teamId=of_team)
    assert (await service.dashboard.delete(f"/teams/{of_team}")).status_code == 200
    path = f"/snippets/{hello['id']}"
    assert (await service.dashboard.get(path)).json() == {**hello, "teamId": None}


async def test_everything_wrong_with_a_snippet_is_named(service: Service) -> None:
    body = {
        "shortcut": "Late Parcel",
        "title": "",
        "text": "Hi {contact.nmae}",
        "language": "english!",
        "teamId": "team_x",
        "colour": "red",
    }
    wrong = await service.dashboard.post("/snippets", json=body)
    assert wrong.status_code == 422
    found = {problem["pointer"]: problem for problem in wrong.json()["errors"]}
    assert found.keys() == {f"/{name}" for name in body}
    said = found["/text"]["message"]
    assert said == "There is no placeholder {contact.nmae}. There are: {contact.name}, {agent.name}."
    for shortcut in ("", "x" * 41, "grüße", "a/b", "a\n"):
        refused = await service.dashboard.post("/snippets", json={**HELLO, "shortcut": shortcut})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/shortcut")
    refused = await service.dashboard.post("/snippets", json={**HELLO, "text": "x" * 20_001})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "too_long")
    assert (await made(service.dashboard, text="x" * 20_000, shortcut="x" * 40))["teamId"] is None
    hello = await made(service.dashboard)
    path = f"/snippets/{hello['id']}"
    assert code(await service.dashboard.patch(path, json={})) == (422, "invalid_input")
    nulls = dict.fromkeys(("shortcut", "title", "text"))
    refused = await service.dashboard.patch(path, json={**nulls, "language": None})
    assert {problem["pointer"] for problem in refused.json()["errors"]} == {f"/{name}" for name in nulls}
    listed = await service.dashboard.get("/snippets", params={"q": "x", "limit": "201"})
    assert {problem["pointer"] for problem in listed.json()["errors"]} == {"/q", "/limit"}


@pytest.mark.parametrize("identifier", [UNKNOWN, "hi", "snp_"])
async def test_an_unknown_snippet_is_not_found(service: Service, identifier: str) -> None:
    await made(service.dashboard)
    for method, body in (("GET", None), ("PATCH", {"title": "x"}), ("DELETE", None)):
        answer = await service.dashboard.request(method, f"/snippets/{identifier}", json=body)
        assert code(answer) == (404, "snippet_not_found")


async def test_a_project_has_a_bounded_number_of_snippets(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine.SNIPPETS_MAX == 1_000
    monkeypatch.setattr(resource, "SNIPPETS_MAX", 2)
    for number in range(2):
        await made(service.dashboard, shortcut=f"s{number}")
    refused = await service.dashboard.post("/snippets", json=HELLO)
    assert code(refused) == (409, "snippet_limit_reached")
