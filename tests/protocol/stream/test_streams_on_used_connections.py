"""A connection that has carried plain requests may become a stream, as a proxy's kept ones do (ADR 7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import trio
from wsproto.events import CloseConnection, TextMessage

from deskwire.http.stream.pusher import SHUTTING_DOWN
from tests.protocol.test_fast_path import BY_QUART, Peer, by_lane, peer, request
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S, fail_after_idle
from tests.support.sockets.certificates import Files
from tests.support.sockets.raw_peer import RawPeer, upgrade

TE: Final = ": ".join(BY_QUART)
PING: Final = TextMessage('{"event":"pusher:ping"}')


def opening(service: Service) -> bytes:
    """The upgrade that a client of this service sends."""
    return upgrade("?protocol=7", service.demo["streamKey"])


async def used(connection: Peer, service: Service, *headers: str, times: int = 1) -> list[bool]:
    """Send plain requests on a connection; return which of them the fast path answered."""
    lanes = []
    for _ in range(times):
        await connection.stream.send_all(request(service, "/v3/s2s/project", b"", *headers, method="GET"))
        head, _ = await connection.answer()
        assert head.status_code == 200
        lanes.append(by_lane(head))
    return lanes


async def subscribed(service: Service, ws: RawPeer) -> None:
    """Subscribe to the project's channel over an upgraded connection, and receive an event."""
    socket_id = orjson.loads((await ws.message())["data"])["socket_id"]
    channel = f"private-project-{service.demo['projectId']}"
    asked = {"socket_id": socket_id, "channel_name": channel, "consumerId": "c1"}
    auth = (await service.http.post("/s2s/stream/auth", json=asked)).json()["auth"]
    data = {"channel": channel, "auth": auth}
    await ws.send(TextMessage(orjson.dumps({"event": "pusher:subscribe", "data": data}).decode()))
    assert (await ws.message())["event"] == "pusher_internal:subscription_succeeded"
    await service.create()
    assert (await ws.message())["event"] == "conversation.created"


@pytest.mark.parametrize(
    ("before", "lanes"),
    [
        ([()], [True]),
        ([()] * 20, [True] * 20),
        ([(TE,)], [False]),
        ([(), (TE,), ()], [True, False, True]),
    ],
    ids=["one", "many", "by Quart", "by both"],
)
async def test_an_upgrade_after_plain_requests_is_served_as_on_a_fresh_connection(
    service: Service, before: list[tuple[str, ...]], lanes: list[bool]
) -> None:
    async with peer(service) as connection:
        assert [(await used(connection, service, *headers))[0] for headers in before] == lanes
        ws = RawPeer(connection.stream)
        assert (await ws.open(opening(service))).startswith(b"HTTP/1.1 101 ")
        await subscribed(service, ws)
        await ws.send(CloseConnection(1000))
        assert await ws.close_code() == 1000
        assert await ws.event() is None


@pytest.mark.parametrize("headers", [(), (TE,)], ids=["lane", "Quart"])
async def test_frames_sent_with_the_upgrade_are_processed(service: Service, headers: tuple[str, ...]) -> None:
    """Respond to a request, the upgrade and a frame in one write, in order."""
    first = request(service, "/v3/s2s/project", b"", *headers, method="GET")
    async with peer(service) as connection:
        ws = RawPeer(connection.stream)
        await connection.stream.send_all(first + opening(service) + ws.wire.send(PING))
        said = b""
        while b"pusher:pong" not in said:
            said += await connection.stream.receive_some()
        assert said.index(b"200") < said.index(b"101 Switching") < said.index(b"connection_established")


@pytest.mark.parametrize("headers", [(), (TE,)], ids=["lane", "Quart"])
async def test_upgrade_sent_byte_by_byte_on_a_used_connection_is_served(
    service: Service, headers: tuple[str, ...]
) -> None:
    async with peer(service) as connection:
        await used(connection, service, *headers)
        for byte in opening(service)[:-1]:
            await connection.stream.send_all(bytes((byte,)))
            await trio.lowlevel.checkpoint()
        ws = RawPeer(connection.stream)
        assert b"101" in await ws.open(opening(service)[-1:])
        await subscribed(service, ws)


@pytest.mark.parametrize("headers", [(), (TE,)], ids=["lane", "Quart"])
async def test_missing_upgrade_is_refused_the_same_on_used_and_fresh_connections(
    service: Service, headers: tuple[str, ...]
) -> None:
    bare = f"GET /app/{service.demo['streamKey']} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    async with peer(service) as connection:
        await used(connection, service, *headers)
        await connection.stream.send_all(bare)
        head, body = await connection.answer()
        assert (head.status_code, orjson.loads(body)["code"]) == (426, "upgrade_required")
        assert await connection.closed()


@pytest.mark.parametrize("before", [None, (), (TE,)], ids=["fresh", "lane", "Quart"])
@pytest.mark.parametrize(
    ("right", "wrong", "status"),
    [(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 426), (b"dGhlIHNhbXBsZSBub25jZQ==", b"dGhlIHNhbXBsZSBub25j", 400)],
    ids=["version", "key"],
)
async def test_invalid_upgrade_is_refused_with_a_reason_and_closed(
    service: Service, before: tuple[str, ...] | None, right: bytes, wrong: bytes, status: int
) -> None:
    """RFC 6455 4.2.1."""
    async with peer(service) as connection:
        if before is not None:
            await used(connection, service, *before)
        await connection.stream.send_all(opening(service).replace(right, wrong))
        head, body = await connection.answer()
        assert (head.status_code, orjson.loads(body)["status"]) == (status, status)
        with fail_after_idle(3):
            assert await connection.closed()


@pytest.mark.parametrize("headers", [(), (TE,)], ids=["lane", "Quart"])
async def test_unknown_app_key_gets_a_close_code_on_a_used_connection_too(
    service: Service, headers: tuple[str, ...]
) -> None:
    """Pusher protocol, connecting: the upgrade is accepted first."""
    async with peer(service) as connection:
        await used(connection, service, *headers)
        ws = RawPeer(connection.stream)
        await ws.open(upgrade("?protocol=7", "no-such-app"))
        assert await ws.close_code() == 4001


@pytest.mark.parametrize("headers", [(), (TE,)], ids=["lane", "Quart"])
async def test_shutdown_closes_a_stream_on_a_used_connection_with_its_code(
    service: Service, headers: tuple[str, ...]
) -> None:
    async with peer(service) as connection:
        await used(connection, service, *headers)
        ws = RawPeer(connection.stream)
        await ws.open(opening(service))
        await subscribed(service, ws)
        service.stop()
        assert await ws.close_code() == SHUTTING_DOWN.code


@pytest.mark.parametrize("headers", [(), (TE,)], ids=["lane", "Quart"])
async def test_stream_on_a_used_connection_outlives_request_timeouts(
    tmp_path: Path, headers: tuple[str, ...]
) -> None:
    """Lift the timeouts for a request's head and for idle connections, which applied before the upgrade."""
    bounds = {"idle_connection_s": 0.2, "head_timeout_s": 0.2}
    async with running(tmp_path, **bounds) as service, peer(service) as connection:
        await used(connection, service, *headers)
        ws = RawPeer(connection.stream)
        await ws.open(opening(service))
        await ws.message()
        with trio.move_on_after(
            0.6
        ) as watched:  # waits for three times the timeouts, because no event is expected
            await ws.event()
        assert watched.cancelled_caught
        await ws.send(PING)
        assert (await ws.message())["event"] == "pusher:pong"


@asynccontextmanager
async def secured(files: Files, service: Service) -> AsyncIterator[trio.SSLStream[trio.SocketStream]]:
    """Yield a connection over TLS."""
    host, _, port = service.url.removeprefix("https://").rpartition(":")
    stream = await trio.open_ssl_over_tcp_stream(
        host, int(port), ssl_context=files.trust, https_compatible=True
    )
    async with stream:
        with trio.fail_after(HANG_TIMEOUT_S):
            yield stream


@pytest.mark.parametrize("headers", [(), (TE,)], ids=["lane", "Quart"])
async def test_streams_on_used_connections_work_with_tls(tmp_path: Path, headers: tuple[str, ...]) -> None:
    files = Files(tmp_path)
    settings: dict[str, Any] = {"tls_cert": files.chain, "tls_key": files.key}
    async with (
        running(tmp_path / "data", files.trust, **settings) as service,
        secured(files, service) as stream,
    ):
        connection = Peer(stream)  # type: ignore[arg-type]  # it needs what both have
        await used(connection, service, *headers, times=3)
        ws = RawPeer(stream)
        await ws.open(opening(service))
        await subscribed(service, ws)
