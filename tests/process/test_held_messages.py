"""A server that is killed while agents hold messages and take them back: each is sent once, or is a draft again, and none is lost."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.storage.check.check import check
from tests.support.node_processes import running_nodes
from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long

_ROUNDS: Final = 6
_AGENTS: Final = 4
_PAUSE_S: Final = 0.02


@dataclass
class Ledger:
    """The texts of messages that were acknowledged as held, and of those that were acknowledged as taken back."""

    held: set[str] = field(default_factory=set)
    back: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)


async def write(http: httpx.AsyncClient, conversation: str, name: str, ledger: Ledger) -> None:
    """Hold messages until the server dies, and take every third one back."""
    for number in range(10_000):
        text, path = f"{name}-{number}.", f"/conversations/{conversation}/messages"
        try:
            answer = await http.post(path, json={"text": text, "holdSeconds": 1})
            assert answer.status_code == 200, answer.text
            ledger.held.add(text)
            if number % 3 == 0:
                ledger.unsure.add(text)
                answer = await http.delete(f"/held-messages/{answer.json()['id']}")
                assert answer.status_code in (200, 409), answer.text
                ledger.unsure.discard(text)
                if answer.status_code == 200:
                    ledger.back.add(text)
        except httpx.TransportError:
            return
        await trio.sleep(_PAUSE_S)  # the agent's own pace: a user may hold a hundred messages


async def settled(http: httpx.AsyncClient) -> None:
    """Return when no message is held."""
    with trio.fail_after(30):
        while (await http.get("/held-messages")).json()["items"]:  # noqa: ASYNC110  # told by polling alone
            await trio.sleep(0.05)


async def judge(http: httpx.AsyncClient, conversations: list[str], ledger: Ledger) -> None:
    """Hold what is there to what was acknowledged."""
    sent, drafts = Counter[str](), Counter[str]()
    for conversation in conversations:
        params: dict[str, str] = {"limit": "200"}
        while True:
            page = (await http.get(f"/conversations/{conversation}/messages", params=params)).json()
            sent.update(each["text"] for each in page["items"])
            if page["nextCursor"] is None:
                break
            params["cursor"] = page["nextCursor"]
        draft: Any = (await http.get(f"/conversations/{conversation}/drafts")).json()["reply"]
        drafts.update(draft["text"].split() if draft else ())
    assert max((*sent.values(), *drafts.values()), default=1) == 1
    assert sent.keys().isdisjoint(drafts)
    assert ledger.back <= drafts.keys()
    assert ledger.held - ledger.back - ledger.unsure <= sent.keys()
    assert ledger.held <= sent.keys() | drafts.keys()


async def until_killed(
    server: Server, http: httpx.AsyncClient, conversations: list[str], round_: int, ledger: Ledger
) -> None:
    """Let agents write for a while, and kill the server in their midst."""
    async with trio.open_nursery() as nursery:
        for agent, conversation in enumerate(conversations):
            nursery.start_soon(write, http, conversation, f"{round_}-{agent}", ledger)
        await trio.sleep(random.Random(round_).uniform(0.5, 2.0))  # some are due by then
        await server.kill()


async def opened(http: httpx.AsyncClient) -> list[str]:
    """Return the ids of new conversations, one for each agent."""
    made = []
    for number in range(_AGENTS):
        answer = await http.post("/conversations", json={"contact": {"userId": f"u{number}"}})
        assert answer.status_code == 200, answer.text
        made.append(answer.json()["id"])
    return made


async def test_a_kill_leaves_each_message_held_sent_or_a_draft(tmp_path: Path) -> None:
    ledger, conversations = Ledger(), list[str]()
    server = Server(tmp_path, environ={"DESKWIRE_RATE_LIMIT_PER_MINUTE": "0"})
    await server.start()
    demo = server.demo()
    headers = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
    url = f"{server.url}/v3"
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=30, trust_env=False) as http:
        conversations = await opened(http)
        for round_ in range(_ROUNDS):
            await until_killed(server, http, conversations, round_, ledger)
            await server.start()
            await settled(http)
        await judge(http, conversations, ledger)
    await server.stop()
    assert len(ledger.held) > len(ledger.back) > 0
    report = await trio.to_thread.run_sync(lambda: check(tmp_path / "data", None, contents=False))
    assert [each for each in report.problems if each.code != "secret_missing"] == []


async def test_a_node_that_dies_leaves_its_messages_to_the_others(tmp_path: Path) -> None:
    ledger = Ledger()
    async with (
        running_nodes(tmp_path, "ab") as nodes,
        nodes.client(0, nodes.token) as first,
        nodes.client(1, nodes.token) as second,
    ):
        for http in (first, second):
            http.headers["project"] = nodes.project
        conversations = await opened(second)
        async with trio.open_nursery() as nursery:
            for agent, conversation in enumerate(conversations):
                nursery.start_soon(write, (first, second)[agent % 2], conversation, f"{agent}", ledger)
            await trio.sleep(3.0)  # some are due by then
            await nodes.servers[0].kill()
            await trio.sleep(1.0)
            nursery.cancel_scope.cancel()
        await settled(second)
        ledger.unsure = ledger.held - ledger.back  # what was cut off may have been either
        await judge(second, conversations, ledger)
    assert ledger.back
