"""The front: where connections go, and that no client can hold its stop."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest
import trio
from wsproto.events import TextMessage

from deskwire.engine.stream.token import Grant, issue
from deskwire.http.server.listener import FrontLimits
from deskwire.http.transport.connection import FrontStream
from deskwire.http.transport.connection_slots import Connections
from tests.support.deadlines import HANG_TIMEOUT_S, fail_after_idle
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.streaming import (
    CHANNEL,
    KEY,
    KEY_ID,
    NOON,
    PROJECT_ID,
    STREAM_KEY,
    Front,
    Stage,
    delay_turns,
    real_front,
    real_stage,
    small_app,
)


async def answer(stream: trio.SocketStream) -> bytes:
    """All that comes until the server closes."""
    parts = [part async for part in stream]
    return b"".join(bytes(part) for part in parts)


async def stopped_in(front: Front, bound_s: float) -> None:
    """Stop the front, and fail if it takes longer than the bound."""
    front.stop.set()
    with fail_after_idle(bound_s):
        await front.stopped.wait()


async def test_everything_but_the_stream_goes_to_the_application(front: Front) -> None:
    stream = await front.raw()
    await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (await answer(stream)).endswith(b"/hello\r\n0\r\n\r\n")


async def test_request_in_single_bytes_is_routed(front: Front) -> None:
    for target, expected in ((b"/app", b"/app"), (b"/app/x", b"426 Upgrade Required")):
        stream = await front.raw()
        for byte in b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
            await stream.send_all(bytes((byte,)))
            await trio.lowlevel.checkpoint()
        await stream.send_eof()
        assert expected in await answer(stream)


async def test_the_stop_waits_for_no_client_that_does_not_read_its_answer(front: Front) -> None:
    """Hypercorn shields its writes: without a timeout this client would delay the stop without limit."""
    stream = await front.raw()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await stream.send_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await stream.receive_some(15) == b"HTTP/1.1 200 \r\n"
    await stopped_in(front, 2.5)


async def test_stop_waits_for_no_request_that_is_never_answered_or_never_ends(front: Front) -> None:
    for request in (
        b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1",
        b"GET /half HTTP/1.1\r\nHo",
        b"GET /app/half HTTP/1.1\r\nHo",
        b"GET",
        b"",
    ):
        stream = await front.raw()
        await stream.send_all(request)
    await trio.testing.wait_all_tasks_blocked(0.05)
    await stopped_in(front, 3.5)


async def test_the_stop_is_immediate_when_only_idle_connections_are_left(front: Front) -> None:
    stream = await front.raw()
    await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"/hello" in bytes(await stream.receive_some()) + bytes(await stream.receive_some())
    await stopped_in(front, 0.8)


async def test_a_stream_request_that_never_ends_does_not_hold_the_stop(front: Front) -> None:
    for request in (b"GET /app/shop-stream HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /app/half HTTP/1.1\r\nHo"):
        stream = await front.raw()
        await stream.send_all(request)
    await trio.testing.wait_all_tasks_blocked(0.05)
    await stopped_in(front, 1.5)


async def test_a_consumer_that_never_reads_does_not_hold_the_stop(stage: Stage, front: Front) -> None:
    """Decisions 5: sockets are closed within a bound that no client can stretch."""
    raw = await front.raw()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer = RawPeer(raw)
    await peer.open()
    socket_id = orjson.loads((await peer.message())["data"])["socket_id"]
    grant = Grant(PROJECT_ID, KEY_ID, socket_id, CHANNEL, "c1")
    data = {"channel": CHANNEL, "auth": f"{STREAM_KEY}:{issue(KEY, grant, now_ms=NOON)}"}
    await peer.send(TextMessage(orjson.dumps({"event": "pusher:subscribe", "data": data}).decode()))
    assert (await peer.message())["event"] == "pusher_internal:subscription_succeeded"
    await stage.emit(200, padding=60_000)
    await trio.testing.wait_all_tasks_blocked(0.05)
    await stopped_in(front, 3.5)


async def test_no_connection_is_accepted_after_the_stop(front: Front) -> None:
    await stopped_in(front, 1)
    with pytest.raises(OSError, match="all attempts to connect"):
        await front.raw()


@pytest.mark.parametrize("request_line", [b"GET /hello HTTP/1.1", b"GET /app/shop-stream HTTP/1.1"])
async def test_connection_accepted_before_the_stop_gets_its_response(
    front: Front, request_line: bytes
) -> None:
    """ADR 38: a restart turns away no accepted client."""
    stream = await front.raw()
    await trio.testing.wait_all_tasks_blocked(0.05)
    front.stop.set()
    await trio.testing.wait_all_tasks_blocked(0.05)
    await stream.send_all(request_line + b"\r\nHost: x\r\n\r\n")
    assert (await stream.receive_some()).startswith((b"HTTP/1.1 200", b"HTTP/1.1 426"))
    with fail_after_idle(2):
        await front.stopped.wait()


async def test_connection_queued_before_the_stop_gets_its_response(front: Front) -> None:
    """Closing a listener resets what waits to be accepted."""
    with ExitStack() as open_sockets:
        waiting = [
            open_sockets.enter_context(socket.create_connection(("127.0.0.1", front.port))) for _ in range(40)
        ]
        for each in waiting:
            each.sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
        front.stop.set()  # nothing was awaited in between: none of them is accepted
        for each in waiting:
            async with trio.SocketStream(trio.socket.from_stdlib_socket(each)) as stream:
                assert (await answer(stream)).endswith(b"/hello\r\n0\r\n\r\n")
    with fail_after_idle(2):
        await front.stopped.wait()


async def test_silent_connection_delays_the_stop_only_briefly(front: Front) -> None:
    await front.raw()
    await trio.testing.wait_all_tasks_blocked(0.05)
    await stopped_in(front, 1.5)


async def test_websocket_accepted_before_the_stop_is_asked_to_reconnect(
    front: Front,
) -> None:
    """ADR 38: pusher-js waits for 15 s after an attempt that ends before it is answered."""
    peer, request = RawPeer(await front.raw()), upgrade()
    await peer.stream.send_all(request[:40])
    await trio.testing.wait_all_tasks_blocked(0.05)
    front.stop.set()
    await trio.testing.wait_all_tasks_blocked(0.05)
    await peer.open(request[40:])
    assert await peer.close_code() == 4200


@pytest.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[Front]:
    """A front that serves two connections at a time."""
    limits = FrontLimits(peek_s=0.2, requests_s=1, shutdown_s=2)
    async with (
        real_stage(tmp_path, lambda: NOON) as stage,
        real_front(stage, small_app, limits, connections=Connections(2)) as front,
    ):
        yield front


async def test_idle_connection_makes_room_for_a_new_one(narrow: Front) -> None:
    first, second = await narrow.connect(), await narrow.connect()
    third = await narrow.raw()
    await third.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"/hello" in await answer(third)
    assert await first.closed() == 1006
    await second.subscribe("c1")


async def test_silent_connection_is_closed_and_releases_its_slot(narrow: Front) -> None:
    """Slow first bytes are bounded by `peek_s`."""
    silent = [await narrow.raw() for _ in range(4)]
    for stream in silent:
        assert await stream.receive_some() == b""
    assert (await narrow.connect()).socket_id


async def test_wait_for_a_turn_does_not_count_as_the_clients_delay(
    narrow: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifteen hundred connections at once wait longer for their turns than a client may take for its first bytes."""
    delay_turns(monkeypatch, 0.5)  # longer than `peek_s`
    client = await narrow.raw()
    await trio.testing.wait_all_tasks_blocked(0.05)
    await client.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"/hello" in await answer(client)


async def test_closed_connection_releases_its_slot_long_before_the_head_timeout(
    tmp_path: Path,
) -> None:
    limits, connections = FrontLimits(requests_s=1, shutdown_s=2), Connections(9)
    async with (
        real_stage(tmp_path, lambda: NOON) as stage,
        real_front(stage, small_app, limits, connections=connections, head_s=3_600) as front,
    ):
        left, coming = await front.raw(), await front.raw()
        request = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
        await left.send_all(request)
        assert b"200" in await left.receive_some(15)
        await left.aclose()
        await coming.send_all(request)
        with trio.fail_after(HANG_TIMEOUT_S):  # far below the hour, far above what it takes
            assert b"200" in await coming.receive_some(15)


async def test_a_write_out_of_time_breaks_the_connection_even_within_a_shield() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    client = await trio.open_tcp_stream("127.0.0.1", listeners[0].socket.getsockname()[1])
    stream = FrontStream(await listeners[0].accept(), write_timeout_s=60)
    async with client, stream, listeners[0], trio.open_nursery() as nursery:

        async def write() -> None:
            with trio.CancelScope(shield=True), pytest.raises(trio.BrokenResourceError):
                await stream.send_all(bytes(2**27))

        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked(0.05)
        stream.limit_writes(trio.current_time() + 0.1)


async def test_bytes_pushed_back_come_first_and_in_order() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    client = await trio.open_tcp_stream("127.0.0.1", listeners[0].socket.getsockname()[1])
    async with client, FrontStream(await listeners[0].accept(), write_timeout_s=1) as stream, listeners[0]:
        await client.send_all(b"def")
        stream.push_back(b"abc")
        assert [await stream.receive_some(2), await stream.receive_some(2)] == [b"ab", b"c"]
        assert await stream.receive_some(9) == b"def"


def test_requests_must_get_less_time_than_the_whole_stop() -> None:
    with pytest.raises(ValueError, match="requests_s"):
        FrontLimits(requests_s=20, shutdown_s=20)
