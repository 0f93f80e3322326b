"""The stream of the TypeScript SDK: each event once, over broken connections, restarts and takeovers."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.clients.generating import TOOLS
from tests.examples.running import Example
from tests.interop.proxy import proxying
from tests.sdk.typescript.jobs_run import Jobs, deno
from tests.support.sockets.server_process import Server


class Talk:
    """A conversation, and what a follower has to see of it."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self._api = api
        self._path = ""
        self.wanted: list[str] = []

    async def say(self, text: str) -> None:
        """Begin with a message, or add one."""
        if self._path:
            answer = await self._api.post(f"{self._path}/messages", json={"text": text})
        else:
            body = {"contact": {"userId": "u1"}, "message": {"text": text}}
            answer = await self._api.post("/s2s/conversations", json=body)
            self._path = f"/s2s/conversations/{answer.json()['id']}"
            self.wanted.append("event conversation.created 1 ")
        assert answer.status_code == 200, answer.text
        self.wanted.append(f"event message.created {len(self.wanted) + 1} {text}")

    async def seen(self, example: Example, after: int = 0) -> None:
        """Wait until a follower has seen all after the first `after`, each once and in order."""
        await example.until(1, self.wanted[-1])
        assert example.with_words("event ") == self.wanted[after:]


def environ(server: Server, **more: str) -> dict[str, str]:
    return {"BASE": server.url, "KEY": server.demo()["serverKey"], **more}


@pytest.fixture
def talk(api: httpx.AsyncClient) -> Talk:
    return Talk(api)


@pytest.mark.parametrize("kind", ["node", "ws", "deno"])
async def test_events_arrive_once_over_broken_connections_restarts_and_a_crash(
    jobs: Jobs, server: Server, talk: Talk, tmp_path: Path, kind: str
) -> None:
    jobs = Jobs(jobs.folder, deno()) if kind == "deno" else jobs
    websocket = str(TOOLS / "node_modules/ws/wrapper.mjs") if kind == "ws" else ""
    place = tmp_path / "place"
    async with proxying(server.port) as proxy:
        given = environ(server, BASE=f"http://127.0.0.1:{proxy.port}", FILE=str(place), WS=websocket)
        async with jobs.following("stream", given, tmp_path) as follower:
            await follower.until(1, "state subscribed")
            await talk.say("one")
            await talk.seen(follower)
            for link in list(proxy.links):
                link.cut()
            await talk.say("while the connection is broken")
            await talk.seen(follower)
            await server.stop()
            await server.start()
            await talk.say("after a restart")
            await talk.seen(follower)
            await talk.say("last")
            await talk.seen(follower)
            await follower.end()
        known = len(talk.wanted) - 1  # the last one was printed, but may not be saved
        await talk.say("while it is away")
        async with jobs.following("stream", given, tmp_path) as follower:
            await follower.until(1, talk.wanted[-1])
            assert follower.with_words("event ") in (talk.wanted[known:], talk.wanted[known + 1 :])
            assert not follower.with_words("gap")


async def test_a_takeover_ends_the_previous_consumer_which_returns_as_standby(
    jobs: Jobs, server: Server, talk: Talk, tmp_path: Path
) -> None:
    async with jobs.following("stream", environ(server, CONSUMER="one"), tmp_path) as first:
        await first.until(1, "state subscribed")
        async with jobs.following("stream", environ(server, CONSUMER="two"), tmp_path) as second:
            await second.until(1, "state subscribed")
            await first.until(
                1, "ended StreamEndedError The stream ended with 4009: Superseded by another consumer"
            )
            async with jobs.following("stream", environ(server, CONSUMER="one"), tmp_path) as standby:
                await standby.until(1, "state standby")
                await talk.say("to the second")
                await talk.seen(second)
                second.process.terminate()  # it closes its stream, which frees the channel
                await standby.until(1, "state subscribed")
                await talk.say("to the standby")
                await talk.seen(standby, 2)


async def test_a_gap_is_reported_before_the_events_after_it(
    jobs: Jobs, server: Server, talk: Talk, tmp_path: Path
) -> None:
    (tmp_path / "place").write_text("evt_00000000000000000000000000")
    async with jobs.following("stream", environ(server, FILE=str(tmp_path / "place")), tmp_path) as follower:
        await follower.until(1, "state subscribed")
        await talk.say("one")
        await talk.seen(follower)
        (gap,) = follower.with_words("gap")
        lines = follower.lines
        assert lines.index(gap) < lines.index(talk.wanted[0])


async def test_a_slow_reader_gets_each_event_once(
    jobs: Jobs, server: Server, talk: Talk, tmp_path: Path
) -> None:
    given = environ(server, BUFFER="4", SLOW="yes")
    async with jobs.following("stream", given, tmp_path) as follower:
        await follower.until(1, "state subscribed")
        for number in range(20):
            await talk.say(str(number))
        await talk.seen(follower)
        assert len(follower.with_words("state subscribed")) > 1  # it left, and came back


@pytest.mark.parametrize(
    ("channel", "problem"),
    [("private-nonsense", "403 unknown_channel"), ("private-contact-nobody", "404 contact_not_found")],
)
async def test_a_refused_channel_ends_the_stream(
    jobs: Jobs, server: Server, tmp_path: Path, channel: str, problem: str
) -> None:
    async with jobs.following("stream", environ(server, CHANNEL=channel), tmp_path) as follower:
        (ended,) = await follower.until(1, "ended")
        assert problem in ended
