"""The filters of agents' lists: tags, times, attributes, tickets and channels, combined, and clear refusals."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from deskwire.http.resources.conversations import lists
from tests.api.inbox.test_lists import change, listed, me, page, refused
from tests.support.api.service import Service


async def _three(service: Service) -> list[dict[str, Any]]:
    return [await service.create(user=f"u{number}") for number in range(3)]


async def test_tags_are_wanted_all_or_not_at_all(service: Service) -> None:
    both, one, none = await _three(service)
    await change(service, both, tags=["vip", "returns"])
    await change(service, one, tags=["returns"])
    assert await listed(service, allTags="vip,Returns") == [both["id"]]
    assert await listed(service, withoutTags="vip") == [none["id"], one["id"]]
    assert await listed(service, tag="returns", withoutTags="vip", view="agent") == [one["id"]]
    assert await listed(service, allTags="vip", withoutTags="vip") == []


async def test_several_assignees_show_the_conversations_of_each(service: Service) -> None:
    mine, teams, nobodys = await _three(service)
    team = (await service.dashboard.post("/teams", json={"name": "Returns"})).json()["id"]
    await service.do(mine, "assign", assignee={"type": "user", "id": await me(service)})
    await service.do(teams, "assign", assignee={"type": "team", "id": team})
    assert await listed(service, assignee=f"me,{team}") == [teams["id"], mine["id"]]
    assert await listed(service, assignee="none,me", sort="created") == [nobodys["id"], mine["id"]]
    problems = await refused(service, assignee="me,usr_0,team_0", contact="nobody")
    assert problems == [("/contact", "unknown"), ("/assignee", "unknown"), ("/assignee", "unknown")]
    assert await refused(service, assignee="me,me") == [("/assignee", "duplicate")]
    assert await refused(service, assignee="me", team=team) == [("/team", "invalid")]


async def test_contacts_attributes_and_tickets_priorities_are_filters(service: Service) -> None:
    gold, plain, urgent = await _three(service)
    path = f"/s2s/contacts/{gold['contact']['userId']}"
    answer = await service.http.patch(path, json={"attributes": {"plan": "gold", "seats": 12}})
    assert answer.status_code == 200, answer.text
    ticket = {"title": "Help", "priority": "URGENT", "conversationId": urgent["id"]}
    answer = await service.dashboard.post("/tickets", json=ticket)
    assert answer.status_code == 200, answer.text
    assert await listed(service, contactAttribute="plan:gold") == [gold["id"]]
    assert await listed(service, contactAttribute="plan:gold,seats:12") == [gold["id"]]
    assert await listed(service, contactAttribute="plan:silver") == []
    assert await listed(service, priority="URGENT,HIGH") == [urgent["id"]]
    assert await listed(service, priority="LOW") == []
    assert await listed(service, channel="none", sort="created", order="asc") == [
        each["id"] for each in (gold, plain, urgent)
    ]


async def test_durations_end_now(service: Service) -> None:
    waiting, quiet, _ = await _three(service)
    await service.say(waiting, "Hello?")
    assert waiting["id"] in await listed(service, activeWithin="1h", createdWithin="2w")
    assert await listed(service, waitingFor="1m") == []
    assert await listed(service, inactiveFor="30m") == []
    now = quiet["createdAt"]
    assert quiet["id"] in await listed(service, createdSince=now)
    assert quiet["id"] not in await listed(service, createdUntil=now)


WRONG: tuple[tuple[dict[str, str], list[str]], ...] = (
    ({"activeWithin": "7 days"}, ["/activeWithin"]),
    ({"activeWithin": "0d"}, ["/activeWithin"]),
    ({"waitingFor": "99999h", "createdWithin": ""}, ["/waitingFor", "/createdWithin"]),
    ({"createdWithin": "7d", "createdSince": "2026-01-01T00:00:00Z"}, ["/createdWithin"]),
    (
        {"createdSince": "2026-01-02T00:00:00Z", "createdUntil": "2026-01-01T00:00:00Z"},
        ["/createdUntil"],
    ),
    ({"waiting": "false", "waitingFor": "4h"}, ["/waitingFor"]),
    ({"rated": "false", "rating": "0..6"}, ["/rating"]),
    ({"rating": "11", "priority": "high", "channel": "chn_1"}, ["/channel", "/priority", "/rating"]),
    ({"contactAttribute": "plan", "attribute": ":x"}, ["/attribute", "/contactAttribute"]),
    ({"allTags": ",".join(f"t{n}" for n in range(11))}, ["/allTags"]),
)


async def test_wrong_filters_are_refused_by_name(service: Service) -> None:
    for params, places in WRONG:
        assert [pointer for pointer, _ in await refused(service, **params)] == places


async def test_list_without_an_index_examines_a_bounded_number_of_conversations(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says where it stopped, and the next one continues there until everything was examined."""
    monkeypatch.setattr(lists, "EXAMINED_MAX", 2)
    first, *_ = [await service.create(user=f"u{number}") for number in range(5)]
    await change(service, first, title="The only one that was seen")
    for each in await listed(service, limit="200"):
        if each != first["id"]:
            await service.dashboard.put(f"/conversations/{each}/seen", json={"index": 0})
    await service.say(first, "Hm")
    await service.create(user="last")
    params = {"unread": "true", "view": "agent", "sort": "created"}
    found, calls = [], 0
    while True:
        some = await page(service, **params)
        found += [each["id"] for each in some["items"]]
        calls += 1
        if some["nextCursor"] is None:
            break
        params["cursor"] = some["nextCursor"]
    assert found == [first["id"]]
    assert calls >= 3
    answer = await service.dashboard.get("/conversations", params={**params, "tag": "x"})
    assert answer.json()["errors"][0]["code"] == "bad_cursor"


async def test_personal_filters_need_a_person(service: Service) -> None:
    headers = {"Authorization": f"Bearer {service.demo['serverKey']}"}
    async with httpx.AsyncClient(base_url=f"{service.url}/v3", headers=headers) as machine:
        answer = await machine.get("/conversations", params={"assignee": "none,me"})
    assert answer.status_code in (401, 403)
