"""SIGKILL while conversations are split: both sides of each split are stored, or neither is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.crash.kills.test_kill_during_merges import _created, _fetch
from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long

CONVERSATIONS = 4
KILLS = 4


async def test_both_sides_of_a_split_survive_a_kill_or_neither(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        await server.start()
        demo = server.demo()
        key = {"Authorization": f"Bearer {demo['serverKey']}"}
        user = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
        async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=key, timeout=20) as http:
            sources = [await _created(http, f"u{number}") for number in range(CONVERSATIONS)]
            answered = dict[str, dict[str, Any]]()  # the new conversations by the keys of their requests
            asked = dict[
                str, tuple[str, str]
            ]()  # the conversations and messages of all requests by their keys
            for kill in range(KILLS):
                async with trio.open_nursery() as nursery:
                    for source in sources:
                        nursery.start_soon(_split, http, user, source, f"{source}-{kill}", asked, answered)
                    await trio.sleep(0.02 * (kill + 1))  # in the midst of the splits
                    await server.kill()
                await server.start()
                for source in sources:
                    await _agree(http, source)
            for name, (source, message) in asked.items():
                path, body = f"/conversations/{source}/split", {"messageIds": [message]}
                again = await http.post(path, json=body, headers={**user, "Idempotency-Key": name})
                assert again.status_code == 200, again.text
                assert again.json() == answered.get(name, again.json())
            for source in sources:
                await _agree(http, source)
    finally:
        assert await server.stop() == 0, server.log()


async def _split(
    http: httpx.AsyncClient,
    user: dict[str, str],
    source: str,
    name: str,
    asked: dict[str, tuple[str, str]],
    answered: dict[str, dict[str, Any]],
) -> None:
    """Write as the customer and split the message off, three times or until the service is killed."""
    try:
        for number in range(3):
            said = await http.post(f"/s2s/conversations/{source}/messages", json={"text": name})
            key = f"{name}-{number}"
            asked[key] = source, said.json()["id"]
            path, body = f"/conversations/{source}/split", {"messageIds": [said.json()["id"]]}
            split = await http.post(path, json=body, headers={**user, "Idempotency-Key": key})
            if split.status_code == 200:
                answered[key] = split.json()
    except httpx.TransportError:
        return


async def _agree(http: httpx.AsyncClient, source: str) -> None:
    """Check that a conversation, those split off from it and its messages name each other."""
    into = (await _fetch(http, source)).get("splitInto", [])
    assert isinstance(into, list)
    page = (await http.get(f"/s2s/conversations/{source}/messages", params={"limit": "100"})).json()
    shown = {each["id"]: each["splitInto"] for each in page["items"] if "splitInto" in each}
    assert sorted(shown.values()) == sorted(into)
    for conversation in into:
        assert (await _fetch(http, conversation))["splitFrom"] == source
        thread = (await http.get(f"/s2s/conversations/{conversation}/messages")).json()["items"]
        assert [shown[each["id"]] for each in thread] == [conversation]
    for each in (source, *into):
        events = (await http.get(f"/s2s/conversations/{each}/events", params={"limit": "200"})).json()
        assert [event["sequence"] for event in events["items"]] == list(range(1, len(events["items"]) + 1))
