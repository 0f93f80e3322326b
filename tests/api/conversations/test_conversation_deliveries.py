"""The deliveries of a conversation's events, for agents (ADR 19)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.api.events.test_channels_agree import receiving, register
from tests.support.api.service import Service, running
from tests.support.api.staff import code, organisation_of, person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver, answering

FAILING = answering("500 Internal Server Error", b"out of order s3cret")
WORKING = answering("204 No Content")
LOOK_S = 0.02
UNKNOWN = "cnv_00000000000000000000000000"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service that retries quickly."""
    async with running(tmp_path, webhook_retry_after_s=(0.01, 0.01, 0.01)) as started:
        yield started


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Yield a receiver that accepts everything."""
    async with receiving() as started:
        yield started


async def outcomes(service: Service, conversation: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    """Return a page of the deliveries of the conversation's events."""
    path = f"/conversations/{conversation['id']}/deliveries"
    answer = await service.dashboard.get(path, params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def settled(service: Service, conversation: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the deliveries once there are `count` and none is pending."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            found = await outcomes(service, conversation, limit="200")
            if len(found) >= count and all(each["status"] != "pending" for each in found):
                return found
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def redelivered(service: Service, conversation: dict[str, Any], endpoint: dict[str, Any]) -> None:
    """Repeat the newest delivery of the conversation, and wait for its end."""
    params = {"conversation": conversation["id"], "limit": "1"}
    log = f"/s2s/webhooks/{endpoint['id']}/deliveries"
    newest = (await service.http.get(log, params=params)).json()["items"][0]["id"]
    again = (await service.http.post(f"/s2s/deliveries/{newest}/redeliver")).json()["id"]
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            if (await service.http.get(f"/s2s/deliveries/{again}")).json()["status"] != "pending":
                return
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def test_each_event_lists_its_delivery_to_each_endpoint(service: Service, receiver: Receiver) -> None:
    crm = await register(service, f"{receiver.url}hook?key=s3cret", description="The CRM")
    async with receiving() as broken:
        broken.behaviour = FAILING
        search = await register(service, broken.url)
        conversation = await service.create(message={"text": "Hi"})
        found = await settled(service, conversation, 4)
    assert [(each["sequence"], each["endpointId"]) for each in found] == [
        (2, search["id"]),
        (2, crm["id"]),
        (1, search["id"]),
        (1, crm["id"]),
    ]
    events = {event["sequence"]: event["id"] for event in await service.events()}
    assert [each["eventId"] for each in found] == [events[each["sequence"]] for each in found]
    dropped, arrived = found[0], found[1]
    assert (arrived["endpoint"], arrived["status"], arrived["lastStatus"]) == ("The CRM", "delivered", 204)
    assert 0 <= arrived["afterMs"] < 60_000
    assert (dropped["endpoint"], dropped["status"], dropped["attempts"]) == ("localhost", "dropped", 4)
    assert (dropped["reasonCode"], dropped["lastStatus"]) == ("failed", 500)
    assert dropped["reason"].startswith(
        "It did not arrive because 4 attempts failed; the last time it answered 500."
    )
    assert "s3cret" not in str(found)
    assert str(receiver.port) not in str([each["endpoint"] for each in found])


async def test_events_are_chosen_by_sequence_by_range_and_by_pages(
    service: Service, receiver: Receiver
) -> None:
    await register(service, receiver.url)
    conversation = await service.create()
    for number in range(4):
        await service.say(conversation, str(number))
    await service.say(await service.create("u2"), "not of this conversation")
    all_of_them = await settled(service, conversation, 5)
    assert [each["sequence"] for each in all_of_them] == [5, 4, 3, 2, 1]
    for params, expected in (
        ({"sequence": 3}, [3]),
        ({"from": 4}, [5, 4]),
        ({"to": 2}, [2, 1]),
        ({"from": 2, "to": 3}, [3, 2]),
        ({"from": 4, "to": 2}, []),
        ({"sequence": 3, "from": 4}, []),
        ({"sequence": 99}, []),
    ):
        assert [each["sequence"] for each in await outcomes(service, conversation, **params)] == expected
    listed, cursor = [], ""
    path = f"/conversations/{conversation['id']}/deliveries"
    while cursor is not None:
        page = (await service.dashboard.get(path, params={"limit": "2", "cursor": cursor})).json()
        listed += page["items"]
        cursor = page["nextCursor"]
    assert listed == all_of_them


async def test_redelivered_event_is_listed_once_with_its_first_arrival(
    service: Service, receiver: Receiver
) -> None:
    receiver.behaviour = FAILING
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    (dropped,) = await settled(service, conversation, 1)
    assert dropped["status"] == "dropped"
    await redelivered(service, conversation, endpoint)
    (again,) = await settled(service, conversation, 1)
    assert (again["status"], again["sequence"]) == ("dropped", 1)
    receiver.behaviour = WORKING
    await redelivered(service, conversation, endpoint)
    (arrived,) = await settled(service, conversation, 1)
    assert (arrived["status"], arrived["eventId"]) == ("delivered", dropped["eventId"])
    receiver.behaviour = FAILING
    for _ in range(2):
        await redelivered(service, conversation, endpoint)
        assert await settled(service, conversation, 1) == [arrived]


async def test_a_removed_endpoint_is_not_shown(service: Service, receiver: Receiver) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    await settled(service, conversation, 1)
    await service.http.delete(f"/s2s/webhooks/{endpoint['id']}")
    assert await outcomes(service, conversation) == []


@pytest.mark.parametrize("role", ["viewer", "agent", "admin", "owner"])
async def test_every_reader_of_conversations_sees_their_deliveries(
    service: Service, receiver: Receiver, role: str
) -> None:
    await register(service, receiver.url)
    conversation = await service.create()
    found = await settled(service, conversation, 1)
    async with person(service, role) as one:
        one.http.headers["project"] = service.demo["projectId"]
        answer = await one.http.get(f"/conversations/{conversation['id']}/deliveries")
        assert answer.json()["items"] == found


async def test_unknown_or_foreign_conversation_is_not_found(service: Service) -> None:
    conversation = await service.create()
    path = f"/organisations/{await organisation_of(service)}/projects"
    other = (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]
    theirs = f"/conversations/{conversation['id']}/deliveries"
    answer = await service.dashboard.get(theirs, headers={"project": other})
    assert code(answer) == (404, "conversation_not_found")
    for identifier in (UNKNOWN, "cnv_x"):
        answer = await service.dashboard.get(f"/conversations/{identifier}/deliveries")
        assert code(answer) == (404, "conversation_not_found")
    assert (await service.http.get(theirs)).status_code == 401


async def test_every_parameter_that_is_wrong_is_named(service: Service) -> None:
    conversation = await service.create()
    params = {"sequence": "0", "from": "x", "to": "-1", "limit": "0", "cursor": "?", "status": "pending"}
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}/deliveries", params=params)
    assert answer.status_code == 400
    assert {problem["pointer"] for problem in answer.json()["errors"]} == {f"/{name}" for name in params}
