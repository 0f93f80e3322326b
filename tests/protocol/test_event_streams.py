"""Server-sent events on the fast path: the same as the app sends, over TLS too, and their ends are noticed on both sides."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.api.stream.test_agents_stream_endures import flood
from tests.support.api.agent_stream import Page
from tests.support.api.customers import SITE, make_channel, signed
from tests.support.api.service import Service, running, tapping
from tests.support.deadlines import HANG_TIMEOUT_S, fail_after_idle
from tests.support.sockets.certificates import Files

BY_QUART: Final = {"TE": "trailers"}
"""A header that changes no response, but excludes a request from the fast path."""
KINDS: Final = ("agent", "customer")
_VARIES: Final = frozenset({"date", "x-request-id", "ratelimit-remaining", "ratelimit-reset"})


@dataclass(frozen=True)
class Follower:
    """A client that may follow events."""

    service: Service
    path: str
    headers: dict[str, str]
    gauge: str
    tls: Files | None = None

    @asynccontextmanager
    async def wire(self) -> AsyncIterator[trio.abc.Stream]:
        """Yield a connection to the service."""
        host, _, port = self.service.url.partition("://")[2].rpartition(":")
        if self.tls is None:
            stream: trio.abc.Stream = await trio.open_tcp_stream(host, int(port))
        else:
            stream = await trio.open_ssl_over_tcp_stream(
                host, int(port), ssl_context=self.tls.trust, https_compatible=True
            )
        try:
            yield stream
        finally:
            await trio.aclose_forcefully(stream)

    @asynccontextmanager
    async def page(self, **extra: str) -> AsyncIterator[Page]:
        """Yield a stream after its `hello`."""
        async with self.wire() as wire:
            opened = Page(wire)
            await opened.open(self.path, {**self.headers, **extra})
            opened.hello = (await opened.next("hello")).data
            yield opened

    def head(self, *lines: str, method: str = "GET") -> bytes:
        """Return a request for the stream, with further header lines."""
        own = (f"{name}: {value}" for name, value in self.headers.items())
        return "\r\n".join([f"{method} {self.path} HTTP/1.1", "Host: x", *own, *lines, "", ""]).encode()

    async def open_streams(self) -> int:
        """Return the number of open streams, as the metrics show it."""
        shown = (
            await self.service.http.get(f"{self.service.url}/metrics", headers={"Authorization": ""})
        ).text
        (line,) = [each for each in shown.splitlines() if each.startswith(f"{self.gauge} ")]
        return int(float(line.split()[1]))

    async def until(self, count: int, within_s: float = HANG_TIMEOUT_S) -> None:
        """Wait until this number of streams is open."""
        with fail_after_idle(within_s):
            while await self.open_streams() != count:  # noqa: ASYNC110  # poll: there is no notification
                await trio.sleep(0.02)


async def follower(service: Service, kind: str, tls: Files | None = None) -> Follower:
    if kind == "agent":
        headers = {"Authorization": f"Bearer {service.demo['token']}", "project": service.demo["projectId"]}
        return Follower(service, "/v3/stream", headers, "deskwire_agent_streams", tls)
    channel = await make_channel(service)
    started = await service.http.post(
        "/customer/session",
        json={"channelId": channel["id"], "identity": signed(channel, "u1")},
        headers={"Origin": SITE, "Authorization": ""},
    )
    headers = {"Authorization": f"Bearer {started.json()['token']}", "Origin": SITE}
    return Follower(service, "/v3/customer/stream", headers, "deskwire_customer_streams", tls)


def stable(opened: Page) -> dict[str, str]:
    """Return the headers that don't differ between two responses."""
    return {name: value for name, value in opened.headers.items() if name not in _VARIES}


@pytest.mark.parametrize("kind", KINDS)
async def test_streams_are_the_same_on_both_paths(service: Service, kind: str) -> None:
    conversation = await service.create("u1")
    client = await follower(service, kind)
    async with client.page() as fast, client.page(**BY_QUART) as slow:
        assert stable(fast) == {**stable(slow), "connection": "close"}
        await service.say(conversation, "Hello")
        first, second = [await each.next("message") for each in (fast, slow)]
        assert first == second
        service.stop()
        assert [await each.bye() for each in (fast, slow)] == ["shutdown", "shutdown"]


@pytest.mark.parametrize("kind", KINDS)
async def test_streams_over_tls_end_with_their_clients(tmp_path: Path, kind: str) -> None:
    files = Files(tmp_path)
    async with running(tmp_path / "data", files.trust, **files.settings) as service:
        conversation = await service.create("u1")
        client = await follower(service, kind, files)
        async with client.page() as opened:
            await service.say(conversation, "Hello")
            await opened.next("message")
            assert await client.open_streams() == 1
        await client.until(0, 2)
        async with client.page() as opened:
            service.stop()
            assert await opened.bye() == "shutdown"


def close(client: socket.socket) -> None:
    client.close()


def half_close(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_WR)


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [close, half_close, reset])
@pytest.mark.parametrize("more", [b"", b"GET /v3/s2s/project HTTP/1.1\r\n"], ids=["", "unread data"])
async def test_disconnected_client_is_noticed_before_the_next_event(
    service: Service, kind: str, end: Callable[[socket.socket], None], more: bytes
) -> None:
    """A heartbeat comes every 15 seconds only."""
    client = await follower(service, kind)
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port))) as raw:
        await trio.to_thread.run_sync(raw.sendall, client.head() + more)
        await client.until(1)
        end(raw)
        await client.until(0, 2)
    async with client.page() as opened:
        assert opened.hello["gap"] is False


@pytest.mark.parametrize("kind", KINDS)
async def test_many_clients_that_come_and_go_leave_no_stream(service: Service, kind: str) -> None:
    client = await follower(service, kind)
    async with client.page() as lasting:
        for _ in range(20):
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(come_and_go, client)
        await client.until(1, 2)
        conversation = await service.create("u1")
        await service.say(conversation, "Hello")
        assert (await lasting.next("message")).id


async def come_and_go(client: Follower) -> None:
    async with client.page():
        pass


@pytest.mark.parametrize("kind", KINDS)
async def test_client_that_never_reads_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    stores = tapping(monkeypatch)
    async with running(tmp_path, stream_write_timeout_s=0.5) as service:
        client = await follower(service, kind)
        conversation = await service.create("u1")
        host, _, port = service.url.removeprefix("http://").rpartition(":")
        with socket.socket() as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await trio.to_thread.run_sync(raw.connect, (host, int(port)))
            raw.sendall(client.head())
            await client.until(1)
            if kind == "agent":
                await flood(service, stores[-1], 60)
            else:
                for number in range(450):
                    await service.say(conversation, f"{number}" * 5_000)
            await client.until(0)
        assert (await service.http.get("/s2s/project")).status_code == 200


@pytest.mark.parametrize("kind", KINDS)
async def test_head_has_the_headers_and_opens_no_stream(service: Service, kind: str) -> None:
    client = await follower(service, kind)
    async with client.page(**BY_QUART) as opened:
        pass
    await client.until(0, 2)
    with trio.fail_after(HANG_TIMEOUT_S):
        answer = await service.http.request("HEAD", f"{service.url}{client.path}", headers=client.headers)
    assert (answer.status_code, answer.content) == (200, b"")
    same = {name: value for name, value in answer.headers.items() if name not in _VARIES}
    assert same == stable(opened)
    assert await client.open_streams() == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_post_opens_no_stream(service: Service, kind: str) -> None:
    client = await follower(service, kind)
    answer = await service.http.post(f"{service.url}{client.path}", headers=client.headers)
    assert answer.status_code == 405
    assert await client.open_streams() == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_streams_are_counted_as_calls(service: Service, kind: str) -> None:
    client = await follower(service, kind)
    async with client.page():
        shown = (await service.http.get(f"{service.url}/metrics", headers={"Authorization": ""})).text
    path = client.path.removeprefix("/v3")
    counted = [each for each in shown.splitlines() if each.startswith("deskwire_http_") and path in each]
    assert any("200" in each for each in counted), counted
