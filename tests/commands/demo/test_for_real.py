"""The real command, as a process, against a real service."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import Server, environment

pytestmark = pytest.mark.long

BUNDLED = 8


@dataclass
class Outcome:
    status: int
    printed: str
    said: str

    @property
    def figures(self) -> dict[str, Any]:
        return dict(json.loads(self.printed))


async def demo(*options: str) -> Outcome:
    command = [sys.executable, "-m", "deskwire", "demo", *options]
    with trio.fail_after(HANG_TIMEOUT_S):
        done = await trio.run_process(
            command, capture_stdout=True, capture_stderr=True, check=False, env=environment()
        )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path, "--allow-private-webhooks")
    await server.start()
    yield server
    assert await server.stop() == 0, server.log()


async def endpoints(server: Server) -> list[Any]:
    headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    async with httpx.AsyncClient(trust_env=False, headers=headers) as client:
        answer = await client.get(f"{server.url}/v3/s2s/webhooks")
    return list(answer.json()["items"])


async def test_the_bundled_chats_pass_on_a_service_of_the_demos_own() -> None:
    done = await demo("--json")
    assert done.status == 0, done.said + done.printed
    figures = done.figures
    assert (figures["passed"], figures["problems"], figures["chats"]) == (True, [], BUNDLED)
    acknowledged = figures["commands"]["acknowledged"]
    assert acknowledged > 80
    assert set(figures["channels"]) == {"webhook", "stream", "feed"}
    for name, channel in figures["channels"].items():
        assert channel["events"] == figures["events"] > acknowledged
        assert (channel["missing"], channel["duplicates"]) == (0, 0)
        assert channel["badSignatures"] == (0 if name == "webhook" else None)
        assert (channel["latencyMs"] is None) == (name == "feed")
    assert "8 of 8 chats replayed" in done.said


async def test_the_table_for_people_ends_with_one_verdict(server: Server) -> None:
    done = await demo("--url", f"{server.url}/v3/", "--key", server.demo()["serverKey"], "--limit", "2")
    assert done.status == 0, done.said + done.printed
    assert done.printed.splitlines()[-1].startswith("PASSED: ")
    assert all(name in done.printed for name in ("webhook", "stream", "feed", "p99 ms", "bad signatures"))
    assert await endpoints(server) == []


async def test_a_stream_that_loses_one_event_fails_and_is_named(
    server: Server, nursery: trio.Nursery
) -> None:
    proxy = LossyProxy(server.port, b"message.created")
    listener, *_ = await nursery.start(partial(trio.serve_tcp, proxy.serve, 0, host="127.0.0.1"))
    url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
    done = await demo("--json", "--url", url, "--key", server.demo()["serverKey"], "--patience", "1")
    assert proxy.dropped == 1
    assert done.status == 1
    figures = done.figures
    assert not figures["passed"]
    assert [figures["channels"][name]["missing"] for name in ("webhook", "stream", "feed")] == [0, 1, 0]
    assert any(each.startswith("stream: cnv_") for each in figures["problems"])
    assert any(each.startswith("stream: no message.created shows") for each in figures["problems"])


async def test_an_endpoint_that_the_service_refuses_is_reported_with_its_reason(tmp_path: Path) -> None:
    server = Server(tmp_path)  # without --allow-private-webhooks
    await server.start()
    try:
        target = ("--url", server.url, "--key", server.demo()["serverKey"])
        refused = await demo(*target)
        assert refused.status == 1
        assert "refuses the webhook endpoint http://127.0.0.1:" in refused.said
        assert "HTTP 422 invalid_input: /url: " in refused.said
        without = await demo(*target, "--no-webhook", "--json")
        assert without.status == 0, without.said + without.printed
        assert set(without.figures["channels"]) == {"stream", "feed"}
    finally:
        await server.stop()


async def test_a_wrong_key_is_reported_with_the_services_reason(server: Server) -> None:
    done = await demo("--url", server.url, "--key", "sk_wrong")
    assert done.status == 1
    assert "can't be used: HTTP 401" in done.said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_signal_ends_a_demo_in_order_after_an_undisturbed_second_demo(
    server: Server, number: signal.Signals
) -> None:
    target = ("--url", server.url, "--key", server.demo()["serverKey"])
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "deskwire", "demo", *target, "--repeat", "40"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stderr is not None
    with trio.fail_after(HANG_TIMEOUT_S):
        said = b""
        while b"chats replayed" not in said:
            said += await process.stderr.receive_some()
        assert len(await endpoints(server)) == 1
        second = await demo(*target)
        assert second.status == 1
        assert "consumes this project's stream and would be cut off" in second.said
        process.send_signal(number)
        async for more in process.stderr:
            said += more
        assert await process.wait() == 128 + number
    assert said.endswith(b"Stopped.\n")
    assert await endpoints(server) == []


async def test_bad_lines_are_named_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"id": 1}\n{}\n')
    done = await demo(str(file))
    assert done.status == 1
    assert done.said.startswith(f"Error: {file} can't be replayed:\n  line 1: id: ")
    assert "\n  line 2: id: Field required; turns: Field required\n" in done.said


@pytest.mark.parametrize(
    "options", [("--url", "http://x"), ("--key", "sk_1"), ("--url", "x", "--key", "sk_1")]
)
async def test_options_that_do_not_fit_together_are_refused(options: tuple[str, ...]) -> None:
    done = await demo(*options)
    assert done.status == 2
    assert "--url" in done.said


class LossyProxy:
    """Passes connections on, but leaves out one frame of the stream that mentions `word`."""

    def __init__(self, port: int, word: bytes) -> None:
        self.dropped = 0
        self._port = port
        self._word = word

    async def serve(self, client: trio.SocketStream) -> None:
        server = await trio.open_tcp_stream("127.0.0.1", self._port)
        async with client, server, trio.open_nursery() as nursery:
            first = bytes(await client.receive_some())
            await server.send_all(first)
            lossy = first.startswith(b"GET /app/")
            nursery.start_soon(self._forward, client, server, nursery.cancel_scope)
            if lossy:
                await self._frames(server, client)
            else:
                await self._pass(server, client)
            nursery.cancel_scope.cancel()

    async def _forward(
        self, source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        await self._pass(source, sink)
        scope.cancel()

    async def _pass(self, source: trio.SocketStream, sink: trio.SocketStream) -> None:
        try:
            async for data in source:
                await sink.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def _frames(self, source: trio.SocketStream, sink: trio.SocketStream) -> None:
        """Pass on a server's frames, which are not masked: two bytes, perhaps a longer length, and the payload."""
        buffer = bytearray()
        async for data in source:
            buffer += data
            if b"HTTP/1.1" in buffer[:16]:
                head, end, rest = bytes(buffer).partition(b"\r\n\r\n")
                await sink.send_all(head + end)
                buffer = bytearray(rest)
            while (size := _frame_size(buffer)) and len(buffer) >= size:
                frame, buffer = bytes(buffer[:size]), buffer[size:]
                if self._word in frame and not self.dropped:
                    self.dropped += 1
                else:
                    await sink.send_all(frame)


def _frame_size(buffer: bytearray) -> int:
    """Return the first frame's size with its header, 0 if the header is not complete."""
    if len(buffer) < 10 and (len(buffer) < 2 or buffer[1] > 125):
        return 0
    match buffer[1]:
        case 126:
            return 4 + int.from_bytes(buffer[2:4])
        case 127:
            return 10 + int.from_bytes(buffer[2:10])
        case size:
            return 2 + size
