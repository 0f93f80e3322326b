"""Saved views: their readers and editors, their filters, counts, order and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from deskwire.http.resources.conversations import saved_views
from tests.support.api.agent_stream import page
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of, person
from tests.support.stores import beside


async def make(http: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """Create a view; return it."""
    answer = await http.post("/views", json={"name": "Open", "filter": {"status": "OPEN"}, **fields})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def names(http: httpx.AsyncClient, headers: Mapping[str, str] | None = None) -> list[str]:
    """Return the names of the views that a user sees."""
    answer = await http.get("/views", headers=headers)
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()["items"]]


async def problems(http: httpx.AsyncClient, path: str = "/views", **fields: Any) -> list[tuple[str, str]]:
    """Return the places and codes of the problems with which a view is refused."""
    body = {"name": "Open", "filter": {"status": "OPEN"}, **fields}
    answer = await http.post(path, json=body)
    assert answer.status_code == 422, answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


async def test_view_is_created_listed_changed_and_deleted(service: Service) -> None:
    made = await make(service.dashboard, name="Returns", filter={"tag": "returns", "waitingFor": "4h"})
    assert made["visibility"] == "me"
    assert made["filter"] == {"tag": "returns", "waitingFor": "4h"}
    path = f"/views/{made['id']}"
    answer = await service.dashboard.patch(path, json={"name": "Late returns", "filter": {"tag": "late"}})
    assert (answer.json()["name"], answer.json()["filter"]) == ("Late returns", {"tag": "late"})
    assert (await service.dashboard.get(path)).json() == answer.json()
    assert (await service.dashboard.delete(path)).json() == {"id": made["id"], "deleted": True}
    assert (await service.dashboard.get(path)).status_code == 404
    assert await names(service.dashboard) == []


async def test_wrong_filter_is_refused_with_every_problem(service: Service) -> None:
    wrong = {"status": "open", "assignee": "usr_0", "q": "Ada", "color": "red", "limit": "5"}
    found = await problems(service.dashboard, filter=wrong)
    places = {place for place, _ in found}
    assert {"/filter/status", "/filter/q", "/filter/color", "/filter/limit"} <= places
    assert await problems(service.dashboard, filter={"assignee": "usr_0"}) == [
        ("/filter/assignee", "unknown")
    ]
    assert await problems(service.dashboard, visibility="team", teamId="team_0") == [("/teamId", "unknown")]


async def test_own_views_are_seen_by_their_user_alone(service: Service) -> None:
    await make(service.dashboard, name="Mine alone")
    await make(service.dashboard, name="For all", visibility="project")
    project = {"project": service.demo["projectId"]}
    async with person(service, "agent") as other:
        assert await names(other.http, project) == ["For all"]
        shared = (await other.http.get("/views", headers=project)).json()["items"][0]["id"]
        answer = await other.http.patch(f"/views/{shared}", json={"name": "X"}, headers=project)
        assert answer.status_code == 403, answer.text
        body = {"name": "Y", "filter": {}, "visibility": "project"}
        answer = await other.http.post("/views", json=body, headers=project)
        assert answer.status_code == 403, answer.text
    assert await names(service.dashboard) == ["Mine alone", "For all"]


async def test_members_of_a_team_share_its_views_until_the_team_is_deleted(service: Service) -> None:
    project = {"project": service.demo["projectId"]}
    async with person(service, "agent") as other:
        user = (await other.http.get("/users/me")).json()["id"]
        body = {"name": "Returns", "members": [user]}
        team = (await service.dashboard.post("/teams", json=body)).json()["id"]
        fields = {"name": "Of the team", "filter": {"team": team}, "visibility": "team", "teamId": team}
        answer = await other.http.post("/views", json=fields, headers=project)
        assert answer.status_code == 200, answer.text
        assert await names(other.http, project) == ["Of the team"]
        assert await names(service.dashboard) == []
        path = f"/views/{answer.json()['id']}"
        answer = await service.dashboard.patch(path, json={"name": "Renamed"})
        assert answer.status_code == 200, answer.text
        await service.dashboard.delete(f"/teams/{team}")
        assert await names(other.http, project) == []


async def test_views_move_behind_each_other(service: Service) -> None:
    one, two, three = [await make(service.dashboard, name=name) for name in ("One", "Two", "Three")]
    path = f"/views/{three['id']}"
    assert (await service.dashboard.patch(path, json={"after": one["id"]})).status_code == 200
    assert await names(service.dashboard) == ["One", "Three", "Two"]
    await service.dashboard.patch(f"/views/{two['id']}", json={"after": None})
    assert await names(service.dashboard) == ["Two", "One", "Three"]
    shared = await make(service.dashboard, visibility="project")
    answer = await service.dashboard.patch(path, json={"after": shared["id"]})
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/after"]
    answer = await service.dashboard.patch(path, json={"after": three["id"]})
    assert answer.status_code == 422


async def test_counts_are_bounded_and_say_whether_there_are_more(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await service.create(user=f"u{number}")
    await make(service.dashboard, filter={"sort": "waiting"})
    await make(service.dashboard, filter={"status": "OPEN,PENDING"})
    monkeypatch.setattr(saved_views, "COUNT_MAX", 2)

    async def counts() -> list[Any]:
        items = (await service.dashboard.get("/views", params={"counts": "true"})).json()["items"]
        return [each["count"] for each in items]

    assert await counts() == [{"value": 0, "more": False}, {"value": 2, "more": True}]
    monkeypatch.setattr(saved_views, "COUNT_MAX", 100)
    assert (await counts())[1] == {"value": 3, "more": False}


async def test_counts_of_a_list_share_the_rows_that_they_examine(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await service.create(user=f"u{number}")
    unrated = {"rated": "false"}
    for view in ({"status": "OPEN"}, unrated, unrated, {"status": "PENDING"}, unrated):
        await make(service.dashboard, filter=view)
    monkeypatch.setattr(saved_views, "_EXAMINED_MAX", 10)

    async def counts() -> list[tuple[int, bool]]:
        items = (await service.dashboard.get("/views", params={"counts": "true"})).json()["items"]
        return [(each["count"]["value"], each["count"]["more"]) for each in items]

    assert await counts() == [(3, False), (2, True), (2, True), (0, False), (3, False)]
    monkeypatch.setattr(saved_views, "_EXAMINED_FOR_VIEW_MAX", 1)
    assert await counts() == [(3, False), (1, True), (1, True), (0, False), (1, True)]


async def test_counts_name_no_conversation_twice_and_none_that_the_list_leaves_out(service: Service) -> None:
    first = await service.create(user="u1")
    await service.create(user="u2")
    own = (await service.dashboard.get("/users/me")).json()["id"]
    path = f"/conversations/{first['id']}"
    await service.dashboard.patch(path, json={"tags": ["returns", "vip"]})
    await service.dashboard.post(f"{path}/assign", json={"assignee": {"type": "user", "id": own}})
    for view, expected in (
        ({"tag": "returns,vip"}, 1),
        ({"assignee": f"me,{own}"}, 1),
        ({"sort": "waiting", "waiting": "false"}, 0),
        ({"waiting": "false"}, 2),
    ):
        made = await make(service.dashboard, filter=view)
        shown = (await service.dashboard.get("/conversations", params={**view, "view": "agent"})).json()
        assert len(shown["items"]) == expected
        items = (await service.dashboard.get("/views", params={"counts": "true"})).json()["items"]
        assert items[-1]["count"] == {"value": expected, "more": False}
        await service.dashboard.delete(f"/views/{made['id']}")


async def test_views_have_a_limit(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "OWN_VIEWS_MAX", 1)
    await make(service.dashboard)
    body = {"name": "Open", "filter": {}}
    answer = await service.dashboard.post("/views", json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "view_limit_reached")
    shared = await make(service.dashboard, visibility="project")
    answer = await service.dashboard.patch(f"/views/{shared['id']}", json={"visibility": "me"})
    assert answer.json()["code"] == "view_limit_reached"


async def test_view_for_a_team_needs_its_team(service: Service) -> None:
    assert await problems(service.dashboard, visibility="team") == [("/teamId", "required")]
    made = await make(service.dashboard)
    answer = await service.dashboard.patch(f"/views/{made['id']}", json={"visibility": "team"})
    assert [each["code"] for each in answer.json()["errors"]] == ["required"]
    team = (await service.dashboard.post("/teams", json={"name": "Returns"})).json()["id"]
    assert await problems(service.dashboard, teamId=team) == [("/teamId", "not_for_team")]


async def test_all_problems_of_a_view_are_named_at_once(service: Service) -> None:
    refused = await problems(service.dashboard, visibility="team", filter={"q": "a", "colour": "red"})
    assert set(refused) == {
        ("/filter/q", "personal_data"),
        ("/filter/colour", "unknown_parameter"),
        ("/teamId", "required"),
    }


async def test_view_with_a_new_visibility_comes_last(service: Service) -> None:
    for name in ("Shared one", "Shared two"):
        await make(service.dashboard, name=name, visibility="project")
    own = await make(service.dashboard, name="Own")
    await service.dashboard.patch(f"/views/{own['id']}", json={"visibility": "project"})
    assert await names(service.dashboard) == ["Shared one", "Shared two", "Own"]


async def test_leaving_a_team_and_removal_end_the_views_of_a_member(service: Service) -> None:
    project = {"project": service.demo["projectId"]}
    async with person(service, "agent") as other:
        team = (
            await service.dashboard.post("/teams", json={"name": "Returns", "members": [other.id]})
        ).json()
        fields = {"name": "Of the team", "filter": {}, "visibility": "team", "teamId": team["id"]}
        shared = (await other.http.post("/views", json=fields, headers=project)).json()["id"]
        own = await other.http.post("/views", json={"name": "Own", "filter": {}}, headers=project)
        assert own.status_code == 200, own.text
        assert await names(other.http, project) == ["Own", "Of the team"]
        await service.dashboard.patch(f"/teams/{team['id']}", json={"members": []})
        assert await names(other.http, project) == ["Own"]
        answer = await other.http.patch(f"/views/{shared}", json={"name": "X"}, headers=project)
        assert answer.status_code == 404, answer.text
        members = f"/organisations/{await organisation_of(service)}/members"
        assert (await service.dashboard.delete(f"{members}/{other.id}")).status_code == 200
        assert (await other.http.get("/views", headers=project)).status_code in (401, 403, 404)
    left = (await service.dashboard.get(f"/views/{shared}")).json()
    assert (left["name"], left["teamId"]) == ("Of the team", team["id"]), "a shared view stays"
    with beside(service.directory) as connection:
        assert connection.execute("SELECT name FROM saved_views").fetchall() == [("Of the team",)]


async def test_every_change_of_a_view_reaches_agents_streams(service: Service) -> None:
    async with page(service.dashboard) as desk:
        made = await make(service.dashboard)
        path = f"/views/{made['id']}"
        await service.dashboard.patch(path, json={"name": "Renamed"})
        await service.dashboard.patch(path, json={"name": "Renamed"})
        await service.dashboard.delete(path)
        await service.create()
        found = [await desk.event() for _ in range(4)]
    settings = {"what": "views", "id": made["id"]}
    assert [each["data"] for each in found[:3]] == [settings] * 3
    assert found[3]["type"] == "conversation.created", "an equal change is no event"


async def test_view_that_names_a_deleted_team_has_no_count(service: Service) -> None:
    team = (await service.dashboard.post("/teams", json={"name": "Returns"})).json()["id"]
    await make(service.dashboard, filter={"assignee": team})
    await service.dashboard.delete(f"/teams/{team}")
    (item,) = (await service.dashboard.get("/views", params={"counts": "true"})).json()["items"]
    assert "count" not in item
