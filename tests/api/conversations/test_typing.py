"""Typing through the wire: from an agent's call to stream and webhook, and nowhere else (decisions 4; ADR 5)."""

from __future__ import annotations

import json
from typing import Any

import stripe
import trio

from deskwire.http.app import ROUTES
from tests.api.events.test_channels_agree import Consumer, consuming, receiving, register
from tests.support.api.service import Service
from tests.support.sockets.receivers import Request
from tests.support.stores import beside, stored

STARTED, STOPPED = "agent.typing.started", "agent.typing.stopped"


async def type_in(service: Service, conversation: dict[str, Any], typing: bool = True) -> dict[str, Any]:
    """Say that the demo's user types; the answer."""
    path = f"/conversations/{conversation['id']}/typing"
    answer = await service.dashboard.post(path, json={"typing": typing})
    assert answer.status_code == 200, answer.text
    answered: dict[str, Any] = answer.json()
    return answered


async def me(service: Service, conversation: dict[str, Any]) -> dict[str, Any]:
    """The demo's user as events show an agent, learned from a note."""
    path = f"/conversations/{conversation['id']}/messages"
    note = await service.dashboard.post(path, json={"text": "note", "internal": True})
    author = note.json()["author"]
    return {"id": author["id"], "name": author["name"]}


async def next_types(consumer: Consumer, count: int) -> list[str]:
    return [(await consumer.receive())["event"] for _ in range(count)]


def test_typing_needs_the_permission_to_reply() -> None:
    """Decisions 3."""
    backend, agents = (
        route.access for route in ROUTES if route.path.endswith("/typing") and route.access.kind != "customer"
    )
    assert (agents.kind, agents.permission) == ("dashboard", "conversations.reply")
    assert backend.kind == "server_key"


async def test_typing_returns_the_conversation_unchanged(service: Service) -> None:
    conversation = await service.create()
    assert await type_in(service, conversation) == conversation
    assert await type_in(service, conversation, False) == conversation
    assert await service.fetch(conversation) == conversation
    assert await service.types() == ["conversation.created"]


async def test_typing_reaches_a_consumer_that_opted_in_on_every_kind_of_channel(service: Service) -> None:
    """Contract 4.4, 6.1; decisions 5."""
    conversation, other = await service.create(user="u1"), await service.create(user="u2")
    agent = await me(service, conversation)
    names = [None, f"private-conversation-{conversation['id']}", "private-contact-u1"]
    for name in names:
        async with consuming(service) as consumer:
            await consumer.subscribe("c1", channel=name, typingEvents=True, resume="live")
            if name is not None:
                await type_in(service, other)
                await type_in(service, other, False)
            await type_in(service, conversation)
            frame = await consumer.receive()
            assert frame["event"] == STARTED
            envelope = json.loads(frame["data"])
            assert list(envelope) == [
                *("id", "type", "apiVersion", "createdAt", "projectId", "sequence", "data")
            ]
            assert (envelope["sequence"], envelope["projectId"]) == (None, service.demo["projectId"])
            assert envelope["data"] == {"conversationId": conversation["id"], "agent": agent}
            await type_in(service, conversation, False)
            assert (await consumer.receive())["event"] == STOPPED


async def test_a_consumer_that_did_not_opt_in_gets_everything_but_typing(service: Service) -> None:
    conversation = await service.create()
    async with consuming(service) as consumer:
        await consumer.subscribe("c1")
        await type_in(service, conversation)
        await type_in(service, conversation, False)
        await service.say(conversation, "Hello")
        assert await next_types(consumer, 1) == ["message.created"]


async def test_a_message_a_close_and_a_deletion_end_typing_on_the_stream(service: Service) -> None:
    conversation = await service.create()
    path = f"/conversations/{conversation['id']}"
    async with consuming(service) as consumer:
        await consumer.subscribe("c1", typingEvents=True)
        for method, way, body in (
            ("POST", f"{path}/messages", {"text": "Hello"}),
            ("POST", f"{path}/close", {}),
            ("DELETE", path, None),
        ):
            await type_in(service, conversation)
            assert await next_types(consumer, 1) == [STARTED]
            answer = await service.dashboard.request(method, way, json=body)
            assert answer.status_code == 200, answer.text
            assert STOPPED in await next_types(consumer, 2)  # the stored event goes another way


async def test_typing_reaches_a_webhook_that_lists_it_signed_and_no_other(service: Service) -> None:
    """Contract 6.2.3, 6.2.4, 6.3."""
    async with receiving() as listed, receiving() as everything:
        endpoint = await register(service, listed.url, events=[STARTED, STOPPED, "message.created"])
        await register(service, everything.url, events=[])
        conversation = await service.create()
        await type_in(service, conversation)
        await listed.wait(1)
        await type_in(service, conversation, False)
        await listed.wait(2)
        await service.say(conversation, "Hello")
        await listed.wait(3)
        await everything.wait(2)
    assert [request.headers["Service-Event"] for request in listed.requests] == [
        STARTED,
        STOPPED,
        "message.created",
    ]
    assert [r.headers["Service-Event"] for r in everything.requests] == [
        "conversation.created",
        "message.created",
    ]
    first, second, stored = listed.requests
    event = stripe.Webhook.construct_event(first.body, first.headers["Service-Signature"], endpoint["secret"])
    assert (event["type"], json.loads(first.body)["sequence"]) == (STARTED, None)
    assert "Service-Previous-Sequence" not in first.headers
    assert stored.headers["Service-Previous-Sequence"] == "0"
    assert first.headers["Service-Delivery-Id"] != second.headers["Service-Delivery-Id"]


async def test_stream_and_webhook_carry_the_same_bytes_of_typing(service: Service) -> None:
    """Contract 6."""
    conversation = await service.create()
    async with receiving() as receiver, consuming(service) as consumer:
        await register(service, receiver.url, events=[STARTED])
        await consumer.subscribe("c1", typingEvents=True, resume="live")
        await type_in(service, conversation)
        await receiver.wait(1)
        assert (await consumer.receive())["data"].encode() == receiver.requests[0].body


async def test_nothing_about_typing_is_in_the_database_the_feed_or_a_replay(service: Service) -> None:
    """Decisions 4: never stored."""

    async def refuse(stream: trio.abc.Stream, _: Request) -> None:
        await stream.send_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")

    conversation = await service.create()
    async with receiving() as receiver, consuming(service) as consumer:
        receiver.behaviour = refuse
        await register(service, receiver.url, events=[STOPPED])
        await consumer.subscribe("c1", typingEvents=True)
        await type_in(service, conversation)
        await type_in(service, conversation, False)
        await receiver.wait(1)
        frames = [await consumer.receive() for _ in range(2)]
        assert (await service.types()) == ["conversation.created"]
        own = await service.http.get(f"/s2s/conversations/{conversation['id']}/events")
        assert len(own.json()["items"]) == 1
        async with consuming(service) as next_one:
            await next_one.subscribe("c1", typingEvents=True)
            await service.say(conversation, "Hello")
            assert await next_types(next_one, 1) == ["message.created"]

    marks = [json.loads(frame["data"])["id"].encode() for frame in frames]
    marks += [receiver.requests[0].headers["Service-Delivery-Id"].encode(), b"agent.typing.started"]
    content = stored(service.directory)
    assert not [mark for mark in marks if mark in content]
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM deliveries").fetchone() == (0,)


async def test_typing_in_a_hidden_conversation_publishes_no_event(service: Service) -> None:
    hidden, shown = await service.create(visible=False), await service.create(user="u2")
    async with consuming(service) as consumer:
        await consumer.subscribe("c1", typingEvents=True)
        assert (await type_in(service, hidden))["id"] == hidden["id"]
        await type_in(service, shown)
        envelope = json.loads((await consumer.receive())["data"])
        assert envelope["data"]["conversationId"] == shown["id"]


async def test_typing_where_there_is_no_conversation_or_no_answer_is_refused(service: Service) -> None:
    """Decisions 1."""
    gone = await service.create()
    await service.http.delete(f"/s2s/conversations/{gone['id']}")
    for identifier in (gone["id"], "cnv_00000000000000000000000000", "x"):
        answer = await service.dashboard.post(f"/conversations/{identifier}/typing", json={"typing": True})
        assert (answer.status_code, answer.json()["code"]) == (404, "conversation_not_found")
    there = await service.create()
    for body in ({}, {"typing": "yes"}, {"typing": 1}, {"typing": True, "agent": "x"}):
        answer = await service.dashboard.post(f"/conversations/{there['id']}/typing", json=body)
        assert answer.status_code == 422, body
