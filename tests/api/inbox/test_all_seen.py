"""Everything is marked as read at once; new members and closed imports begin with everything seen."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest

from tests.api.inbox.test_seen import counted, mine, see, unread
from tests.support.api.agent_stream import page as opened
from tests.support.api.inbox import NOT_MENTIONED
from tests.support.api.service import Service
from tests.support.api.staff import person
from tests.support.stores import beside


async def mark(http: httpx.AsyncClient, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Mark everything as read; return the answer."""
    answer = await http.put("/inbox/seen", json={} if body is None else body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def bring_in(service: Service, *records: dict[str, Any]) -> list[str]:
    """Import records; return the ids of the conversations."""
    lines = b"\n".join(orjson.dumps(record) for record in records)
    headers = {"Content-Type": "application/x-ndjson"}
    answer = await service.http.post("/s2s/import", content=lines, headers=headers)
    assert answer.status_code == 200, answer.text
    listed = (await service.dashboard.get("/conversations", params={"limit": "100"})).json()["items"]
    return [item["id"] for item in listed if item["title"] in {record.get("title") for record in records}]


def past(status: str, title: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The records of a conversation of last year, with a message of its contact."""
    conversation = {
        "type": "conversation",
        "externalId": title,
        "contact": {"userId": title},
        "title": title,
        "status": status,
        "createdAt": "2025-01-01T00:00:00Z",
        **({"closedAt": "2025-01-02T00:00:00Z"} if status == "CLOSED" else {}),
    }
    message = {
        "type": "message",
        "externalId": f"{title}-1",
        "conversation": title,
        "author": {"type": "contact"},
        "text": "Hello!",
        "createdAt": "2025-01-01T00:00:00Z",
    }
    return conversation, message


async def test_mark_reads_everything_except_later_messages(service: Service) -> None:
    first, second = [await service.create(user=f"u{number}", message={"text": "0"}) for number in range(2)]
    assert len(await unread(service.dashboard)) >= 2
    assert (await mark(service.dashboard))["until"] is not None
    assert await unread(service.dashboard) == []
    assert await mine(service.dashboard, first) == {"seenIndex": 0, "unread": 0, **NOT_MENTIONED}
    await service.say(first, "1")
    await service.say(first, "2")
    assert await mine(service.dashboard, first) == {"seenIndex": 0, "unread": 2, **NOT_MENTIONED}
    assert await unread(service.dashboard) == [first["id"]]
    read = {"unread": "false", "limit": "100"}
    seen = (await service.dashboard.get("/conversations", params=read)).json()["items"]
    assert second["id"] in [item["id"] for item in seen]
    assert first["id"] not in [item["id"] for item in seen]
    await see(service.dashboard, first, 2)
    assert await unread(service.dashboard) == []


async def test_one_marked_unread_after_it_is_unread(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    await mark(service.dashboard)
    await see(service.dashboard, made, -1)
    assert await mine(service.dashboard, made) == {"seenIndex": None, "unread": 1, **NOT_MENTIONED}
    assert await unread(service.dashboard) == [made["id"]]
    await mark(service.dashboard)
    assert await unread(service.dashboard) == []


async def test_earlier_time_undoes_the_mark(service: Service) -> None:
    first, second = [await service.create(user=f"u{number}", message={"text": "0"}) for number in range(2)]
    before = set(await unread(service.dashboard))
    marked = await mark(service.dashboard)
    assert (await mark(service.dashboard, {"until": marked["before"]}))["before"] == marked["until"]
    assert set(await unread(service.dashboard)) == before >= {first["id"], second["id"]}


async def test_mark_is_per_user_and_project(service: Service) -> None:
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        made = await service.create(message={"text": "0"})
        await mark(service.dashboard)
        assert await unread(other.http) == [made["id"]]
        async with opened(service.dashboard) as own:
            told = await mark(service.dashboard)
            assert await own.passing("me.all_seen") == told


async def test_counters_go_by_it(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    user = (await service.dashboard.get("/users/me")).json()
    body = {"assignee": {"type": "user", "id": user["id"]}}
    await service.dashboard.post(f"/conversations/{made['id']}/assign", json=body)
    before = (await counted(service.dashboard))["unread"]
    assert before >= 1
    await mark(service.dashboard)
    assert (await counted(service.dashboard))["unread"] == 0
    await service.say(made, "1")
    assert (await counted(service.dashboard))["unread"] == 1


async def test_a_new_member_starts_with_everything_seen(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        assert await unread(other.http) == []
        assert await mine(other.http, made) == {"seenIndex": 0, "unread": 0, **NOT_MENTIONED}
        await service.say(made, "1")
        assert await mine(other.http, made) == {"seenIndex": 0, "unread": 1, **NOT_MENTIONED}
        assert await unread(other.http) == [made["id"]]


async def test_conversations_that_are_closed_when_imported_are_seen(service: Service) -> None:
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        (closed,) = await bring_in(service, *past("CLOSED", "Closed long ago"))
        (opened_,) = await bring_in(service, *past("OPEN", "Still open"))
        for http in (service.dashboard, other.http):
            assert (await mine(http, {"id": closed}))["unread"] == 0
            assert (await mine(http, {"id": opened_}))["unread"] == 1
        assert await unread(other.http) == [opened_]
        await service.http.post(f"/s2s/conversations/{closed}/messages", json={"text": "It broke again"})
        assert await mine(other.http, {"id": closed}) == {"seenIndex": 0, "unread": 1, **NOT_MENTIONED}


async def test_open_conversations_imported_after_the_mark_are_unread(service: Service) -> None:
    await mark(service.dashboard)
    (opened_,) = await bring_in(service, *past("OPEN", "Brought later"))
    assert await unread(service.dashboard) == [opened_]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"until": "2999-01-01T00:00:00Z"}, ("/until", "in_the_future")),
        ({"until": "yesterday"}, ("/until", "bad_time")),
        ({"until": 3}, ("/until", "string_type")),
        ({"til": None}, ("/til", "extra_forbidden")),
    ],
)
async def test_a_time_that_can_not_be_is_refused(
    service: Service, body: dict[str, Any], where: tuple[str, str]
) -> None:
    answer = await service.dashboard.put("/inbox/seen", json=body)
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == [where[0]]


async def test_marks_go_with_the_membership(service: Service) -> None:
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        await mark(other.http)
        (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
        path = f"/organisations/{organisation['id']}/members"
        members = (await service.dashboard.get(path)).json()["items"]
        (agent,) = [each for each in members if each["role"] == "agent"]
        await service.dashboard.delete(f"{path}/{agent['id']}")
    with beside(service.directory) as connection:
        users = connection.execute(
            "SELECT count(*) FROM seen_marks s WHERE NOT EXISTS (SELECT 1 FROM memberships m WHERE m.user = s.user)"
        )
        assert users.fetchone() == (0,)
