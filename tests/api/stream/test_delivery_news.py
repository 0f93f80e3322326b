"""`delivery.changed`: the state of a message's deliveries, for viewers of its conversation (ADR 19)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.api.events.test_channels_agree import receiving, register
from tests.support.api.agent_stream import Page, page
from tests.support.api.service import Service, running
from tests.support.sockets.receivers import Receiver, answering

FAILING = answering("503 Service Unavailable")


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


async def look(service: Service, opened: Page, *conversations: dict[str, Any]) -> None:
    """Show these conversations on the page."""
    shown = {"conversationIds": [each["id"] for each in conversations], "composing": None}
    answer = await service.dashboard.put(f"/stream/{opened.hello['streamId']}/view", json=shown)
    assert answer.status_code == 204, answer.text


async def ended(opened: Page, sequence: int) -> dict[str, Any]:
    """Return the `delivery.changed` events of an event once none of its deliveries is pending."""
    while True:
        received: dict[str, Any] = await opened.passing("delivery.changed")
        if received["sequence"] == sequence and received["status"] != "pending":
            return received


@pytest.mark.parametrize("fails", [False, True])
async def test_viewer_of_a_conversation_gets_its_delivery_changes(
    service: Service, receiver: Receiver, fails: bool
) -> None:
    if fails:
        receiver.behaviour = FAILING
    await register(service, receiver.url, description="The CRM")
    conversation = await service.create()
    async with page(service.dashboard) as opened:
        await look(service, opened, conversation)
        await service.say(conversation, "Hi")
        received = await ended(opened, 2)
    assert received.pop("conversationId") == conversation["id"]
    assert received["status"] == ("dropped" if fails else "delivered")
    path = f"/conversations/{conversation['id']}/deliveries"
    listed = (await service.dashboard.get(path, params={"sequence": "2"})).json()["items"]
    assert listed == [received]


async def test_agent_gets_no_delivery_changes_of_other_conversations(
    service: Service, receiver: Receiver
) -> None:
    await register(service, receiver.url)
    shown, other = await service.create(), await service.create("u2")
    async with page(service.dashboard) as opened, page(service.dashboard) as elsewhere:
        await look(service, opened, shown)
        await look(service, elsewhere, other)
        for number in range(5):
            await service.say(other, str(number))
        await service.say(shown, "Hi")
        assert (await ended(opened, 2))["conversationId"] == shown["id"]
        assert (await ended(elsewhere, 6))["conversationId"] == other["id"]


async def test_burst_of_delivery_changes_is_sent_completely(service: Service, receiver: Receiver) -> None:
    await register(service, receiver.url)
    conversation = await service.create()
    async with page(service.dashboard) as opened:
        await look(service, opened, conversation)
        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(service.say, conversation, str(number))
        missing = set(range(2, 32))
        while missing:
            received = await opened.passing("delivery.changed")
            if received["status"] == "delivered":
                missing.discard(received["sequence"])


async def test_delivery_changes_of_an_erased_conversation_are_not_sent(
    service: Service, receiver: Receiver
) -> None:
    await register(service, receiver.url)
    conversation, other = await service.create(), await service.create("u2")
    async with page(service.dashboard) as opened:
        await look(service, opened, conversation, other)
        await service.say(conversation, "Hi")
        assert (await service.http.delete(f"/s2s/conversations/{conversation['id']}")).is_success
        await service.say(other, "Hi")
        assert (await ended(opened, 2))["conversationId"] == other["id"]
