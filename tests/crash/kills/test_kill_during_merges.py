"""SIGKILL while conversations are merged and separated: both sides of each merge are stored, or neither is."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import trio

from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long

PAIRS = 6
KILLS = 4


async def test_both_sides_of_a_merge_survive_a_kill_or_neither(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        await server.start()
        demo = server.demo()
        key = {"Authorization": f"Bearer {demo['serverKey']}"}
        user = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
        pairs = []
        async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=key, timeout=20) as http:
            for number in range(PAIRS):
                pairs.append([await _created(http, f"u{number}") for _ in range(2)])
            sent = {each: ["Hello"] for pair in pairs for each in pair}
            for kill in range(KILLS):
                async with trio.open_nursery() as nursery:
                    for source, target in pairs:
                        nursery.start_soon(_toggle, http, user, source, target)
                        nursery.start_soon(_write, http, source, f"message {kill}", sent)
                    await trio.sleep(0.02 * (kill + 1))  # in the midst of the merges
                    await server.kill()
                await server.start()
                for source, target in pairs:
                    into = (await _fetch(http, source)).get("mergedInto")
                    shown = (await _fetch(http, target)).get("merged")
                    assert (into, shown) in ((None, None), (target, [source]))
            for source, target in pairs:
                await http.post(f"/conversations/{source}/unmerge", headers=user)
                texts = [text for each in (source, target) for text in await _texts(http, each)]
                assert len(texts) == len(set(texts) - {"Hello"}) + 2
                assert set(texts) >= {*sent[source], *sent[target]}
                for each in (source, target):
                    events = (await http.get(f"/s2s/conversations/{each}/events")).json()["items"]
                    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    finally:
        assert await server.stop() == 0, server.log()


async def _toggle(http: httpx.AsyncClient, user: dict[str, str], source: str, target: str) -> None:
    """Merge and separate two conversations until the service is killed."""
    try:
        while True:
            await http.post(f"/conversations/{source}/merge", json={"into": target}, headers=user)
            await http.post(f"/conversations/{source}/unmerge", headers=user)
    except httpx.TransportError:
        return


async def _write(http: httpx.AsyncClient, source: str, text: str, sent: dict[str, list[str]]) -> None:
    """Write as the customer until the service is killed; note the messages that were answered."""
    number = 0
    try:
        while True:
            number += 1
            said = f"{text}.{number}"
            answer = await http.post(f"/s2s/conversations/{source}/messages", json={"text": said})
            if answer.status_code == 200:
                sent[source].append(said)
    except httpx.TransportError:
        return


async def _created(http: httpx.AsyncClient, user: str) -> str:
    body = {"contact": {"userId": user}, "message": {"text": "Hello"}}
    answer = await http.post("/s2s/conversations", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def _fetch(http: httpx.AsyncClient, conversation: str) -> dict[str, object]:
    answer = await http.get(f"/s2s/conversations/{conversation}")
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


async def _texts(http: httpx.AsyncClient, conversation: str) -> list[str]:
    found, cursor = list[str](), None
    while True:
        params = {"limit": "100"} if cursor is None else {"limit": "100", "cursor": cursor}
        page = (await http.get(f"/s2s/conversations/{conversation}/messages", params=params)).json()
        found += [each["text"] for each in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            return found
