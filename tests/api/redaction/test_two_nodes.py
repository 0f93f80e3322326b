"""A message that was redacted at one node is shown and sent by none after the answer (ADR 21)."""

from __future__ import annotations

import json
from typing import Any

import orjson
import trio

from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.api.events.test_two_nodes import nodes
from tests.api.redaction.test_nothing_is_left import found
from tests.api.redaction.test_redact import path_of
from tests.support.api.agent_stream import page
from tests.support.api.planted_texts import mark
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S

__all__ = ["nodes"]


async def ended(node: Service, log: str) -> Any:
    """Return the deliveries of an endpoint once the ends of all are recorded, which is some 20 ms after their answers."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            deliveries = (await node.http.get(log)).json()["items"]
            if all(each["status"] != "pending" for each in deliveries):
                return deliveries
            await trio.sleep(0.01)  # real time: another node records them


async def test_no_node_shows_text_that_another_has_redacted(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    conversation = await here.create(message={"text": "Hello"})
    async with page(there.dashboard) as desk, consuming(there) as consumer:
        await consumer.subscribe()
        message = await here.say(conversation, mark("message"))
        assert json.loads((await consumer.receive())["data"])["data"]["message"]["text"] == mark("message")
        assert (await desk.event())["data"]["message"]["text"] == mark("message")
        answer = await here.http.post(f"{path_of(message)}/redact", json={"text": True})
        assert answer.status_code == 200, answer.text
        for node in nodes:
            assert mark("message") not in json.dumps(await node.events(limit="200"))
        told = json.loads((await consumer.receive())["data"])
        assert told["data"]["redactedMessageIds"] == [message["id"]]
    await found(there, mark("message"), 0)


async def test_delivering_node_sends_text_as_redacted_by_another(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    async with receiving() as receiver:
        await register(here, receiver.url)
        conversation = await here.create()
        message = await here.say(conversation, mark("message"))
        await receiver.wait(2)
        for node, gone in ((here, message), (there, await there.say(conversation, mark("newest")))):
            assert (await node.http.delete(path_of(gone))).status_code == 200
        await receiver.wait(5)
        before = len(receiver.requests)
        log = (await here.http.get("/s2s/webhooks")).json()["items"][0]["id"]
        deliveries = await ended(there, f"/s2s/webhooks/{log}/deliveries")
        for each in deliveries:
            assert (await there.http.post(f"/s2s/deliveries/{each['id']}/redeliver")).status_code == 200
        await receiver.wait(before + len(deliveries))
    bodies = [orjson.loads(request.body) for request in receiver.requests[before:]]
    assert not [body for body in bodies if b"mk" in orjson.dumps(body)]
    assert sorted({body["sequence"] for body in bodies}) == [1, 2, 3, 4, 5]
