"""An exception in one connection, of any kind, ends that connection only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed

from deskwire.http.stream.protocol import PusherProtocol
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.failures import BREAKS, CANCELLATIONS, Failures, failures_logged
from tests.support.streaming import Client, Front, Stage, real_front, small_app

Break = Callable[[], Awaitable[None]]


@pytest.fixture
def failures() -> Iterator[Failures]:
    """Return the failures logged since the last call."""
    with failures_logged() as since:
        yield since


async def closed(client: Client) -> None:
    """Return when the server has closed, or cut, the connection."""
    with pytest.raises(ConnectionClosed):
        await client.hear_out()


@pytest.mark.parametrize("broken", BREAKS)
async def test_exception_of_the_application_ends_one_connection(stage: Stage, broken: Break) -> None:
    """An application that raises; the service's own application catches every exception."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/broken":
            await broken()
        await small_app(scope, receive, send)

    with trio.fail_after(HANG_TIMEOUT_S):
        async with real_front(stage, app) as front:
            consumer = await front.connect()
            await consumer.subscribe("c1")
            for _ in range(2):
                stream = await front.raw()
                await stream.send_all(b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n")
                said = b"".join([bytes(part) async for part in stream])
                assert said == b"" or said.startswith(b"HTTP/1.1 500 ")
            await still_serves(front, stage, consumer)


@pytest.mark.parametrize("broken", BREAKS)
async def test_exception_of_a_stream_connection_ends_one_connection(
    stage: Stage, front: Front, monkeypatch: pytest.MonkeyPatch, failures: Failures, broken: Break
) -> None:
    receive = PusherProtocol.receive

    async def breaking(self: PusherProtocol, text: str) -> None:
        if "break" in text:
            await broken()
        await receive(self, text)

    monkeypatch.setattr(PusherProtocol, "receive", breaking)
    with trio.fail_after(HANG_TIMEOUT_S):
        consumer, client = await front.connect(), await front.connect()
        await consumer.subscribe("c1")
        await client.say("break", {})
        await closed(client)
        await still_serves(front, stage, consumer)
    told = [(entry["event"], entry["socket_id"]) for entry in failures()]
    assert told == ([] if broken in CANCELLATIONS else [("stream.connection_failed", client.socket_id)])


@pytest.mark.parametrize("broken", BREAKS)
async def test_exception_in_a_task_of_a_stream_connection_ends_one_connection(
    stage: Stage, front: Front, monkeypatch: pytest.MonkeyPatch, failures: Failures, broken: Break
) -> None:
    receive = PusherProtocol.receive

    async def breaking(self: PusherProtocol, text: str) -> None:
        if "break" in text:
            self.session.spawn(broken)
        await receive(self, text)

    monkeypatch.setattr(PusherProtocol, "receive", breaking)
    with trio.fail_after(HANG_TIMEOUT_S):
        consumer, client = await front.connect(), await front.connect()
        await consumer.subscribe("c1")
        await client.say("break", {})
        await closed(client)
        await still_serves(front, stage, consumer)
    told = [(entry["event"], entry["socket_id"]) for entry in failures()]
    assert told == ([] if broken in CANCELLATIONS else [("stream.connection_failed", client.socket_id)])


async def still_serves(front: Front, stage: Stage, consumer: Client) -> None:
    """Check that earlier and new connections are served."""
    await stage.emit()
    assert len(await consumer.numbers(1)) == 1
    stream = await front.raw()
    await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"/hello" in b"".join([bytes(part) async for part in stream])
