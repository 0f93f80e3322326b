"""Splits of one conversation at two nodes at once, and customers' messages at both in the meantime."""

from __future__ import annotations

from typing import Any

import trio

from tests.api.events.test_two_nodes import nodes
from tests.support.api.service import Service

__all__ = ["nodes"]

ROUNDS = 6


async def _split(service: Service, conversation: str, messages: list[str]) -> Any:
    path = f"/conversations/{conversation}/split"
    return await service.dashboard.post(path, json={"messageIds": messages})


async def test_two_nodes_split_each_message_off_once(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    for _ in range(ROUNDS):
        one = await here.create(message={"text": "Hello"})
        said = (await here.say(one, "And my address has changed."))["id"]
        outcomes = list[tuple[int, str]]()

        async def split(
            service: Service,
            conversation: str = one["id"],
            message: str = said,
            found: list[tuple[int, str]] = outcomes,
        ) -> None:
            answer = await _split(service, conversation, [message])
            found.append((answer.status_code, answer.json().get("code", "")))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(split, here)
            nursery.start_soon(split, there)
        assert sorted(outcomes) == [(200, ""), (409, "message_split")]
        assert len((await there.fetch(one))["splitInto"]) == 1


async def test_messages_that_arrive_during_a_split_are_stored_once_each(
    nodes: tuple[Service, Service],
) -> None:
    here, there = nodes
    one, sent = await here.create(), list[str]()
    first = (await here.say(one, "Hello"))["id"]

    async def write(service: Service, name: str) -> None:
        for number in range(20):
            text = f"{name} {number}"
            sent.append((await service.say(one, text))["id"])

    async def split(service: Service) -> None:
        new = await _split(service, one["id"], [first])
        assert new.status_code == 200, new.text
        for _ in range(ROUNDS):
            page = await service.http.get(f"/s2s/conversations/{one['id']}/messages", params={"limit": 100})
            free = [each["id"] for each in page.json()["items"] if "splitInto" not in each]
            if free:
                answer = await _split(service, one["id"], free[-1:])
                assert answer.status_code == 200, answer.text

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, here, "here")
        nursery.start_soon(write, there, "there")
        nursery.start_soon(split, there)
    state = await here.fetch(one)
    page = await here.http.get(f"/s2s/conversations/{one['id']}/messages", params={"limit": 100})
    shown = {each["id"]: each.get("splitInto") for each in page.json()["items"]}
    assert sorted(shown) == sorted([first, *sent])
    assert {into for into in shown.values() if into is not None} == {*state["splitInto"]}
    for conversation in state["splitInto"]:
        thread = (await there.http.get(f"/s2s/conversations/{conversation}/messages")).json()["items"]
        assert [each["id"] for each in thread] == [
            each for each, into in shown.items() if into == conversation
        ]
    for each in (one["id"], *state["splitInto"]):
        events = (await here.http.get(f"/s2s/conversations/{each}/events", params={"limit": 200})).json()
        assert [event["sequence"] for event in events["items"]] == list(range(1, len(events["items"]) + 1))
