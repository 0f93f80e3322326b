"""`deskwire listen` as a process: every side is killed in the middle, and nothing is missed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import stripe
import trio

from tests.commands.listen.conftest import SECRET, receiving
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver, Request, answering
from tests.support.sockets.server_process import Server, environment, free_port

pytestmark = pytest.mark.long

OK = answering("204 No Content")
USERS = 6
ROUNDS = 12


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path)
    await server.start()
    yield server
    await server.stop()


class Listener:
    """`deskwire listen` on one cursor, over several starts."""

    def __init__(self, server: Server, port: int, *options: str) -> None:
        self.said = b""
        self.printed = b""
        self._options = ("--data", str(server.directory / "data"), "--forward", f"localhost:{port}/")
        self._more = options
        self._state = str(server.directory / "state")
        self._more_said = trio.Event()

    @asynccontextmanager
    async def running(self, *more: str) -> AsyncIterator[trio.Process]:
        """Run a process and gather its output; it gets SIGKILL at the end of the block if it still runs."""
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "deskwire", "listen", *self._options, *self._more, *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment(), "XDG_STATE_HOME": self._state},
        )
        assert process.stdout is not None
        assert process.stderr is not None
        async with process.stdout, process.stderr, trio.open_nursery() as nursery:
            nursery.start_soon(self._gather, process.stderr, "said")
            nursery.start_soon(self._gather, process.stdout, "printed")
            try:
                yield process
            finally:
                with trio.CancelScope(shield=True):
                    process.kill()
                    await process.wait()

    async def _gather(self, stream: trio.abc.ReceiveStream, name: str) -> None:
        async for data in stream:
            setattr(self, name, getattr(self, name) + data)
            self._more_said.set()

    async def until_said(self, words: bytes, times: int) -> None:
        """Return when it has said these words that often."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while self.said.count(words) < times:
                self._more_said = trio.Event()
                await self._more_said.wait()

    async def once(self, *more: str) -> int:
        """Forward what is there; the exit status."""
        with trio.fail_after(HANG_TIMEOUT_S):
            async with self.running("--once", *more) as process:
                return await process.wait()


class Project:
    """The demo project, used through the API."""

    def __init__(self, server: Server) -> None:
        self._base = f"{server.url}/v3/s2s"
        self._headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}

    async def _post(self, paths_and_bodies: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the responses; each call has a connection of its own, because the service may have restarted."""
        made = []
        async with httpx.AsyncClient(headers=self._headers, trust_env=False, timeout=HANG_TIMEOUT_S) as http:
            for path, body in paths_and_bodies:
                answer = await http.post(f"{self._base}{path}", json=body)
                assert answer.status_code == 200, answer.text
                made.append(answer.json())
        return made

    async def start(self) -> list[str]:
        """Start a few conversations."""
        bodies = [{"contact": {"userId": f"u{number}"}} for number in range(USERS)]
        return [each["id"] for each in await self._post([("/conversations", body) for body in bodies])]

    async def say(self, conversations: list[str], rounds: int = 1) -> None:
        """Send a message to each conversation, that many times."""
        paths = [f"/conversations/{each}/messages" for each in conversations]
        await self._post([(path, {"text": "Hello"}) for path in paths] * rounds)


def check(requests: list[Request], conversations: list[str], sequences: int) -> None:
    """Check that every event came, signed, and that conversations are in order but for repeats, which are equal."""
    came: dict[str, list[int]] = defaultdict(list)
    bodies: dict[tuple[str, int], bytes] = {}
    for request in requests:
        stripe.Webhook.construct_event(request.body, request.headers["Service-Signature"], SECRET)
        envelope = json.loads(request.body)
        key = (envelope["data"]["conversation"]["id"], envelope["sequence"])
        assert request.headers["Service-Previous-Sequence"] == str(key[1] - 1)
        assert bodies.setdefault(key, request.body) == request.body
        if key[1] not in came[key[0]]:
            came[key[0]].append(key[1])
    assert came == {each: list(range(1, sequences + 1)) for each in conversations}


async def enough(receiver: Receiver, listener: Listener, count: int) -> None:
    """Return when that many requests have come."""
    try:
        await receiver.wait(count)
    except trio.TooSlowError:
        pytest.fail(listener.said.decode())


async def test_repeatedly_killed_listener_misses_no_event(server: Server) -> None:
    project = Project(server)
    async with receiving(OK) as receiver:
        listener = Listener(server, receiver.port, "--secret", SECRET)
        assert await listener.once() == 0
        conversations = await project.start()
        await project.say(conversations, ROUNDS)
        for kill in range(1, 6):
            async with listener.running():
                await enough(receiver, listener, kill * 9)
        assert await listener.once() == 0
    check(receiver.requests, conversations, 1 + ROUNDS)


async def test_listener_waits_for_a_killed_service_and_misses_no_event(server: Server) -> None:
    async with receiving(OK) as receiver:
        listener = Listener(server, receiver.port, "--secret", SECRET, "--from", "beginning")
        conversations = await Project(server).start()
        async with listener.running():
            for start in range(1, 4):
                await enough(receiver, listener, start * USERS)
                await server.kill()
                await server.start()
                await Project(server).say(conversations)
            await enough(receiver, listener, 4 * USERS)
    check(receiver.requests, conversations, 4)
    assert b"can't be reached: " in listener.said
    assert b"The service is back." in listener.said


async def test_listener_waits_for_a_lost_receiver_and_misses_no_event(server: Server) -> None:
    project, port = Project(server), free_port()
    requests: list[Request] = []
    conversations = await project.start()
    await project.say(conversations, ROUNDS)
    listener = Listener(server, port, "--secret", SECRET, "--from", "beginning")
    async with listener.running():
        for time in range(1, 4):
            async with receiving(OK, port) as receiver:
                await enough(receiver, listener, 7)
            requests += receiver.requests
            await listener.until_said(b"The receiver is down (connection refused), waiting.", time)
        async with receiving(OK, port) as receiver:
            while len({request.body for request in requests}) < USERS * (1 + ROUNDS):
                await enough(receiver, listener, 1)
                requests += receiver.requests
                receiver.requests.clear()
    check(requests, conversations, 1 + ROUNDS)


async def test_ctrl_c_ends_in_order_and_prints_the_cursor(server: Server) -> None:
    project = Project(server)
    async with receiving(OK) as receiver:
        listener = Listener(server, receiver.port, "--from", "beginning")
        await project.start()
        with trio.fail_after(HANG_TIMEOUT_S):
            async with listener.running() as process:
                await enough(receiver, listener, USERS)
                process.send_signal(signal.SIGINT)
                assert await process.wait() == 0
    said = listener.said.decode()
    assert "Signing secret: whsec_" in said
    assert "delivered, 0 failed. The next run continues after evt_" in said.splitlines()[-1]
    assert server.demo()["serverKey"] not in said + listener.printed.decode()


async def test_without_a_terminal_each_event_is_a_line_or_a_json_object(server: Server) -> None:
    project = Project(server)
    conversations = await project.start()
    async with receiving(OK) as receiver:
        plain = Listener(server, receiver.port, "--from", "beginning", "--events", "conversation.created")
        assert await plain.once() == 0
        scripts = Listener(server, receiver.port, "--from", "beginning", "--json")
        assert await scripts.once() == 0
    lines = plain.printed.decode().splitlines()
    expected = [["conversation.created", each, "1", "204"] for each in sorted(conversations)]
    assert sorted(line.split()[:4] for line in lines) == expected
    objects = [json.loads(line) for line in scripts.printed.decode().splitlines()]
    assert {each["conversationId"] for each in objects} == set(conversations)
    assert objects[0].keys() == {
        "eventId",
        "type",
        "conversationId",
        "sequence",
        "deliveryId",
        "result",
        "attempts",
        "status",
        "latencyMs",
        "error",
    }
    assert (objects[0]["result"], objects[0]["status"], objects[0]["attempts"]) == ("delivered", 204, 1)


async def test_table_on_a_terminal_is_updated(server: Server) -> None:
    (conversation, *_) = await Project(server).start()
    async with receiving(OK) as receiver:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "deskwire", "listen", "--data", str(server.directory / "data")]
        options = ["--forward", receiver.url, "--from", "beginning", "--once"]
        environ = {
            **environment(),
            "XDG_STATE_HOME": str(server.directory),
            "TERM": "xterm",
            "COLUMNS": "120",
        }
        process = await trio.lowlevel.open_process([*command, *options], stdout=theirs, env=environ)
        os.close(theirs)
        with trio.fail_after(HANG_TIMEOUT_S):
            assert await process.wait() == 0
        shown = await trio.to_thread.run_sync(_rest, ours)
    for words in ("Type", "Conversation", "Sequence", "Status", "Latency", conversation, "204"):
        assert words in shown
    assert f"{USERS} delivered, 0 failed" in shown


def _rest(terminal: int) -> str:
    """Return everything that was written to a terminal whose other end is closed."""
    shown = b""
    try:
        while data := os.read(terminal, 65_536):
            shown += data
    except OSError:  # Linux says EIO at the end
        pass
    os.close(terminal)
    return shown.decode()


async def test_closed_output_ends_the_command_quietly(server: Server) -> None:
    project = Project(server)
    await project.start()
    async with receiving(OK) as receiver:
        command = [sys.executable, "-m", "deskwire", "listen", "--data", str(server.directory / "data")]
        options = ["--forward", receiver.url, "--from", "beginning"]
        process = await trio.lowlevel.open_process(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment(), "XDG_STATE_HOME": str(server.directory)},
        )
        assert process.stdout is not None
        assert process.stderr is not None
        with trio.fail_after(HANG_TIMEOUT_S):
            async with process.stdout:
                assert (await process.stdout.receive_some()).startswith(b"conversation.created")
            await project.start()
            async with process.stderr:
                said = b"".join([bytes(data) async for data in process.stderr])
            assert await process.wait() == 1
    assert b"Traceback" not in said
