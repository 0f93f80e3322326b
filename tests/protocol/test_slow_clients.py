"""Clients that are slow on purpose cost little, and delay no other client."""

from __future__ import annotations

import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.api.operating.test_metrics import Figures
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import LOOK_S

KINDS: Final = 4
DESCRIPTORS_LEFT: Final = 200
BYTES_EACH: Final = 120_000
"""Maximum memory for one of them, including the state of Python and Hypercorn for a connection."""


def clients_max() -> int:
    """A thousand, unless the system allows this process fewer sockets; each client takes two."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(1_000, (soft - DESCRIPTORS_LEFT) // 2)


class Crowd:
    """Slow clients of every kind: silent, with half a head, with half a body, and without reading."""

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
        """Connect this number of clients."""
        for number in range(count):
            peer = self._stack.enter_context(socket.create_connection(self._address))
            kind = number % KINDS
            peer.sendall(self._openings[kind])
            peer.setblocking(False)
            if kind in (1, 2):
                self._dripping.append(peer)

    def drip(self) -> int:
        """Send one byte from each unfinished client; return the number of open connections."""
        return sum(_sent(peer) for peer in self._dripping)


def _sent(peer: socket.socket) -> bool:
    try:
        return bool(peer.send(b" "))
    except OSError:
        return False


@contextmanager
def crowd(port: int, key: str) -> Iterator[Crowd]:
    """Yield slow clients, which are closed at the end."""
    with ExitStack() as stack:
        yield Crowd(port, key, stack)


@pytest.fixture
async def patient(tmp_path: Path) -> AsyncIterator[Service]:
    """A service that disconnects none of them during the test."""
    async with running(tmp_path, head_timeout_s=120, body_timeout_s=120) as service:
        yield service


async def test_thousand_slow_clients_cost_little_and_block_no_other(patient: Service) -> None:
    service, count = patient, clients_max()
    held = (
        count + count * (KINDS - 1) // KINDS
    )  # both ends are in this process; a silent client is disconnected soon
    await service.create("first")
    before = await figures(service)
    with crowd(port_of(service), service.demo["serverKey"]) as slow:
        slow.join(count)
        after = before
        with trio.fail_after(HANG_TIMEOUT_S):
            while after("process_open_fds") - before("process_open_fds") < held:
                assert slow.drip() == count // 2
                await service.create()
                after = await figures(service)
        assert after("http_requests_under_way") == 0
        grown = after("process_resident_memory_bytes") - before("process_resident_memory_bytes")
        assert grown < count * BYTES_EACH


async def figures(service: Service) -> Figures:
    """Scrape on an existing connection, because a new one would be accepted after all the slow ones."""
    return Figures((await service.http.get(f"{service.url}/metrics")).text)


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Service]:
    async with running(tmp_path, head_timeout_s=0.3, body_timeout_s=0.3) as service:
        yield service


def port_of(service: Service) -> int:
    return int(service.url.rpartition(":")[2])


async def test_endless_head_is_cut_off(hasty: Service) -> None:
    with crowd(port_of(hasty), hasty.demo["serverKey"]) as slow, trio.fail_after(HANG_TIMEOUT_S):
        slow.join(8)
        while slow.drip():  # noqa: ASYNC110  # sockets that are closed ring no bell
            await trio.sleep(LOOK_S)  # real time: the sockets are the kernel's


async def test_reused_connection_has_a_timeout_for_each_head(hasty: Service) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with await trio.open_tcp_stream("127.0.0.1", port_of(hasty)) as stream:
        for _ in range(4):
            await stream.send_all(head[:20])
            await trio.sleep(0.1)  # real time: together more than one head may take
            await stream.send_all(head[20:])
            answer = b""
            while not answer.endswith(b"}\n"):
                answer += await stream.receive_some()
        await trio.sleep(0.4)  # real time: idle for longer than a head may take
        with trio.fail_after(HANG_TIMEOUT_S), pytest.raises(trio.BrokenResourceError):
            await _drip(stream)


async def _drip(stream: trio.SocketStream) -> None:
    """Send the slowest possible head, until it is refused."""
    while True:
        await stream.send_all(b"G")
        await trio.sleep(LOOK_S)  # real time: no notification comes when the other side closes


async def test_client_that_leaves_within_a_head_leaves_no_state(hasty: Service) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", port_of(hasty)) as stream:
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHo")
        await stream.send_eof()
        with trio.fail_after(HANG_TIMEOUT_S):
            while await stream.receive_some():
                pass  # Hypercorn's refusal, and then the end
