"""SIGKILL in the middle of a replay: all acknowledged work is there, and every channel continues without a gap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from deskwire.commands.demo.chats import load_chats
from tests.support.replay.api import Api
from tests.support.replay.check import last_sequences, problems, timelines
from tests.support.replay.consumer import Consumer
from tests.support.replay.feed import Feed
from tests.support.replay.history import FEED, STREAM, WEBHOOK, History
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import Receiver
from tests.support.replay.replay import Replay
from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long

REPEATS = 8
CONCURRENCY = 16
OURS = "demo-crash-"
PATIENCE_S = 15.0


async def test_kill_during_a_demo_replay_loses_no_acknowledged_work(tmp_path: Path) -> None:
    server = Server(tmp_path, "--allow-private-webhooks")
    await server.start()
    try:
        history, consumer = await _replay_with_a_kill(server)
        await _the_next_sequence_follows(server, history)
    finally:
        status = await server.stop()
    assert status == 0, server.log()
    outcomes = [command.outcome for command in history.commands]
    assert outcomes.count("acknowledged") > len(outcomes) / 2
    assert consumer.connections == 2
    assert consumer.gaps == 0
    assert problems(history, timelines(history)) == []
    assert len(timelines(history)[STREAM].events) == len(timelines(history)[FEED].events)


async def _replay_with_a_kill(server: Server) -> tuple[History, Consumer]:
    demo = server.demo()
    api = Api(server.url, demo["serverKey"], CONCURRENCY + 4)
    journals = {name: Journal() for name in (WEBHOOK, STREAM, FEED)}
    receiver = Receiver(journals[WEBHOOK])
    consumer = Consumer(api, demo["projectId"], demo["streamKey"], journals[STREAM])
    chats = load_chats(None) * REPEATS
    async with trio.open_nursery() as listening:
        await listening.start(receiver.run)
        endpoint = await api.call("POST", "/s2s/webhooks", {"url": receiver.url, "events": []})
        await listening.start(consumer.run)
        async with trio.open_nursery() as nursery:
            middle = _Middle(nursery, server, len(chats) // 3)
            replay = Replay(api, OURS, middle)
            await replay.run(chats, CONCURRENCY)
        feed = Feed(api, journals[FEED], None)  # the project is new
        await feed.read()
        for name in (STREAM, WEBHOOK):
            assert await journals[name].wait_for(journals[FEED].ids, PATIENCE_S) == 0, name
        finals = await _finals(api, replay.conversations())
        listening.cancel_scope.cancel()
    await api.aclose()
    history = History(
        ours=OURS,
        commands=replay.commands,
        channels={name: journal.arrivals for name, journal in journals.items()},
        secret=endpoint.body["secret"],
        finals=finals,
    )
    return history, consumer


class _Middle:
    """Counts finished chats; at a certain one it kills the server and starts it again."""

    def __init__(self, nursery: trio.Nursery, server: Server, at: int) -> None:
        self._nursery = nursery
        self._server = server
        self._left = at

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._nursery.start_soon(self._crash)

    async def _crash(self) -> None:
        await self._server.kill()
        await self._server.start()


async def _finals(api: Api, conversations: Sequence[str]) -> dict[str, object]:
    finals: dict[str, object] = {}
    for conversation in conversations:
        reply = await api.call("GET", f"/s2s/conversations/{conversation}", repeatable=True)
        finals[conversation] = reply.body
    return finals


async def _the_next_sequence_follows(server: Server, history: History) -> None:
    api = Api(server.url, server.demo()["serverKey"], 1)
    for conversation, last in last_sequences(history, timelines(history)).items():
        patched = await api.call("PATCH", f"/s2s/conversations/{conversation}", {"title": "After the crash"})
        assert (patched.outcome, patched.body["sequence"]) == ("acknowledged", last + 1)
    await api.aclose()
