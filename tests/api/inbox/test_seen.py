"""Each agent's seen messages: read positions in conversations, unread messages, and the counters of an inbox."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from deskwire.engine.events.log import NO_EVENT_ID
from tests.support.api.agent_stream import page as opened
from tests.support.api.inbox import NOT_MENTIONED
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of, person
from tests.support.stores import beside


async def see(http: httpx.AsyncClient, conversation: dict[str, Any], index: int) -> dict[str, Any]:
    """Mark messages as seen; return the answer."""
    answer = await http.put(f"/conversations/{conversation['id']}/seen", json={"index": index})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def mine(http: httpx.AsyncClient, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return an agent's own part of the agent's view, and check that the list shows the same."""
    answer = await http.get(f"/conversations/{conversation['id']}", params={"view": "agent"})
    found: dict[str, Any] = answer.json()["mine"]
    listed = (await http.get("/conversations", params={"view": "agent"})).json()["items"]
    assert [item["mine"] for item in listed if item["id"] == conversation["id"]] == [found]
    return found


async def unread(http: httpx.AsyncClient, **params: str) -> list[str]:
    """Return the ids of an agent's unread conversations."""
    answer = await http.get("/conversations", params={"unread": "true", **params})
    return [item["id"] for item in answer.json()["items"]]


async def reply(service: Service, conversation: dict[str, Any], text: str, *, internal: bool = False) -> None:
    """Write as the demo's owner."""
    body = {"text": text, "internal": internal}
    answer = await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=body)
    assert answer.status_code == 200, answer.text


async def counted(http: httpx.AsyncClient) -> dict[str, Any]:
    """Return the counters of an agent's inbox."""
    answer = await http.get("/inbox/counters")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_only_messages_of_the_contact_make_a_conversation_unread(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    await service.say(made, "1")
    assert await mine(service.dashboard, made) == {"seenIndex": None, "unread": 2, **NOT_MENTIONED}
    assert await see(service.dashboard, made, 1) == {"mine": {"seenIndex": 1, "unread": 0, **NOT_MENTIONED}}
    await reply(service, made, "2")
    await reply(service, made, "a note", internal=True)
    await service.do(made, "close")
    await service.do(made, "reopen")
    assert await mine(service.dashboard, made) == {"seenIndex": 1, "unread": 0, **NOT_MENTIONED}
    assert await unread(service.dashboard) == []
    await service.say(made, "3")
    assert await mine(service.dashboard, made) == {"seenIndex": 1, "unread": 1, **NOT_MENTIONED}
    assert await unread(service.dashboard) == [made["id"]]


async def test_a_conversation_can_be_marked_unread_again(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    await reply(service, made, "1")
    await service.say(made, "2")
    await see(service.dashboard, made, 2)
    assert await see(service.dashboard, made, 1) == {"mine": {"seenIndex": 1, "unread": 1, **NOT_MENTIONED}}
    assert await see(service.dashboard, made, 0) == {"mine": {"seenIndex": 0, "unread": 1, **NOT_MENTIONED}}
    assert await see(service.dashboard, made, -1) == {
        "mine": {"seenIndex": None, "unread": 2, **NOT_MENTIONED}
    }
    assert await mine(service.dashboard, made) == {"seenIndex": None, "unread": 2, **NOT_MENTIONED}
    assert await unread(service.dashboard) == [made["id"]]


async def test_read_position_is_private_to_its_agent(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    async with person(service, "viewer") as other:
        other.http.headers["project"] = service.demo["projectId"]
        await see(other.http, made, 0)
        assert await mine(other.http, made) == {"seenIndex": 0, "unread": 0, **NOT_MENTIONED}
        assert await mine(service.dashboard, made) == {"seenIndex": None, "unread": 1, **NOT_MENTIONED}
        assert (await unread(other.http), await unread(service.dashboard)) == ([], [made["id"]])


async def test_unread_filter_covers_open_conversations_unless_a_status_is_given(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    await service.do(made, "close")
    assert await unread(service.dashboard) == []
    assert await unread(service.dashboard, status="CLOSED") == [made["id"]]
    answer = await service.dashboard.get("/conversations", params={"unread": "false"})
    assert answer.json()["items"] == []


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"index": 1}, ("/index", "too_large")),
        ({"index": -2}, ("/index", "too_small")),
        ({"index": "0"}, ("/index", "invalid")),
        ({}, ("/index", "required")),
        ({"index": 0, "user": "usr_1"}, ("/user", "unknown_field")),
    ],
)
async def test_impossible_read_position_is_refused(
    service: Service, body: dict[str, Any], where: tuple[str, str]
) -> None:
    made = await service.create(message={"text": "0"})
    answer = await service.dashboard.put(f"/conversations/{made['id']}/seen", json=body)
    assert answer.status_code == 422
    assert [(error["pointer"], error["code"]) for error in answer.json()["errors"]] == [where]


async def test_unknown_conversation_cannot_be_marked_as_seen(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    await service.http.delete(f"/s2s/conversations/{made['id']}")
    for identifier in (made["id"], "cnv_1"):
        answer = await service.dashboard.put(f"/conversations/{identifier}/seen", json={"index": 0})
        assert (answer.status_code, answer.json()["code"]) == (404, "conversation_not_found")


async def test_read_position_is_published_only_to_the_agents_own_pages(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        async with opened(service.dashboard) as own, opened(other.http) as others:
            await see(service.dashboard, made, 0)
            await see(other.http, made, -1)
            heard, elsewhere = await own.passing("me.seen"), await others.passing("me.seen")
    assert heard == {
        "conversationId": made["id"],
        "index": 0,
        "mine": {"seenIndex": 0, "unread": 0, **NOT_MENTIONED},
    }
    assert elsewhere == {
        "conversationId": made["id"],
        "index": -1,
        "mine": {"seenIndex": None, "unread": 1, **NOT_MENTIONED},
    }


def rows(service: Service) -> list[tuple[int, int]]:
    """Return the stored read positions: the index, and the number of the contact's messages that were seen."""
    with beside(service.directory) as connection:
        return connection.execute("SELECT number, contact_messages FROM agent_seen").fetchall()


async def test_read_positions_are_deleted_with_their_conversation_and_user(service: Service) -> None:
    first, second = [await service.create(user=f"u{number}", message={"text": "0"}) for number in range(2)]
    await see(service.dashboard, first, 0)
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        await see(other.http, second, 0)
        await see(other.http, first, -1)
        assert sorted(rows(service)) == [(-1, 0), (0, 1), (0, 1)]
        await service.http.delete(f"/s2s/conversations/{first['id']}")
        assert rows(service) == [(0, 1)]
        path = f"/organisations/{await organisation_of(service)}/members/{other.id}"
        assert (await service.dashboard.delete(path)).status_code == 200
    assert rows(service) == []


async def test_counters_are_as_long_as_their_lists(service: Service) -> None:
    made = [await service.create(user=f"u{number}", message={"text": "0"}) for number in range(9)]
    own = (await service.dashboard.get("/users/me")).json()["id"]
    team = (await service.dashboard.post("/teams", json={"name": "Returns", "members": [own]})).json()
    other = (await service.dashboard.post("/teams", json={"name": "Other"})).json()
    for each in made[:4]:
        await service.do(each, "assign", assignee={"type": "user", "id": own})
    await service.do(made[4], "assign", assignee={"type": "team", "id": team["id"]})
    await service.do(made[5], "assign", assignee={"type": "team", "id": other["id"]})
    await reply(service, made[0], "1")
    await see(service.dashboard, made[0], 1)
    for number, fields in (
        (1, {"snoozedUntil": "2027-01-01T00:00:00Z"}),
        (2, {"status": "PENDING"}),
        (6, {"archived": True}),
    ):
        await service.dashboard.patch(f"/conversations/{made[number]['id']}", json=fields)
    await service.do(made[3], "close")
    for number in (0, 1, 2, 3, 6):
        await service.dashboard.put(f"/conversations/{made[number]['id']}/follow")
    todo = {"status": "OPEN,PENDING", "snoozed": "false"}
    lists = {
        "mine": {"assignee": "me", **todo},
        "mineWaiting": {"assignee": "me", "sort": "waiting", **todo},
        "following": {"following": "true", **todo},
        "unread": {"assignee": "me", "unread": "true", **todo},
        "unassigned": {"assignee": "none", **todo},
        "waiting": {"sort": "waiting"},
        "open": {"status": "OPEN", "snoozed": "false"},
        "pending": {"status": "PENDING", "snoozed": "false"},
        "snoozed": {"snoozed": "true"},
    }
    expected: dict[str, Any] = {}
    for name, params in lists.items():
        answer = await service.dashboard.get("/conversations", params={"view": "agent", **params})
        expected[name] = len(answer.json()["items"])
    assert expected == {
        "mine": 2,
        "mineWaiting": 1,
        "following": 2,
        "unread": 1,
        "unassigned": 2,
        "waiting": 5,
        "open": 5,
        "pending": 1,
        "snoozed": 1,
    }
    found = await counted(service.dashboard)
    as_of = (await service.dashboard.get("/conversations", params={"view": "agent"})).json()["items"][0][
        "asOf"
    ]
    assert found == expected | {"mentions": 0, "teams": {team["id"]: 1}, "bound": 1_000, "asOf": as_of}


async def test_counters_of_an_empty_project_have_the_position_of_no_event(
    service: Service,
) -> None:
    found = await counted(service.dashboard)
    assert (found["asOf"], found["open"], found["teams"]) == (NO_EVENT_ID, 0, {})


async def test_counters_take_no_parameters(service: Service) -> None:
    answer = await service.dashboard.get("/inbox/counters", params={"view": "mine"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "unknown_parameter")
