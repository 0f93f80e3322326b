"""Deliveries through a real HTTP proxy on loopback, with TLS in its tunnels."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
import trustme
from trio.testing import MockClock

from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.http.address import (
    AddressPolicy,
    IPAddress,
    ResolutionFailed,
    literal_addresses,
)
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.connection import HEAD_MAX
from deskwire.engine.webhooks.http.connectors import Proxy, ProxyConnector
from deskwire.engine.webhooks.url import check_url
from tests.support.sockets.receivers import Receivers, answering, delivery, opened, resolving, wall

Refusal = Callable[[trio.abc.Stream], Awaitable[None]]
AUTHORIZATION = "Basic YWRhOnB3OkAv"  # ada:pw:@/
CREDENTIALS = "ada:pw%3A%40%2F"


@dataclass
class RealProxy:
    """A small proxy that resolves every name to loopback.

    `refusal`, if given, replaces its work.
    """

    port: int = 0
    tls: bool = False
    refusal: Refusal | None = None
    heads: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{CREDENTIALS}@localhost:{self.port}"

    async def serve(self, client: trio.abc.Stream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async with client:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += await client.receive_some(65_536)
                self.heads.append(head.decode())
                if self.refusal is not None:
                    await self.refusal(client)
                else:
                    await self._carry(client, head)

    async def _carry(self, client: trio.abc.Stream, head: bytes) -> None:
        method, where, _ = head.split(b" ", 2)
        authority = where.removeprefix(b"http://").partition(b"/")[0]
        async with await trio.open_tcp_stream("127.0.0.1", int(authority.rpartition(b":")[2])) as server:
            if method == b"CONNECT":
                await client.send_all(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
            else:
                await server.send_all(head)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_pump, client, server, nursery.cancel_scope)
                nursery.start_soon(_pump, server, client, nursery.cancel_scope)


async def _pump(source: trio.abc.Stream, sink: trio.abc.Stream, both: trio.CancelScope) -> None:
    with suppress(trio.BrokenResourceError):
        while data := await source.receive_some(65_536):
            await sink.send_all(data)
    both.cancel()


Proxies = Callable[..., Awaitable[RealProxy]]


@pytest.fixture
async def proxies(nursery: trio.Nursery, authority: trustme.CA) -> Proxies:
    """Start a proxy: `await proxies(refusal, tls=False)`."""

    async def start(refusal: Refusal | None = None, *, tls: bool = False) -> RealProxy:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        proxy = RealProxy(listener.socket.getsockname()[1], tls, refusal)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        secure = trio.SSLListener(listener, context, https_compatible=True) if tls else listener
        nursery.start_soon(trio.serve_listeners, proxy.serve, [secure])
        return proxy

    return start


async def nowhere(host: str, _port: int) -> Sequence[IPAddress]:
    """Resolve only the proxy's name."""
    if host == "localhost":
        return await resolving()(host, 0)
    raise ResolutionFailed(f"host not found: {host}")


def client_through(
    proxy: RealProxy, url: str, context: ssl.SSLContext | None = None, policy: AddressPolicy | None = None
) -> Client:
    context = context or ssl.create_default_context()
    given = policy or AddressPolicy(allow_private=True)
    route = ProxyConnector(Proxy.parse(proxy.url), given, nowhere, context)
    return Client(url, route, ssl_context=context, timeout_s=5, clock=wall)


async def attempt_through(
    proxy: RealProxy, url: str, context: ssl.SSLContext | None = None, policy: AddressPolicy | None = None
) -> Attempt:
    client = client_through(proxy, url, context, policy)
    try:
        return await client.post(delivery(), ["whsec_test"])
    finally:
        await client.aclose()


def refusing(answer: bytes) -> Refusal:
    async def refuse(stream: trio.abc.Stream) -> None:
        await stream.send_all(answer)
        await trio.sleep(0.2)  # virtual time: the mock clock jumps

    return refuse


async def hang(_stream: trio.abc.Stream) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize("proxy_tls", [False, True], ids=["plain proxy", "proxy with TLS"])
async def test_https_goes_through_a_tunnel_that_is_used_again(
    receivers: Receivers, proxies: Proxies, mock_clock: MockClock, trusting: ssl.SSLContext, proxy_tls: bool
) -> None:
    receiver, proxy = await receivers(tls=True), await proxies(tls=proxy_tls)
    client = client_through(proxy, receiver.url, trusting)
    for number in (1, 2, 3):
        assert (await client.post(delivery(number), ["whsec_test"])).error is None
    await client.aclose()
    (head,) = proxy.heads
    assert head.startswith(
        f"CONNECT localhost:{receiver.port} HTTP/1.1\r\nHost: localhost:{receiver.port}\r\n"
    )
    assert f"Proxy-Authorization: {AUTHORIZATION}\r\n" in head
    assert receiver.sequences == [1, 2, 3]
    assert all("Proxy-Authorization" not in request.headers for request in receiver.requests)
    assert all(request.path == "/hook?from=deskwire" for request in receiver.requests)


async def test_plain_http_is_asked_of_the_proxy_by_its_whole_url(
    receivers: Receivers, proxies: Proxies, mock_clock: MockClock
) -> None:
    receiver, proxy = await receivers(), await proxies()
    assert (await attempt_through(proxy, receiver.url)).error is None
    assert proxy.heads[0].startswith(f"POST {receiver.url} HTTP/1.1\r\nHost: localhost:{receiver.port}\r\n")
    assert f"Proxy-Authorization: {AUTHORIZATION}\r\n" in proxy.heads[0]


async def test_name_that_only_the_proxy_can_resolve_is_delivered_to_and_verified(
    receivers: Receivers, proxies: Proxies, mock_clock: MockClock, authority: trustme.CA
) -> None:
    """Decisions 6: TLS is verified by the URL's name end to end, not with the proxy."""
    receiver, proxy = await receivers(tls=True), await proxies()
    context = ssl.create_default_context()
    authority.configure_trust(context)
    url = f"https://hooks.example.test:{receiver.port}/"
    attempt = await attempt_through(proxy, url, context, AddressPolicy())
    assert proxy.heads[0].startswith(f"CONNECT hooks.example.test:{receiver.port} ")
    assert attempt.error is not None
    assert attempt.error.startswith("TLS: certificate verify failed: Hostname mismatch")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            b"HTTP/1.1 407 Go Away\r\nContent-Length: 2\r\n\r\nno",
            "proxy: status 407, proxy authentication required",
        ),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "proxy: status 502, bad gateway"),
        (b"HTTP/1.1 599 Strange\r\n\r\n", "proxy: status 599"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://other.test/\r\n\r\n", "proxy: status 302, found"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "proxy: malformed answer: illegal status line"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "proxy: malformed answer: "),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "proxy: malformed answer: it sent more"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_MAX, "proxy: malformed answer: "),
        (b"", "proxy: connection closed before the answer"),
    ],
    ids=["407", "502", "unknown", "redirect", "SSH", "TLS", "talks first", "endless head", "closes"],
)
async def test_a_refusal_of_the_proxy_is_logged_as_the_proxys(
    receivers: Receivers, proxies: Proxies, mock_clock: MockClock, answer: bytes, error: str
) -> None:
    receiver, proxy = await receivers(tls=True), await proxies(refusing(answer))
    attempt = await attempt_through(proxy, receiver.url)
    assert (attempt.status, attempt.answer) == (None, b"")
    assert attempt.error is not None
    assert attempt.error.startswith(error)
    assert receiver.connections == 0


async def test_a_proxy_that_hangs_has_the_five_seconds_and_is_named(
    receivers: Receivers, proxies: Proxies, mock_clock: MockClock
) -> None:
    """Decisions 6: the 5 s are for everything together."""
    receiver, proxy = await receivers(tls=True), await proxies(hang)
    began = trio.current_time()
    attempt = await attempt_through(proxy, receiver.url)
    assert attempt.error == "proxy: timeout: no answer within 5 s"
    assert trio.current_time() - began == pytest.approx(5, abs=0.1)


async def test_a_proxy_that_drips_its_head_does_not_stretch_the_budget(
    receivers: Receivers, proxies: Proxies, mock_clock: MockClock
) -> None:
    async def drip(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\n")
        while True:
            await trio.sleep(0.5)  # virtual time: the mock clock jumps
            await stream.send_all(b"X: y\r\n")

    receiver, proxy = await receivers(tls=True), await proxies(drip)
    began = trio.current_time()
    attempt = await attempt_through(proxy, receiver.url)
    assert attempt.error == "proxy: timeout: no answer within 5 s"
    assert trio.current_time() - began <= 5.1


async def test_a_silent_receiver_is_not_the_proxys_fault(
    receivers: Receivers, proxies: Proxies, mock_clock: MockClock, trusting: ssl.SSLContext
) -> None:
    async def silent(_stream: trio.abc.Stream, _request: object) -> None:
        await trio.sleep_forever()

    receiver, proxy = await receivers(silent, tls=True), await proxies()
    attempt = await attempt_through(proxy, receiver.url, trusting)
    assert attempt.error == "timeout: no answer within 5 s"


async def test_an_unreachable_proxy_is_named(receivers: Receivers, mock_clock: MockClock) -> None:
    receiver = await receivers(tls=True)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy = RealProxy(listener.socket.getsockname()[1])
    await listener.aclose()
    assert (await attempt_through(proxy, receiver.url)).error == "proxy: connection refused"


async def test_a_proxy_with_an_untrusted_certificate_is_sent_nothing(
    receivers: Receivers, proxies: Proxies, mock_clock: MockClock
) -> None:
    receiver, proxy = await receivers(tls=True), await proxies(tls=True)
    attempt = await attempt_through(proxy, receiver.url)
    assert attempt.error is not None
    assert attempt.error.startswith("proxy: TLS: certificate verify failed")
    assert proxy.heads == []


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", "127.0.0.1 is loopback"),
        ("[::1]", "::1 is loopback"),
        ("10.1.2.3", "10.1.2.3 is private"),
        ("0x7f.1", "127.0.0.1 is loopback"),
        ("2130706433", "127.0.0.1 is loopback"),
        ("169.254.169.254.", "169.254.169.254 is link-local"),
        ("localhost", "127.0.0.1 is loopback"),
        ("db.localhost.", "127.0.0.1 is loopback"),
    ],
)
async def test_address_in_the_url_is_judged_in_every_spelling_without_the_proxy(
    proxies: Proxies, mock_clock: MockClock, host: str, reason: str
) -> None:
    """Contract 6.2.2: only public addresses, even if a proxy resolves names; at registration and at each attempt."""
    proxy, url = await proxies(), f"https://{host}:8443/"
    attempt = await attempt_through(proxy, url, policy=AddressPolicy())
    assert attempt.error == f"address refused: {reason}"
    assert proxy.heads == []
    problems = await check_url(url, AddressPolicy(), literal_addresses)
    assert [problem.code for problem in problems] == ["url_address_refused"]


async def test_a_name_is_registered_without_being_resolved() -> None:
    assert await check_url("https://nowhere.invalid/hook", AddressPolicy(), literal_addresses) == ()


async def test_workers_deliver_through_the_proxy_and_log_its_failures(
    tmp_path: Path, receivers: Receivers, proxies: Proxies, mock_clock: MockClock, trusting: ssl.SSLContext
) -> None:
    """Decisions 6: a refusal by the proxy is an ordinary failed attempt and is retried."""
    receiver = await receivers(answering("200 OK"), tls=True)
    proxy = await proxies(refusing(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
    async with opened(tmp_path, proxy=Proxy.parse(proxy.url), ssl_context=trusting) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        proxy.refusal = None
        await receiver.wait(1)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "delivered", 2)]
        assert await installation.log() == [
            (1, None, "proxy: status 503, service unavailable"),
            (2, 200, None),
        ]


def test_a_proxys_url_keeps_its_password_out_of_sight() -> None:
    proxy = Proxy.parse(f"https://{CREDENTIALS}@proxy.test:3128")
    assert (proxy.tls, proxy.host, proxy.port) == (True, "proxy.test", 3128)
    assert proxy.headers == ((b"Proxy-Authorization", AUTHORIZATION.encode()),)
    assert "pw" not in repr(proxy)
    assert AUTHORIZATION not in repr(proxy)
    assert Proxy.parse("http://[::1]") == Proxy(tls=False, host="::1", port=80)
