"""Lists of tickets through the wire: filters, sorts, search, cursors (decisions 7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.tickets.test_tickets import agent_of, make, patch, team_of
from tests.support.api.service import Service


async def listed(service: Service, **params: str) -> list[str]:
    """The titles that a list shows."""
    answer = await service.dashboard.get("/tickets", params=params)
    assert answer.status_code == 200, answer.text
    return [item["title"] for item in answer.json()["items"]]


async def test_every_filter_narrows_the_list_and_all_work_together(service: Service) -> None:
    agent, team = await agent_of(service), await team_of(service)
    conversation = await service.create(user="u1")
    await make(service, title="a", priority="URGENT", tags=["vip", "late"], description="Parcel for Ångström")
    await make(service, title="b", status="DONE", processingUser=agent["id"], type="bug")
    await make(service, title="c", processingTeam=team, snoozedUntil="2030-01-01T00:00:00Z", tags=["vip"])
    await make(
        service, title="d", conversationId=conversation["id"], description="order A-1001, x@shop.example"
    )
    expected: list[tuple[dict[str, str], list[str]]] = [
        ({}, ["d", "c", "b", "a"]),
        ({"order": "asc"}, ["a", "b", "c", "d"]),
        ({"status": "DONE"}, ["b"]),
        ({"status": "IN_PROGRESS"}, []),
        ({"priority": "URGENT"}, ["a"]),
        ({"assignee": agent["id"]}, ["b"]),
        ({"assignee": team}, ["c"]),
        ({"assignee": "none"}, ["d", "a"]),
        ({"tag": "vip"}, ["c", "a"]),
        ({"tag": "VIP"}, ["c", "a"]),
        ({"type": "bug"}, ["b"]),
        ({"snoozed": "true"}, ["c"]),
        ({"snoozed": "false"}, ["d", "b", "a"]),
        ({"contact": "u1"}, ["d"]),
        ({"contact": conversation["contact"]["id"]}, ["d"]),
        ({"conversation": conversation["id"]}, ["d"]),
        ({"q": "parcel"}, ["a"]),
        ({"q": "PARC angstr"}, ["a"]),
        ({"q": "a-1001"}, ["d"]),
        ({"q": "x@shop.ex"}, ["d"]),
        ({"q": "arcel"}, []),
        ({"q": "!?"}, []),
        ({"tag": "vip", "snoozed": "true", "assignee": team, "status": "OPEN"}, ["c"]),
        ({"tag": "vip", "snoozed": "false", "priority": "URGENT", "q": "parcel"}, ["a"]),
        ({"tag": "vip", "assignee": agent["id"]}, []),
        ({"contact": "u1", "q": "order", "assignee": "none", "type": "bug"}, []),
    ]
    for params, titles in expected:
        assert await listed(service, **params) == titles, params
        for sort in ("updatedAt", "priority", "lastActivity"):
            assert sorted(await listed(service, **{**params, "sort": sort})) == sorted(titles), (params, sort)


async def test_a_list_can_be_sorted_by_each_key_in_both_directions(service: Service) -> None:
    conversation = await service.create(user="u1")
    first = await make(service, title="first", priority="HIGH", conversationId=conversation["id"])
    await make(service, title="second", priority="URGENT")
    third = await make(service, title="third", priority="LOW")
    await patch(service, first, type="t")
    await patch(service, third, type="t")
    await service.say(conversation, "Any news?")
    orders = {
        "createdAt": ["third", "second", "first"],
        "updatedAt": ["third", "first", "second"],
        "priority": ["second", "first", "third"],
        "lastActivity": ["first", "third", "second"],  # a message is activity, but changes no field
    }
    for sort, titles in orders.items():
        assert await listed(service, sort=sort) == titles
        assert await listed(service, sort=sort, order="asc") == titles[::-1]


async def test_pages_of_every_sort_have_each_ticket_once_despite_equal_keys(service: Service) -> None:
    for number in range(9):
        await make(
            service,
            title=str(number),
            priority=("LOW", "HIGH")[number % 2],
            status=("OPEN", "DONE")[number % 3 == 0],
        )
    for sort in ("createdAt", "updatedAt", "priority", "lastActivity"):
        for order in ("asc", "desc"):
            for filters in ({}, {"q": "0 "}, {"status": "OPEN"}):
                params = {**filters, "sort": sort, "order": order}
                assert await paged(service, params) == await listed(service, **params)


async def paged(service: Service, params: dict[str, str]) -> list[str]:
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await service.dashboard.get("/tickets", params={**params, **cursor, "limit": "2"})).json()
        seen += [item["title"] for item in page["items"]]
        if page["nextCursor"] is None:
            return seen
        cursor = {"cursor": page["nextCursor"]}


async def test_a_cursor_of_another_sort_or_of_no_list_is_refused(service: Service) -> None:
    for _ in range(2):
        await make(service)
    cursor = (await service.dashboard.get("/tickets", params={"limit": "1"})).json()["nextCursor"]
    assert len(await listed(service, cursor=cursor)) == 1
    wrong: list[dict[str, Any]] = [
        {"cursor": cursor, "sort": "priority"},
        {"cursor": cursor, "order": "asc"},
        {"cursor": "x"},
        {"cursor": "WzEsMl0"},
        {"cursor": "Wzk5LDEsMV0"},
    ]
    for params in wrong:
        answer = await service.dashboard.get("/tickets", params=params)
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "bad_cursor"), params


@pytest.mark.parametrize(
    "text",
    ['"', '""', "*", "a*", "(", "a AND", "NOT a", "NEAR(a b)", "title:a", "{a}", "^a", "a-b", "'", "-", "+",
     "a OR b", "ﬁ", "🦊", "日本", "\\", "a" * 200, "a " * 100, "𐐷", "%", ":", "project:1"],
)  # fmt: skip
async def test_no_search_text_is_a_syntax_error(service: Service, text: str) -> None:
    await make(service, title="a title")
    assert (await service.dashboard.get("/tickets", params={"q": text})).status_code == 200


async def test_changed_ticket_is_found_only_by_its_new_words(service: Service) -> None:
    ticket = await make(service, title="Umbrella", description="yellow")
    await patch(service, ticket, title="Parasol")
    assert (await listed(service, q="umbrella"), await listed(service, q="yellow para")) == ([], ["Parasol"])
    await patch(service, ticket, description=None)
    assert (await listed(service, q="yellow"), await listed(service, q="parasol")) == ([], ["Parasol"])


@pytest.mark.parametrize(
    "params",
    [
        {"sort": "title"},
        {"order": "up"},
        {"snoozed": "yes"},
        {"status": "open"},
        {"state": "OPEN"},
        {"q": ""},
    ],
)
async def test_parameters_that_are_not_right_are_named(service: Service, params: dict[str, str]) -> None:
    answer = await service.dashboard.get("/tickets", params=params)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")
    assert [each["pointer"] for each in answer.json()["errors"]] == [f"/{name}" for name in params]
