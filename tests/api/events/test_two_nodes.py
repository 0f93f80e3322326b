"""Two nodes on one database over HTTP: changes on one appear on the other, on every channel."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio

from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.support.api.agent_stream import Page, page
from tests.support.api.service import Service, running
from tests.support.deadlines import fail_after_idle


@pytest.fixture
async def nodes(tmp_path: Path, postgres_url: str) -> AsyncIterator[tuple[Service, Service]]:
    """Two services on one database, with one secret."""
    settings: dict[str, Any] = {"database_url": postgres_url, "files": "database"}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with running(tmp_path / "a", node="a", **settings) as a:
        for name in ("secret", "demo.json"):
            shutil.copy(tmp_path / "a" / name, tmp_path / "b" / name)
        async with running(tmp_path / "b", node="b", **settings) as b:
            yield a, b


async def look(service: Service, opened: Page, *conversations: dict[str, Any]) -> None:
    """Show these conversations on the page."""
    shown = {"conversationIds": [each["id"] for each in conversations], "composing": None}
    answer = await service.dashboard.put(f"/stream/{opened.hello['streamId']}/view", json=shown)
    assert answer.status_code == 204, answer.text


async def test_feed_has_acknowledged_events_of_another_node_at_once(
    nodes: tuple[Service, Service],
) -> None:
    here, there = nodes
    conversation = await here.create()
    for number in range(20):
        writer, reader = (here, there) if number % 2 else (there, here)
        said = await writer.say(conversation, f"number {number}")
        newest = (await reader.events(limit="200"))[-1]
        assert newest["data"]["message"]["id"] == said["id"]


async def test_long_poll_returns_a_commit_of_another_node(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    conversation = await here.create()
    after = (await there.events())[-1]["id"]
    found: list[dict[str, Any]] = []

    async def poll() -> None:
        found.extend(await there.events(after=after, wait="20"))

    with fail_after_idle(4):  # a hint wakes it, because a poll comes only after five seconds
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await trio.sleep(0.3)  # real time, until the long poll waits there
            await here.say(conversation, "Hi")
    assert [event["type"] for event in found] == ["message.created"]


async def test_a_consumer_has_the_events_of_another_node(
    nodes: tuple[Service, Service],
) -> None:
    here, there = nodes
    async with consuming(there) as consumer:
        assert (await consumer.subscribe())["event"] == "pusher_internal:subscription_succeeded"
        conversation = await here.create(message={"text": "Grüße 👋"})
        for text in ("one", "two"):
            await here.say(conversation, text)
        types = [(await consumer.receive())["event"] for _ in range(4)]
        assert types == ["conversation.created", *["message.created"] * 3]


async def test_deliveries_of_both_nodes_are_sent_once_in_order(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    async with receiving() as receiver:
        await register(here, receiver.url)
        conversation = await there.create()
        for number in range(10):
            await (here, there)[number % 2].say(conversation, f"number {number}")
        await receiver.wait(11)
        sequences = [orjson.loads(request.body)["sequence"] for request in receiver.requests]
        assert sequences == list(range(1, 12))


async def shown(opened: Page, *conversations: dict[str, Any]) -> Any:
    """Return the presence of the only agent once it names these conversations."""
    while True:
        (agent,) = (await opened.passing("presence"))["agents"]
        if {*agent["conversationIds"]} == {each["id"] for each in conversations}:
            return agent


async def test_agents_see_presence_and_ephemeral_events_of_both_nodes(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    conversation, second = await here.create(), await here.create()
    async with page(here.dashboard) as mine, page(there.dashboard) as other:
        await look(there, other, conversation)
        agent = await shown(mine, conversation)
        assert agent["online"] is True
        await look(here, mine, second)
        # A node sends ephemeral events to nodes whose agents it knows.
        await shown(other, conversation, second)
        typing = f"/conversations/{conversation['id']}/typing"
        await there.dashboard.post(typing, json={"typing": True, "internal": True})
        assert (await mine.passing("agent.typing.started"))["internal"] is True
        await here.http.post(f"/s2s{typing}", json={"typing": True})
        assert await other.passing("contact.typing.started")
        async with receiving() as receiver:
            await register(here, receiver.url)
            await here.say(conversation, "Hi")
            told = await other.passing("delivery.changed")
            assert told["conversationId"] == conversation["id"]


async def test_erasure_on_one_node_applies_to_all_nodes(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    gone = await here.create("u1", message={"text": "a secret"})
    async with page(there.dashboard) as desk:
        await here.say(gone, "another secret")
        assert (await desk.event())["type"] == "message.created"
        assert (await here.dashboard.delete(f"/conversations/{gone['id']}")).is_success
        bodies = repr(await there.events(limit="200"))
        assert "secret" not in bodies
        assert "conversation.deleted" in bodies
        assert (await desk.event())["type"] == "conversation.deleted"
