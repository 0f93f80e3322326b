"""A server that is killed while agents hold messages and take them back: each is sent once, or is a draft again, and none is lost."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio

from deskwire.storage.sqlite.check import check
from tests.crash.held import HeldLedger, became, drafted, hold_one, settled
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.node_processes import running_nodes
from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long

_ROUNDS: Final = 6
_AGENTS: Final = 4
_PAUSE_S: Final = 0.02


async def write(http: httpx.AsyncClient, conversation: str, name: str, ledger: HeldLedger) -> None:
    """Hold and schedule messages until the server dies, and take every third one back."""
    for number in range(10_000):
        try:
            text, back = f"{name}-{number}.", number % 3 == 0
            await hold_one(http, conversation, text, ledger, back=back, scheduled=number % 2 == 1)
        except httpx.TransportError:
            return
        await trio.sleep(_PAUSE_S)  # the agent's own pace: a user may hold a hundred messages


async def judge(http: httpx.AsyncClient, conversations: list[str], ledger: HeldLedger) -> None:
    """Compare the stored messages with the acknowledged ones."""
    sent, drafts = Counter[str](), Counter[str]()
    waiting = await settled(http, 30)
    for conversation in conversations:
        params: dict[str, str] = {"limit": "200"}
        while True:
            page = (await http.get(f"/conversations/{conversation}/messages", params=params)).json()
            sent.update(each["text"] for each in page["items"])
            if page["nextCursor"] is None:
                break
            params["cursor"] = page["nextCursor"]
        drafts.update(await drafted(http, conversation))
    assert list(became(ledger, sent, drafts, waiting)) == []


async def until_killed(
    server: Server, http: httpx.AsyncClient, conversations: list[str], round_: int, ledger: HeldLedger
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
    ledger, conversations = HeldLedger(), list[str]()
    server = Server(tmp_path, environ={"DESKWIRE_RATE_LIMIT_PER_MINUTE": "0"})
    await server.start()
    demo = server.demo()
    headers = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
    url = f"{server.url}/v3"
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=HANG_TIMEOUT_S, trust_env=False
    ) as http:
        conversations = await opened(http)
        for round_ in range(_ROUNDS):
            await until_killed(server, http, conversations, round_, ledger)
            await server.start()
            assert not await settled(http, 30)
        await judge(http, conversations, ledger)
    await server.stop()
    assert len(ledger.held) > len(ledger.back) > 0
    report = await trio.to_thread.run_sync(lambda: check(tmp_path / "data", None, contents=False))
    assert [each for each in report.problems if each.code != "secret_missing"] == []


async def test_a_node_that_dies_leaves_its_messages_to_the_others(tmp_path: Path) -> None:
    ledger = HeldLedger()
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
        assert not await settled(second, 30)
        ledger.unsure = ledger.held - ledger.back  # a call that was cut off may have had either result
        await judge(second, conversations, ledger)
    assert ledger.back
