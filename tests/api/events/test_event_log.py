"""The events of a project for users: newest first, and one by its id (ADR 10)."""

from __future__ import annotations

from typing import Any

from tests.support.api.service import Service
from tests.support.api.staff import code, person


async def log(service: Service, **params: Any) -> list[dict[str, Any]]:
    answer = await service.dashboard.get("/events", params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def brief(events: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    return [(each["type"], each["sequence"]) for each in events]


async def test_events_are_listed_newest_first_with_their_sent_bytes(service: Service) -> None:
    conversation = await service.create(message={"text": "one"})
    await service.say(conversation, "two")
    feed = await service.events()
    assert await log(service) == feed[::-1]


async def test_pages_continue_after_the_previous_one(service: Service) -> None:
    conversation = await service.create()
    for number in range(4):
        await service.say(conversation, str(number))
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = (await service.dashboard.get("/events", params={"limit": 2, "cursor": cursor})).json()
        found += answer["items"]
        cursor = answer["nextCursor"]
    assert found == (await service.events())[::-1]
    assert len(found) == 5


async def test_list_is_filtered_by_types_and_conversation(service: Service) -> None:
    one = await service.create(message={"text": "one"})
    two = await service.create("u2", message={"text": "two"})
    await service.do(two, "close")
    assert brief(await log(service, types="conversation.closed")) == [("conversation.closed", 3)]
    assert brief(await log(service, conversation=one["id"])) == [
        ("message.created", 2),
        ("conversation.created", 1),
    ]
    chosen = await log(service, conversation=two["id"], types="message.created,conversation.closed")
    assert brief(chosen) == [("conversation.closed", 3), ("message.created", 2)]
    assert await log(service, conversation="cnv_00000000000000000000000000") == []


async def test_extension_events_are_listed_with_the_permission(service: Service) -> None:
    endpoint = (await service.http.post("/s2s/webhooks", json={"url": f"{service.url}/nowhere"})).json()
    await service.http.patch(f"/s2s/webhooks/{endpoint['id']}", json={"status": "disabled"})
    conversation = await service.create()
    note = {"text": "carrier asked", "internal": True}
    await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=note)
    listed = [each["type"] for each in await log(service)]
    assert listed == ["conversation.created", "webhook.disabled"]
    async with person(service, "viewer") as viewer:
        viewer.http.headers["project"] = service.demo["projectId"]
        answer = await viewer.http.get("/events")
        assert "webhook.disabled" not in {each["type"] for each in answer.json()["items"]}
        assert service.url not in answer.text
        refused = await viewer.http.get("/events", params={"types": "webhook.disabled"})
        assert code(refused) == (403, "permission_denied")
        (disabled,) = await log(service, types="webhook.disabled")
        assert code(await viewer.http.get(f"/events/{disabled['id']}")) == (403, "permission_denied")


async def test_an_event_is_fetched_by_its_id(service: Service) -> None:
    conversation = await service.create(message={"text": "one"})
    for event in await service.events():
        assert (await service.dashboard.get(f"/events/{event['id']}")).json() == event
    changes = {"tags": ["vip"]}
    await service.dashboard.patch(f"/conversations/{conversation['id']}", json=changes)
    for unknown in ("evt_00000000000000000000000000", "nonsense"):
        assert code(await service.dashboard.get(f"/events/{unknown}")) == (404, "event_not_found")


async def test_every_problem_of_the_parameters_is_named(service: Service) -> None:
    answer = await service.dashboard.get("/events", params={"types": "nonsense,webhook.test"})
    assert [each["code"] for each in answer.json()["errors"]] == ["unknown_event_type"] * 2
    for wrong in ("", "message.created,", "message.created, conversation.closed"):
        answer = await service.dashboard.get("/events", params={"types": wrong})
        assert code(answer) == (400, "bad_query"), wrong
