"""Lists of conversations for a backend: filters, orders, and pages by change that miss nothing."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api.service import Service
from tests.support.api.staff import hire, organisation_of


async def listed(service: Service, **params: Any) -> list[dict[str, Any]]:
    """The conversations of a list that has one page."""
    answer = await service.http.get("/s2s/conversations", params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def titles(service: Service, **params: Any) -> list[str]:
    """The titles in a list."""
    return [each["title"] for each in await listed(service, **params)]


async def pages(service: Service, **params: Any) -> AsyncIterator[dict[str, Any]]:
    """All pages of a list."""
    cursor = None
    while True:
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        answer = await service.http.get("/s2s/conversations", params={**params, **more})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        yield page
        cursor = page["nextCursor"]
        if cursor is None:
            return


async def refused(service: Service, **params: Any) -> list[tuple[str, str]]:
    """The problems for which a list is refused."""
    answer = await service.http.get("/s2s/conversations", params=params)
    assert answer.status_code == 400, answer.text
    return [(problem["pointer"], problem["code"]) for problem in answer.json()["errors"]]


async def test_an_item_is_the_very_object_that_a_get_shows(service: Service) -> None:
    made = await service.create(title="A", attributes={"plan": "gold"}, message={"text": "hi"})
    assert await listed(service) == [await service.fetch(made)]
    (item,) = await listed(service, include="tags")
    assert item == {**await service.fetch(made), "tags": []}


async def test_tags_are_shown_only_where_they_are_asked_for(service: Service) -> None:
    made = await service.create(title="A")
    await service.create(title="B")
    path = f"/conversations/{made['id']}"
    assert (await service.dashboard.patch(path, json={"tags": ["vip"]})).status_code == 200
    assert await titles(service, tag="vip,other") == ["A"]
    shown = await service.http.get(f"/s2s{path}", params={"include": "tags"})
    assert shown.json() == {**await service.fetch(made), "tags": ["vip"]}
    assert "tags" not in await service.fetch(made)


async def test_list_is_filtered_by_fields_of_the_object(service: Service) -> None:
    a = await service.create("u1", title="A", attributes={"plan": "gold", "seats": 3, "paid": True})
    b = await service.create("u2", title="B", attributes={"plan": "gold, rest", "seats": "3"})
    await service.create("u1", title="C", message={"text": "hi", "author": {"type": "bot"}})
    await service.do(a, "close")
    await service.do(b, "rating", rating=6)
    await service.http.patch(f"/s2s/conversations/{b['id']}", json={"archived": True})
    assert await titles(service, sort="created", order="asc") == ["A", "B", "C"]
    assert await titles(service, status="CLOSED") == ["A"]
    assert await titles(service, status="OPEN,CLOSED", archived="false", sort="created") == ["C", "A"]
    assert await titles(service, archived="true") == ["B"]
    assert await titles(service, contact="u1", sort="created") == ["C", "A"]
    assert await titles(service, contact=b["contact"]["id"]) == ["B"]
    assert await titles(service, unread="true") == ["C"]
    assert await titles(service, rated="true") == await titles(service, rating="0..6") == ["B"]
    assert await titles(service, rating="7..10") == await titles(service, rating="5") == []
    assert await titles(service, attribute="plan:gold") == ["A"]
    assert await titles(service, attribute='plan:"gold, rest"') == ["B"]
    assert await titles(service, attribute="seats:3", sort="created") == ["B", "A"]
    assert await titles(service, attribute='seats:"3"') == ["B"]
    assert await titles(service, attribute="seats:3,paid:true") == ["A"]
    assert await titles(service, attribute="paid:1") == []
    assert await titles(service, q="u2") == ["B"]


async def test_list_is_filtered_by_assignee(service: Service) -> None:
    agent = await hire(service, "agent")
    made = await service.create(title="A")
    await service.create(title="B")
    await service.do(made, "assign", assignee={"type": "user", "id": agent["id"]})
    team = (await service.dashboard.post("/teams", json={"name": "Two"})).json()["id"]
    assert await titles(service, assignee=agent["id"]) == ["A"]
    assert await titles(service, assignee="none") == ["B"]
    assert await titles(service, team=team) == []
    await service.do(made, "assign", assignee={"type": "team", "id": team})
    assert await titles(service, team=team) == await titles(service, assignee=team) == ["A"]


async def test_unknown_contact_and_assignee_are_refused_by_name(service: Service) -> None:
    await service.create("u1")
    assert await refused(service, contact="nobody") == [("/contact", "unknown")]
    assert await refused(service, assignee="me") == [("/assignee", "unknown")]
    assert await refused(service, team="none") == [("/team", "unknown")]
    both = await refused(service, contact="con_00000000000000000000000000", assignee="usr_0")
    assert both == [("/contact", "unknown"), ("/assignee", "unknown")]


async def test_conversations_of_a_former_member_are_still_found(service: Service) -> None:
    agent = await hire(service, "agent")
    made = await service.create(title="A")
    await service.do(made, "assign", assignee={"type": "user", "id": agent["id"]})
    path = f"/organisations/{await organisation_of(service)}/members/{agent['id']}"
    assert (await service.dashboard.delete(path)).status_code == 200
    assert await titles(service, assignee=agent["id"]) == ["A"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rating", "11"),
        ("rating", "6..0"),
        ("rating", "bad"),
        ("attribute", "plan"),
        ("attribute", "plan:gold,"),
        ("attribute", 'plan:"gold'),
        ("attribute", 'plan:"\\x"'),
        ("attribute", 'plan:"\\u0000"'),
        ("attribute", ",".join(f"a{n}:1" for n in range(6))),
        ("unread", "yes"),
        ("sort", "waiting"),
        ("include", "notes"),
        ("updatedSince", "yesterday"),
        ("cursor", "WzFd"),
        ("snoozed", "true"),
    ],
)
async def test_invalid_list_parameters_are_refused(service: Service, name: str, value: str) -> None:
    assert [pointer for pointer, _ in await refused(service, **{name: value})] == [f"/{name}"]


async def test_hidden_conversations_are_listed_only_when_asked_for(service: Service) -> None:
    await service.create(title="shown")
    await service.create(title="hidden", visible=False)
    for sort in ("updated", "activity", "created"):
        assert await titles(service, sort=sort) == ["shown"]
        assert await titles(service, sort=sort, visible="false") == ["hidden"]


async def test_a_note_is_not_found_by_its_text(service: Service) -> None:
    made = await service.create(message={"text": "a green parcel"})
    note = {"text": "the purple truth", "internal": True}
    path = f"/conversations/{made['id']}/messages"
    assert (await service.dashboard.post(path, json=note)).status_code == 200
    assert len(await listed(service, q="green")) == 1
    assert await listed(service, q="purple") == []


async def test_a_note_does_not_move_a_conversation_in_the_list_by_change(service: Service) -> None:
    first, second = await service.create(title="A"), await service.create(title="B")
    note = {"text": "psst", "internal": True}
    await service.dashboard.post(f"/conversations/{first['id']}/messages", json=note)
    assert await titles(service, sort="updated") == ["B", "A"]
    await service.do(first, "close")
    assert await titles(service, sort="updated") == ["A", "B"]
    await service.say(second, "more")
    assert await titles(service, sort="updated") == ["B", "A"]


async def test_every_change_that_the_object_shows_is_later_in_the_list_by_change(service: Service) -> None:
    agent = await hire(service, "agent")
    made = await service.create(title="A", message={"text": "1", "author": {"type": "bot"}})
    ticket = {"title": "T", "conversationId": made["id"]}

    async def change(name: str) -> None:
        match name:
            case "read" | "close" | "reopen":
                await service.do(made, name)
            case "rating":
                await service.do(made, name, rating=3)
            case "assign":
                await service.do(made, name, assignee={"type": "user", "id": agent["id"]})
            case "ticket":
                assert (await service.dashboard.post("/tickets", json=ticket)).status_code == 200
            case "message":
                await service.say(made, "more")
            case _:
                fields = {"title": "B", "attributes": {"a": 1}, "status": "PENDING", "archived": True}
                await service.http.patch(f"/s2s/conversations/{made['id']}", json={name: fields[name]})

    changes = ["read", "rating", "assign", "title", "attributes", "status", "ticket", "close"]
    for name in [*changes, "reopen", "archived", "message"]:
        before = await service.fetch(made)
        await change(name)
        after = await service.fetch(made)
        changed = {key for key in after if after[key] != before[key]}
        assert changed - {"sequence", "updatedAt"}, name
        assert after["updatedAt"] >= before["updatedAt"]
        assert await listed(service, updatedSince=after["updatedAt"], sort="updated") == [after]


async def test_each_page_has_the_newest_event_of_the_first_page(service: Service) -> None:
    for number in range(4):
        await service.create(title=str(number))
    newest = (await service.events())[-1]["id"]
    found = []
    async for page in pages(service, sort="updated", order="asc", limit=3):
        found.append((page["asOf"], [each["title"] for each in page["items"]]))
        if page["nextCursor"]:
            await service.create(title="later")
    assert found == [(newest, ["0", "1", "2"]), (newest, ["3", "later"])]
    assert [event["type"] for event in await service.events(after=newest)] == ["conversation.created"]


async def test_list_of_a_project_without_events_returns_the_start_of_the_feed(service: Service) -> None:
    await service.create(visible=False)
    answer = (await service.http.get("/s2s/conversations")).json()
    assert answer["items"] == []
    assert await service.events(after=answer["asOf"]) == []
    made = await service.create()
    (event,) = await service.events(after=answer["asOf"])
    assert event["data"]["conversation"] == made


async def test_a_cursor_is_good_for_its_own_list_alone(service: Service) -> None:
    for _ in range(2):
        await service.create()
    answer = await service.http.get("/s2s/conversations", params={"limit": 1, "sort": "updated"})
    cursor = answer.json()["nextCursor"]
    assert len(await listed(service, limit=1, sort="updated", cursor=cursor)) == 1
    assert await refused(service, cursor=cursor) == [("/cursor", "bad_cursor")]
    assert await refused(service, cursor=cursor, sort="updated", status="OPEN") == [("/cursor", "bad_cursor")]
    assert await refused(service, cursor=cursor[:-4], sort="updated") == [("/cursor", "bad_cursor")]


@pytest.mark.parametrize("seed", range(4))
async def test_pages_by_change_show_newest_states_despite_changes(service: Service, seed: int) -> None:
    rng = random.Random(seed)
    known = [await service.create(f"u{n}", message={"text": "hi"}) for n in range(20)]
    for each in rng.sample(known, 10):
        await service.do(each, "close")
    seen: dict[str, dict[str, Any]] = {}
    turns = 0
    async for page in pages(service, sort="updated", order="asc", limit=3):
        for item in page["items"]:
            assert item["id"] not in seen or item["sequence"] > seen[item["id"]]["sequence"]
            seen[item["id"]] = item
        turns += 1
        is_last = page["nextCursor"] is None
        for each in rng.sample(known, 2) if turns < 15 and not is_last else ():
            await _changed(service, rng, each)
        if turns < 8 and not is_last:
            known.append(await service.create("new"))
    assert seen == {each["id"]: await service.fetch(each) for each in known}


async def _changed(service: Service, rng: random.Random, conversation: dict[str, Any]) -> None:
    match rng.choice(("message", "close", "rate", "title")):
        case "message":
            await service.say(conversation, "more")
        case "close":
            await service.do(conversation, "close")
        case "rate":
            await service.do(conversation, "rating", rating=rng.randint(0, 10))
        case _:
            path = f"/s2s/conversations/{conversation['id']}"
            await service.http.patch(path, json={"title": str(rng.random())})
