"""Peers that consume memory: the real process stays within bounds, and still serves other clients."""

from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import trio

from tests.support.sockets.server_process import Server

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc"),
]

MUTE, HALF = 200, 1_000
COPIES = 8
"""Copies of a page that a mute peer may cost, including allocator overhead; it requests twenty."""
MIB = 1 << 20
SETTINGS = {"DESKWIRE_ARGON2_MEMORY_KIB": "8192", "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0"}
SLACK = 48 * MIB
"""Memory that a process uses for other reasons: threads, caches, the log's ring buffer, and free blocks of the allocator."""


def resident(server: Server) -> int:
    """Return the resident memory of the process in bytes."""
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) * 1024


@contextmanager
def crowd(server: Server, count: int, said: bytes) -> Iterator[None]:
    """Open `count` connections that send `said` and then neither read nor write."""
    with ExitStack() as stack:
        for _ in range(count):
            each = stack.enter_context(socket.socket())
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.connect(("127.0.0.1", server.port))
            each.sendall(said)
        yield


@pytest.fixture(autouse=True)
def enough_descriptors() -> Iterator[None]:
    """Raise the limit of open files for the connections in this process and the server's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * HALF) if hard > 0 else 4 * HALF, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def flood(server: Server, head: bytes) -> None:
    """Send a head and then 100 MiB of zeros, or as much as the server accepts."""
    async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream:
        try:
            await stream.send_all(head)
            for _ in range(100):
                await stream.send_all(bytes(MIB))
        except trio.BrokenResourceError:
            pass  # the server has closed the connection


async def test_hostile_peers_take_a_bounded_amount_of_memory(tmp_path: Path) -> None:
    """Use one service for all kinds of peers, because its start is slow."""
    server = Server(tmp_path, environ=SETTINGS)
    await server.start()
    try:
        key, stream_key = server.demo()["serverKey"], server.demo()["streamKey"]
        headers = {"Authorization": f"Bearer {key}"}
        url = f"{server.url}/v3"
        async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as http:
            made = await http.post("/s2s/conversations", json={"contact": {"userId": "u"}})
            messages = f"/s2s/conversations/{made.json()['id']}/messages"
            for _ in range(50):
                await http.post(messages, json={"text": "x" * 5_000})
            page = len((await http.get(f"{messages}?limit=200")).content)
            before = resident(server)

            request = (
                f"GET /v3{messages}?limit=200 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
            )
            with crowd(server, MUTE, request.encode() * 20):  # of which one is answered after the other
                for _ in range(20):
                    assert (await http.get(messages)).status_code == 200
                assert resident(server) - before < MUTE * COPIES * page + SLACK

            with crowd(server, HALF, b"POST /v3/s2s/conversations HTTP/1.1\r\nX-Half: " + b"x" * 8_000):
                for _ in range(20):
                    assert (await http.get(messages)).status_code == 200
                assert resident(server) - before < MUTE * COPIES * page + HALF * 64 * 1024 + SLACK

            before = resident(server)
            upgrade = (
                f"GET /app/{stream_key}?protocol=7 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            frame = bytes((0x81, 0xFF)) + (100 * MIB).to_bytes(8) + bytes(4)
            await flood(server, upgrade.encode() + frame)
            post = f"POST /v3{messages} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            await flood(server, f"{post}Content-Length: {100 * MIB}\r\n\r\n".encode())
            await flood(server, f"{post}Transfer-Encoding: chunked\r\n\r\n{100 * MIB:x}\r\n".encode())
            assert (await http.get(messages)).status_code == 200
            assert resident(server) - before < SLACK
    finally:
        assert await server.stop() == 0, server.log()
    assert "Traceback" not in server.log()
