"""Clients that are slow on purpose cost little, and nobody waits for them."""

from __future__ import annotations

import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio

from tests.serving import LOOK_S, Server

from .conftest import Service, running
from .test_metrics import Figures

KINDS: Final = 4
DESCRIPTORS_LEFT: Final = 200
BYTES_EACH: Final = 120_000
"""What one of them may cost the service, with all that Python and Hypercorn keep for a connection."""


def clients_max() -> int:
    """How many sockets this process may have: a thousand, unless the system says less."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(1_000, soft - DESCRIPTORS_LEFT)


class Crowd:
    """Slow clients of every kind: silent, with half a head, half a body, and such that never read."""

    def __init__(self, port: int, key: str, stack: ExitStack) -> None:
        authority = f"Host: x\r\nAuthorization: Bearer {key}\r\n".encode()
        body = b"POST /v3/s2s/conversations HTTP/1.1\r\n" + authority + b"Content-Type: application/json\r\n"
        self._openings = (
            b"",
            b"GET /v3/s2s/project HTTP/1.1\r\nX-Slow: ",
            body + b"Content-Length: 100000\r\n\r\n",
            b"GET /v3/s2s/project HTTP/1.1\r\n" + authority + b"\r\n",
        )
        self._address = ("127.0.0.1", port)
        self._stack = stack
        self._dripping: list[socket.socket] = []

    def join(self, count: int) -> None:
        """Connect so many of them."""
        for number in range(count):
            peer = self._stack.enter_context(socket.create_connection(self._address))
            kind = number % KINDS
            peer.sendall(self._openings[kind])
            peer.setblocking(False)
            if kind in (1, 2):
                self._dripping.append(peer)

    def drip(self) -> int:
        """A byte of each that has not said everything; how many the service still lets."""
        return sum(_sent(peer) for peer in self._dripping)


def _sent(peer: socket.socket) -> bool:
    try:
        return bool(peer.send(b" "))
    except OSError:
        return False


@contextmanager
def crowd(port: int, key: str) -> Iterator[Crowd]:
    """Slow clients, all gone at the end."""
    with ExitStack() as stack:
        yield Crowd(port, key, stack)


async def test_a_thousand_slow_clients_cost_little_and_stop_nobody(tmp_path: Path) -> None:
    server, count = Server(tmp_path, "--allow-private-webhooks"), clients_max()
    try:
        await server.start()
        key = server.demo()["serverKey"]
        async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=20) as http:
            http.headers["Authorization"] = f"Bearer {key}"
            await http.post("/v3/s2s/conversations", json={"contact": {"userId": "first"}})
            before = await figures(http)
            with crowd(server.port, key) as slow:
                slow.join(count)
                for turn in range(5):
                    assert slow.drip() == count // 2
                    body = {"contact": {"userId": f"u{turn}"}}
                    answer = await http.post("/v3/s2s/conversations", json=body)
                    assert answer.status_code == 200, answer.text
                after = await figures(http)
                assert after("process_open_fds") - before("process_open_fds") >= count
                assert after("http_requests_under_way") == 0
            grown = after("process_resident_memory_bytes") - before("process_resident_memory_bytes")
            assert grown < count * BYTES_EACH
    finally:
        await server.stop()


async def figures(http: httpx.AsyncClient) -> Figures:
    return Figures((await http.get("/metrics", headers={"Authorization": ""})).text)


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Service]:
    async with running(tmp_path, head_timeout_s=0.3, body_timeout_s=0.3) as service:
        yield service


def port_of(service: Service) -> int:
    return int(service.url.rpartition(":")[2])


async def test_a_head_that_never_ends_is_cut_off_however_steadily_it_drips(hasty: Service) -> None:
    with crowd(port_of(hasty), hasty.demo["serverKey"]) as slow, trio.fail_after(20):
        slow.join(8)
        while slow.drip():  # noqa: ASYNC110  # sockets that are closed ring no bell
            await trio.sleep(LOOK_S)  # real time: the sockets are the kernel's


async def test_a_connection_that_is_used_again_has_its_time_for_each_head(hasty: Service) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with await trio.open_tcp_stream("127.0.0.1", port_of(hasty)) as stream:
        for _ in range(4):
            await stream.send_all(head[:20])
            await trio.sleep(0.1)  # real time: together more than one head may take
            await stream.send_all(head[20:])
            answer = b""
            while not answer.endswith(b'{"status":"ok"}'):
                answer += await stream.receive_some()
        await trio.sleep(0.4)  # real time: idle for longer than a head may take
        with trio.fail_after(10), pytest.raises(trio.BrokenResourceError):
            await _drip(stream)


async def _drip(stream: trio.SocketStream) -> None:
    """The slowest of heads, until it is refused."""
    while True:
        await stream.send_all(b"G")
        await trio.sleep(LOOK_S)  # real time: that the other side has closed rings no bell


async def test_a_client_that_leaves_in_the_middle_of_a_head_leaves_nothing(hasty: Service) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", port_of(hasty)) as stream:
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHo")
        await stream.send_eof()
        with trio.fail_after(10):
            while await stream.receive_some():
                pass  # Hypercorn's refusal, and then the end
