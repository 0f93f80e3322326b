"""Replays of one conversation's events to one endpoint, over real sockets.

Source: ADR 10.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from tests.api.accounts.test_tenants import stranger
from tests.api.events.test_channels_agree import receiving, register
from tests.support.api.service import Service
from tests.support.api.staff import code
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver

LOOK_S = 0.02
UNKNOWN = "cnv_00000000000000000000000000"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Yield a receiver that accepts everything."""
    async with receiving() as started:
        yield started


def sent(receiver: Receiver, since: int) -> list[tuple[int, str, str | None]]:
    """Return sequence, text and previous sequence of the events received since."""
    found = []
    for request in receiver.requests[since:]:
        event = json.loads(request.body)
        text = event["data"].get("message", {}).get("text", event["type"])
        found.append((event["sequence"], text, request.headers.get("Service-Previous-Sequence")))
    return found


async def arrived(service: Service, endpoint: dict[str, Any], count: int) -> None:
    """Wait until this many deliveries are delivered and none is pending."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            figures = (await service.dashboard.get(f"/webhooks/{endpoint['id']}/figures")).json()["items"]
            if (sum(each["delivered"] for each in figures), sum(each["pending"] for each in figures)) == (
                count,
                0,
            ):
                return
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def replay(service: Service, endpoint: dict[str, Any], **body: Any) -> dict[str, Any]:
    answer = await service.dashboard.post(f"/webhooks/{endpoint['id']}/replay", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_conversation_is_sent_again_in_order_after_a_dry_run_that_sends_nothing(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create(message={"text": "one"})
    await service.say(conversation, "two")
    await service.create("u2", message={"text": "not this one"})
    await arrived(service, endpoint, 5)
    dry = await replay(service, endpoint, conversationId=conversation["id"], dryRun=True)
    assert dry == {"count": 3, "pending": 0, "notStored": 0, "dryRun": True}
    assert len(receiver.requests) == 5
    done = await replay(service, endpoint, conversationId=conversation["id"])
    assert done == {"count": 3, "pending": 0, "notStored": 0, "dryRun": False}
    await receiver.wait(8)
    assert sent(receiver, 5) == [(1, "conversation.created", "0"), (2, "one", "1"), (3, "two", "2")]


async def test_a_replay_sends_earlier_events_and_accepts_a_range(
    service: Service, receiver: Receiver
) -> None:
    conversation = await service.create(message={"text": "one"})
    await service.say(conversation, "two")
    await service.say(conversation, "three")
    endpoint = await register(service, receiver.url, events=["message.created"])
    body = {"conversationId": conversation["id"], "from": 3, "to": 4}
    assert (await replay(service, endpoint, **body))["count"] == 2
    await arrived(service, endpoint, 2)
    assert sent(receiver, 0) == [(3, "two", "0"), (4, "three", "3")]
    path = f"/conversations/{conversation['id']}/deliveries"
    assert [each["sequence"] for each in (await service.dashboard.get(path)).json()["items"]] == [4, 3]


async def test_a_server_key_replays_by_the_same_call(service: Service, receiver: Receiver) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create(message={"text": "one"})
    await arrived(service, endpoint, 2)
    path = f"/s2s/webhooks/{endpoint['id']}/replay"
    answer = await service.http.post(path, json={"conversationId": conversation["id"]})
    assert answer.json()["count"] == 2
    await receiver.wait(4)


async def test_a_replay_is_refused_for_invalid_endpoints_and_conversations(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    path, body = f"/webhooks/{endpoint['id']}/replay", {"conversationId": conversation["id"]}
    async with stranger(service) as other:
        assert code(await other.agent.post(f"/v3{path}", json=body)) == (404, "webhook_not_found")
        theirs = (await other.backend.post("/v3/s2s/webhooks", json={"url": receiver.url})).json()
        foreign = f"/v3/webhooks/{theirs['id']}/replay"
        assert code(await other.agent.post(foreign, json=body)) == (404, "conversation_not_found")
    for unknown in (UNKNOWN, "nonsense", ""):
        answer = await service.dashboard.post(path, json={"conversationId": unknown})
        assert code(answer) == (404, "conversation_not_found")
    bad = await service.dashboard.post(path, json={"from": 0, "to": "x", "dryRun": 3})
    assert {each["pointer"] for each in bad.json()["errors"]} == {
        "/conversationId",
        "/from",
        "/to",
        "/dryRun",
    }
    await service.dashboard.patch(f"/webhooks/{endpoint['id']}", json={"status": "disabled"})
    assert code(await service.dashboard.post(path, json=body)) == (409, "webhook_disabled")
    assert (await replay(service, endpoint, **body, dryRun=True))["count"] == 1


async def test_a_replay_is_in_the_audit_trail(service: Service, receiver: Receiver) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    await arrived(service, endpoint, 1)
    await replay(service, endpoint, conversationId=conversation["id"])
    organisation = (await service.dashboard.get("/organisations")).json()["items"][0]["id"]
    trail = (await service.dashboard.get(f"/organisations/{organisation}/audit")).json()["items"]
    assert [each["action"] for each in trail].count("webhook.replayed") == 1
