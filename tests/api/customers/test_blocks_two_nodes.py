"""A block at one of two nodes on one database holds at the other from its response on."""

from __future__ import annotations

import httpx
import pytest
import trio

from tests.api.customers.browsing import begin, get, say
from tests.api.events.test_two_nodes import nodes
from tests.support.api.customers import Browser, make_channel
from tests.support.api.service import Service
from tests.support.api.staff import code

__all__ = ["nodes"]


async def test_block_of_one_node_refuses_writers_of_the_other(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    channel = await make_channel(here)
    async with Browser(there, channel) as browser:
        await browser.start()
        started = await begin(browser)
        user = (await get(browser, "/me"))["userId"]
        for _ in range(3):
            assert (await here.http.post(f"/s2s/contacts/{user}/block", json={})).status_code == 200
            assert code(await say(browser, started["id"], "Again")) == (403, "contact_blocked")
            uploaded = await browser.call("POST", "/uploads", files={"file": ("a.txt", b"x")})
            assert code(uploaded) == (403, "contact_blocked")
            assert (await here.http.post(f"/s2s/contacts/{user}/unblock")).status_code == 200
            assert (await say(browser, started["id"], "Again")).status_code == 200


@pytest.mark.parametrize("writes", ["messages", "conversations"])
async def test_nothing_is_stored_after_the_response_of_the_other_node(
    nodes: tuple[Service, Service], writes: str
) -> None:
    here, there = nodes
    conversation = await here.create("u1", message={"text": "0"})
    answers: list[httpx.Response] = []
    enough = trio.Event()

    async def write(number: int) -> None:
        service = nodes[number % 2]
        while not answers or answers[-1].status_code == 200:
            path = f"/s2s/conversations/{conversation['id']}/messages"
            body: dict[str, object] = {"text": "more"}
            if writes == "conversations":
                path, body = "/s2s/conversations", {"contact": {"userId": "u1"}, "message": body}
            answers.append(await service.http.post(path, json=body))
            if len(answers) == 20:
                enough.set()

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(write, number)
        await enough.wait()
        blocked = await there.http.post("/s2s/contacts/u1/block", json={})
        assert blocked.status_code == 200, blocked.text
        stored = await here.events()
    assert await here.events() == stored
    refused = [each for each in answers if each.status_code != 200]
    assert {code(each) for each in refused} == {(403, "contact_blocked")}
    created = [each for each in stored if each["type"] == "message.created"]
    assert len(created) == 1 + len(answers) - len(refused)
