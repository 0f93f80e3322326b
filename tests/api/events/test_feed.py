"""The project feed (decisions 4)."""

from __future__ import annotations

import httpx
import trio

from deskwire.engine.events.log import NO_EVENT_ID
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S


async def test_the_feed_pages_through_all_events_in_commit_order(service: Service) -> None:
    made = [await service.create(message={"text": str(number)}) for number in range(5)]
    everything = await service.events()
    seen, after = [], None
    while True:
        params = {"limit": "3"} | ({"cursor": after} if after else {})
        page = (await service.http.get("/s2s/events", params=params)).json()
        seen += page["items"]
        after = page["nextCursor"]
        if after is None:
            break
    assert seen == everything
    assert [event["id"] for event in seen] == sorted(event["id"] for event in seen)
    assert len(seen) == 2 * len(made)


async def test_the_feed_can_be_narrowed_to_types(service: Service) -> None:
    conversation = await service.create(message={"text": "x"})
    await service.do(conversation, "close")
    found = await service.events(types="conversation.closed,message.created")
    assert [event["type"] for event in found] == ["message.created", "conversation.closed"]


async def test_the_feed_waits_for_the_next_event(service: Service) -> None:
    conversation = await service.create()
    (first,) = await service.events()
    found: list[httpx.Response] = []

    async def poll(**params: str) -> None:
        found.append(
            await service.http.get("/s2s/events", params={"after": first["id"], "wait": "15", **params})
        )

    with trio.fail_after(HANG_TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not found
            await service.do(conversation, "read")  # changes nothing and wakes no reader
            await service.say(conversation, "now")
    assert [event["type"] for event in found[0].json()["items"]] == ["message.created"]


async def test_a_poll_that_sees_nothing_ends_empty(service: Service) -> None:
    await service.create()
    (first,) = await service.events()
    page = await service.http.get("/s2s/events", params={"after": first["id"], "wait": "0.05"})
    assert page.json() == {"items": [], "nextCursor": None}


async def test_feed_continues_after_an_erased_event(service: Service) -> None:
    gone = await service.create(message={"text": "x"})
    erased = (await service.events())[-1]["id"]
    kept = await service.create()
    await service.http.delete(f"/s2s/conversations/{gone['id']}")
    found = await service.events(after=erased)
    assert [event["type"] for event in found] == ["conversation.created", "conversation.deleted"]
    assert found[0]["data"]["conversation"]["id"] == kept["id"]


async def test_feed_continues_after_its_erased_newest_event(service: Service) -> None:
    for name in (None, "Ada"):
        await service.http.put("/s2s/contacts/u1", json={"name": name})
    (newest,) = await service.events()
    await service.http.delete("/s2s/contacts/u1")
    (last,) = await service.events()
    assert await service.events(after=newest["id"]) == [last]
    await service.create("u2")
    found = await service.events(after=newest["id"])
    assert [event["type"] for event in found] == ["contact.updated", "conversation.created"]


async def test_an_event_id_of_the_future_is_not_found(service: Service) -> None:
    await service.create()
    answer = await service.http.get("/s2s/events", params={"after": "evt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"})
    assert (answer.status_code, answer.json()["code"]) == (404, "event_not_found")


async def test_feed_continues_after_an_empty_read(service: Service) -> None:
    assert await service.events(after=NO_EVENT_ID) == []
    await service.create()
    assert [event["type"] for event in await service.events(after=NO_EVENT_ID)] == ["conversation.created"]
