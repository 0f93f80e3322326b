"""Merges of two conversations at two nodes at once, and customers' messages at both in the meantime."""

from __future__ import annotations

from typing import Any

import trio

from tests.api.events.test_two_nodes import nodes
from tests.support.api.service import Service

__all__ = ["nodes"]

ROUNDS = 6


async def _post(service: Service, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
    answer = await service.dashboard.post(path, json=body)
    return answer.status_code, answer.json().get("code", "")


async def test_two_nodes_that_merge_in_both_directions_agree(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    for _ in range(ROUNDS):
        one, other = [(await here.create(message={"text": "Hello"}))["id"] for _ in range(2)]
        outcomes = list[tuple[int, str]]()

        async def merge(
            service: Service, source: str, target: str, found: list[tuple[int, str]] = outcomes
        ) -> None:
            found.append(await _post(service, f"/conversations/{source}/merge", {"into": target}))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(merge, here, one, other)
            nursery.start_soon(merge, there, other, one)
        assert min(outcomes) == (200, "")
        assert max(outcomes) in ((409, "conversation_merged"), (409, "conversation_has_merged"))
        into = [(await there.fetch({"id": each})).get("mergedInto") for each in (one, other)]
        assert into in ([other, None], [None, one])


async def test_messages_at_both_nodes_are_stored_once_each(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    one, other = [(await here.create())["id"] for _ in range(2)]
    sent = list[str]()

    async def write(service: Service, name: str) -> None:
        for number in range(20):
            text = f"{name} {number}"
            answer = await service.http.post(f"/s2s/conversations/{one}/messages", json={"text": text})
            assert answer.status_code == 200, answer.text
            sent.append(text)

    async def toggle(service: Service) -> None:
        for _ in range(ROUNDS):
            assert await _post(service, f"/conversations/{one}/merge", {"into": other}) == (200, "")
            assert await _post(service, f"/conversations/{one}/unmerge") == (200, "")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, here, "here")
        nursery.start_soon(write, there, "there")
        nursery.start_soon(toggle, there)
    texts = list[str]()
    for each in (one, other):
        page = await here.http.get(f"/s2s/conversations/{each}/messages", params={"limit": 100})
        texts += [message["text"] for message in page.json()["items"]]
        events = (await here.http.get(f"/s2s/conversations/{each}/events", params={"limit": 200})).json()
        assert [event["sequence"] for event in events["items"]] == list(range(1, len(events["items"]) + 1))
    assert sorted(texts) == sorted(sent)
