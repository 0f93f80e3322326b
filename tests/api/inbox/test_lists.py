"""Lists of conversations as agents filter and sort them over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.api.service import Service
from tests.support.api.staff import person


async def page(service: Service, **params: str) -> dict[str, Any]:
    """Return a page of a list."""
    answer = await service.dashboard.get("/conversations", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def listed(service: Service, **params: str) -> list[str]:
    """Return the ids in a list."""
    return [item["id"] for item in (await page(service, **params))["items"]]


async def refused(service: Service, **params: str) -> list[tuple[str, str]]:
    """Return the places and codes of the problems with which a list is refused."""
    answer = await service.dashboard.get("/conversations", params=params)
    assert answer.status_code == 400, answer.text
    return [(error["pointer"], error["code"]) for error in answer.json()["errors"]]


async def me(service: Service) -> str:
    """Return the id of the demo's owner."""
    return str((await service.dashboard.get("/users/me")).json()["id"])


async def change(service: Service, conversation: dict[str, Any], **fields: Any) -> None:
    """Change a conversation as the demo's owner."""
    answer = await service.dashboard.patch(f"/conversations/{conversation['id']}", json=fields)
    assert answer.status_code == 200, answer.text


async def test_several_statuses_show_the_conversations_of_each(service: Service) -> None:
    opened, pending, closed = [await service.create(user=f"u{number}") for number in range(3)]
    await change(service, pending, status="PENDING")
    await service.do(closed, "close")
    assert await listed(service, status="OPEN,PENDING") == [pending["id"], opened["id"]]
    assert await listed(service, status="CLOSED,OPEN") == [closed["id"], opened["id"]]
    assert await listed(service, status="PENDING") == [pending["id"]]


async def test_conversations_are_listed_by_assignee(service: Service) -> None:
    mine, teams, nobodys = [await service.create(user=f"u{number}") for number in range(3)]
    team = (await service.dashboard.post("/teams", json={"name": "Returns"})).json()["id"]
    own = await me(service)
    await service.do(mine, "assign", assignee={"type": "user", "id": own})
    await service.do(teams, "assign", assignee={"type": "team", "id": team})
    for view in ({}, {"view": "agent"}):
        assert await listed(service, assignee="me", **view) == [mine["id"]]
        assert await listed(service, assignee=own, **view) == [mine["id"]]
        assert await listed(service, assignee="none", **view) == [nobodys["id"]]
        assert await listed(service, assignee=team, **view) == [teams["id"]]
        assert await listed(service, team=team, **view) == [teams["id"]]
    async with person(service, "agent") as other:
        answer = await other.http.get(
            "/conversations", params={"assignee": "me"}, headers={"project": service.demo["projectId"]}
        )
    assert answer.json()["items"] == []


async def test_conversations_are_listed_by_one_tag_or_any_of_several(service: Service) -> None:
    both, one, none = [await service.create(user=f"u{number}") for number in range(3)]
    await change(service, both, tags=["vip", "returns"])
    await change(service, one, tags=["returns"])
    assert await listed(service, tag="returns") == [one["id"], both["id"]]
    assert await listed(service, tag=" VIP") == [both["id"]]
    assert await listed(service, tag="vip,returns") == [one["id"], both["id"]]
    assert await listed(service, tag="other") == []
    assert none["id"] in await listed(service)


async def test_archived_and_snoozed_conversations_leave_the_agents_work_lists(
    service: Service,
) -> None:
    """Snoozed ones stay in the list of all; both are found by their state, their contact and a text."""
    awake, snoozed, archived = [await service.create(user="u1", title="Order") for _ in range(3)]
    await change(service, snoozed, snoozedUntil="2027-01-01T00:00:00Z")
    await change(service, archived, archived=True)
    ids = [each["id"] for each in (archived, snoozed, awake)]
    assert await listed(service) == ids
    assert await listed(service, assignee="none") == ids
    view = {"view": "agent"}
    assert await listed(service, **view) == ids[1:]
    assert await listed(service, assignee="none", **view) == ids[2:]
    assert await listed(service, snoozed="true", **view) == [snoozed["id"]]
    assert await listed(service, snoozed="false", **view) == [awake["id"]]
    assert await listed(service, archived="true", **view) == [archived["id"]]
    assert await listed(service, contact="u1", **view) == ids
    assert await listed(service, q="order", **view) == ids


async def test_waiting_conversations_are_listed_longest_wait_first(service: Service) -> None:
    first = await service.create(user="u1", message={"text": "Hello"})
    answered = await service.create(user="u2", message={"text": "Hello"})
    second = await service.create(user="u3", message={"text": "Hello"})
    reply = {"text": "Hi", "author": {"type": "agent"}}
    await service.http.post(f"/s2s/conversations/{answered['id']}/messages", json=reply)
    await service.say(first, "Still there?")
    assert await listed(service, sort="waiting") == [first["id"], second["id"]]
    assert await listed(service, sort="waiting", order="asc") == [second["id"], first["id"]]
    assert await listed(service, waiting="true") == [first["id"], second["id"]]
    assert await listed(service, waiting="false") == [answered["id"]]
    assert await listed(service, sort="created") == [second["id"], answered["id"], first["id"]]


async def test_conversations_are_listed_by_the_time_of_their_activity(service: Service) -> None:
    """`since` is included and `until` is excluded."""
    first, second, third = [await service.create(user=f"u{number}") for number in range(3)]
    at = {each["id"]: each["createdAt"] for each in (first, second, third)}
    newer = [each for each in (third["id"], second["id"], first["id"]) if at[each] >= at[second["id"]]]
    assert await listed(service, since=at[second["id"]]) == newer
    older = [each for each in (third["id"], second["id"], first["id"]) if at[each] < at[second["id"]]]
    assert await listed(service, until=at[second["id"]]) == older


async def test_hidden_conversations_are_listed_by_their_visibility(service: Service) -> None:
    shown = await service.create(user="u1")
    hidden = await service.create(user="u2", visible=False)
    assert await listed(service, visible="false") == [hidden["id"]]
    assert await listed(service, visible="true") == [shown["id"]]


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({"status": "OPEN,OLD"}, ("/status", "not_allowed")),
        ({"status": ""}, ("/status", "not_allowed")),
        ({"status": "OPEN,OPEN"}, ("/status", "duplicate")),
        ({"tag": "a,,b"}, ("/tag", "invalid")),
        ({"tag": "a,A"}, ("/tag", "duplicate")),
        ({"tag": ",".join(f"t{number}" for number in range(11))}, ("/tag", "too_many")),
        ({"unread": "1"}, ("/unread", "invalid")),
        ({"since": "yesterday"}, ("/since", "invalid")),
        ({"since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:00:00Z"}, ("/until", "invalid")),
        ({"assignee": "me", "team": "team_1"}, ("/team", "invalid")),
        ({"sort": "name"}, ("/sort", "not_allowed")),
        ({"order": "up"}, ("/order", "not_allowed")),
        ({"teams": "team_1"}, ("/teams", "unknown_parameter")),
    ],
)
async def test_a_filter_that_means_nothing_is_refused_by_its_name(
    service: Service, params: dict[str, str], where: tuple[str, str]
) -> None:
    assert await refused(service, **params) == [where]


async def test_everything_that_is_wrong_with_a_list_is_named_at_once(service: Service) -> None:
    wrong = {"status": "OLD", "sort": "name", "snoozed": "maybe", "cursor": "x"}
    assert {pointer for pointer, _ in await refused(service, **wrong)} == {f"/{name}" for name in wrong}


async def test_a_cursor_is_good_for_its_own_list_alone(service: Service) -> None:
    for number in range(3):
        await service.create(user=f"u{number}", message={"text": "Hello"})
    cursor = (await page(service, limit="1", status="OPEN", sort="waiting"))["nextCursor"]
    own = {"status": "OPEN", "sort": "waiting", "cursor": cursor}
    assert len(await listed(service, **own)) == 2
    assert len(await listed(service, **own, limit="1")) == 1
    for other in ({"sort": "activity"}, {"order": "asc"}, {"status": "OPEN,PENDING"}, {"view": "agent"}):
        assert await refused(service, **(own | other)) == [("/cursor", "bad_cursor")]
    assert await refused(service, cursor=cursor) == [("/cursor", "bad_cursor")]


async def test_list_that_changes_while_paged_shows_unmoved_items_once(service: Service) -> None:
    """No item is shown twice, but a conversation that moves to the front between two pages may be missed."""
    made = [(await service.create(user=f"u{number}"))["id"] for number in range(9)]
    moved = {made[1], made[7]}
    found: list[str] = []
    cursor = ""
    while True:
        answer = await page(service, view="agent", limit="2", cursor=cursor)
        found += [item["id"] for item in answer["items"]]
        if len(found) == 4:
            for each in moved:
                await service.say({"id": each}, "Again")
            await service.create(user="new")
        if answer["nextCursor"] is None:
            break
        cursor = answer["nextCursor"]
    assert len(found) == len(set(found))
    assert set(made) - moved <= set(found)


@pytest.mark.parametrize("role", ["viewer", "agent", "admin", "owner"])
async def test_every_role_may_filter_and_count(service: Service, role: str) -> None:
    async with person(service, role) as someone:
        made = await service.create(message={"text": "Hello"})
        someone.http.headers["project"] = service.demo["projectId"]
        found = await someone.http.get("/conversations", params={"view": "agent", "unread": "true"})
        counted = await someone.http.get("/inbox/counters")
    assert [item["id"] for item in found.json()["items"]] == [made["id"]]
    assert (counted.status_code, counted.json()["open"]) == (200, 1)


async def test_another_project_has_lists_of_its_own(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    await change(service, made, tags=["vip"])
    organisation = (await service.dashboard.get("/organisations")).json()["items"][0]["id"]
    new: httpx.Response = await service.dashboard.post(
        f"/organisations/{organisation}/projects", json={"name": "Other"}
    )
    headers = {"project": new.json()["id"]}
    for params in ({}, {"tag": "vip"}, {"assignee": "none"}, {"sort": "waiting"}, {"unread": "true"}):
        answer = await service.dashboard.get("/conversations", params=params, headers=headers)
        assert (answer.status_code, answer.json()["items"]) == (200, []), params
    counted = (await service.dashboard.get("/inbox/counters", headers=headers)).json()
    assert [value for name, value in counted.items() if name not in ("bound", "asOf")] == [0] * 10 + [{}]
    for path in ("context", "messages"):
        answer = await service.dashboard.get(f"/conversations/{made['id']}/{path}", headers=headers)
        assert answer.status_code == 404
    path = f"/conversations/{made['id']}/seen"
    assert (await service.dashboard.put(path, json={"index": 0}, headers=headers)).status_code == 404
