"""The events of a conversation that each stream consumer has confirmed, for agents (ADR 10)."""

from __future__ import annotations

from typing import Any

import trio

from tests.api.events.test_channels_agree import consuming
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S

LOOK_S = 0.02


async def consumers(service: Service, conversation: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}/consumers")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def confirmed(
    service: Service, conversation: dict[str, Any], sequence: int, *, connected: bool = True
) -> dict[str, Any]:
    """Wait until the one consumer has confirmed that much, and is connected or not."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            (found,) = await consumers(service, conversation)
            if (found["confirmedSequence"], found["connected"]) == (sequence, connected):
                return found
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def test_project_consumer_shows_its_confirmed_position(service: Service) -> None:
    conversation = await service.create(message={"text": "one"})
    assert await consumers(service, conversation) == []
    async with consuming(service) as consumer:
        await consumer.subscribe("mirror-1")
        await service.say(conversation, "two")
        await service.create("u2")
        for _ in range(2):
            await consumer.receive()
        found = await confirmed(service, conversation, 3)
        assert found["channel"] == f"private-project-{service.demo['projectId']}"
        assert (found["consumerId"], found["connected"]) == ("mirror-1", True)
    await service.say(conversation, "three")
    await confirmed(service, conversation, 3, connected=False)


async def test_channels_of_other_conversations_and_contacts_are_left_out(service: Service) -> None:
    one, two = await service.create("u1"), await service.create("u2")
    async with consuming(service) as consumer:
        await consumer.subscribe("a", f"private-conversation-{one['id']}")
        await consumer.subscribe("b", f"private-conversation-{two['id']}")
        await consumer.subscribe("c", "private-contact-u1")
        await consumer.subscribe("d", "private-contact-u2")
        assert {each["consumerId"] for each in await consumers(service, one)} == {"a", "c"}
        assert {each["consumerId"] for each in await consumers(service, two)} == {"b", "d"}
