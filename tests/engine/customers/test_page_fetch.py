"""Fetches of pages on real sockets: redirects, limits of size and time, and the address rules of webhooks."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network

import pytest
import trio
import trustme
from trio.testing import MockClock

from deskwire.engine.customers.page_fetch import (
    FETCH_TIMEOUT_S,
    PAGE_BYTES_MAX,
    REDIRECTS_MAX,
    FetchedPage,
    PageFetcher,
    PageUnavailable,
)
from deskwire.engine.webhooks.http.address import AddressPolicy
from deskwire.engine.webhooks.http.connectors import DirectConnector
from tests.support.sockets.receivers import Receiver, Request, answering, resolving

ANYWHERE = AddressPolicy(allow_private=True)


@asynccontextmanager
async def site(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """Run a site that gives these answers in turn, and the last one again and again."""
    waiting = list(answers)

    async def answer(stream: trio.abc.Stream, _: Request) -> None:
        await stream.send_all(waiting.pop(0) if len(waiting) > 1 else waiting[0])

    receiver = Receiver(answer, tls=tls is not None)

    async def serve(stream: trio.abc.Stream) -> None:
        secure = (
            stream if tls is None else trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
        )
        await receiver.serve(secure)

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="0.0.0.0")
        receiver.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield receiver
        nursery.cancel_scope.cancel()


def page(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """Return a response."""
    lines = b"".join(b"%s\r\n" % each for each in headers)
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), lines, body)


def moved(url: str) -> bytes:
    """Return a redirect."""
    return page(b"", f"Location: {url}".encode(), status=b"302 Found")


async def fetch(
    url: str, policy: AddressPolicy = ANYWHERE, trusted: ssl.SSLContext | None = None
) -> FetchedPage:
    """Fetch a page; all names are this machine."""
    fetcher = PageFetcher(
        policy, DirectConnector(policy, resolving()), trusted or ssl.create_default_context()
    )
    return await fetcher.fetch(url)


async def refusal(url: str, policy: AddressPolicy = ANYWHERE) -> str:
    """Return why a page can't be fetched."""
    with pytest.raises(PageUnavailable) as refused:
        await fetch(url, policy)
    return str(refused.value)


async def test_page_comes_with_its_headers_and_without_credentials() -> None:
    async with site(page("grüß dich".encode(), b"X-One: 1", b"x-one: 2")) as shop:
        found = await fetch(f"http://shop.example:{shop.port}/a?b=c")
    (request,) = shop.requests
    assert (found.status, found.body, found.values("x-one")) == (200, "grüß dich", ["1", "2"])
    assert (request.method, request.path) == ("GET", "/a?b=c")
    assert request.headers["Host"] == f"shop.example:{shop.port}"
    assert not {"Authorization", "Cookie", "Referer"} & request.headers.keys()


async def test_redirects_are_followed_and_their_end_is_the_pages_url() -> None:
    async with site(moved("/there"), moved("//www.shop.example:PORT/end#part"), page(b"here")) as shop:
        answer = shop.behaviour

        async def with_port(stream: trio.abc.Stream, request: Request) -> None:
            class Rewriting:
                async def send_all(self, data: bytes) -> None:
                    await stream.send_all(data.replace(b"PORT", str(shop.port).encode()))

            await answer(Rewriting(), request)  # type: ignore[arg-type]

        shop.behaviour = with_port
        found = await fetch(f"http://shop.example:{shop.port}/")
    assert (found.url, found.body) == (f"http://www.shop.example:{shop.port}/end", "here")


async def test_endless_redirects_end() -> None:
    async with site(moved("/again")) as shop:
        reason = await refusal(f"http://shop.example:{shop.port}/")
    assert reason == f"it redirects more than {REDIRECTS_MAX} times"
    assert len(shop.requests) == REDIRECTS_MAX + 1


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "https://user:pw@shop.example/",
        "https://shop.example:25/",
        "gopher://x/",
        "http://[",
    ],
)
async def test_redirect_to_a_url_that_is_not_allowed_is_not_followed(target: str) -> None:
    async with site(moved(target)) as shop:
        assert "it redirects to" in await refusal(f"http://shop.example:{shop.port}/")
    assert len(shop.requests) == 1


async def test_private_addresses_are_not_dialled_whatever_their_name() -> None:
    async with site(page(b"secret")) as shop:
        for host in ("shop.example", "127.0.0.1", "localhost"):
            reason = await refusal(f"https://{host}:{shop.port}/", AddressPolicy())
            assert reason == "address refused: 127.0.0.1 is loopback"
    assert shop.connections == 0


async def test_redirect_from_an_allowed_to_a_private_address_is_not_followed() -> None:
    policy = AddressPolicy(allow=(ip_network("127.0.0.2/32"),))
    certificate = trustme.CA()
    server, trusted = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    certificate.issue_cert("127.0.0.2").configure_cert(server)
    certificate.configure_trust(trusted)
    async with site(moved("https://127.0.0.1:9999/"), tls=server) as shop:
        resolver = resolving("127.0.0.1")

        async def resolve(host: str, port: int) -> object:
            return await (resolving("127.0.0.2") if host == "127.0.0.2" else resolver)(host, port)

        fetcher = PageFetcher(policy, DirectConnector(policy, resolve), trusted)  # type: ignore[arg-type]
        with pytest.raises(PageUnavailable, match=r"address refused: 127\.0\.0\.1 is loopback"):
            await fetcher.fetch(f"https://127.0.0.2:{shop.port}/")
    assert len(shop.requests) == 1


async def test_large_page_is_cut_and_a_bomb_is_not_unpacked() -> None:
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n%s\r\n" % (b"x" * 65_536) * 40
    )
    async with site(chunked) as shop:
        found = await fetch(f"http://shop.example:{shop.port}/")
    assert 0 < len(found.body) <= PAGE_BYTES_MAX
    bomb = gzip.compress(b"x" * 50_000_000)
    async with site(page(bomb, b"Content-Encoding: gzip")) as shop:
        found = await fetch(f"http://shop.example:{shop.port}/")
    assert len(found.body) == PAGE_BYTES_MAX


async def test_compressed_page_is_read_and_a_damaged_one_is_named() -> None:
    async with site(page(gzip.compress(b"hello"), b"Content-Encoding: gzip")) as shop:
        assert (await fetch(f"http://shop.example:{shop.port}/")).body == "hello"
    async with site(page(b"no gzip", b"Content-Encoding: gzip")) as shop:
        assert await refusal(f"http://shop.example:{shop.port}/") == "its compressed content is damaged"


async def test_silent_page_is_given_up_after_the_timeout(autojump_clock: MockClock) -> None:
    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    began = trio.current_time()
    async with site(b"") as shop:
        shop.behaviour = silent
        reason = await refusal(f"http://shop.example:{shop.port}/")
    assert reason == f"the page was not complete within {FETCH_TIMEOUT_S:g} s"
    assert trio.current_time() - began == pytest.approx(FETCH_TIMEOUT_S, abs=1)


async def test_failures_of_the_network_are_named() -> None:
    async with site(b"SSH-2.0\r\n\r\n") as shop:
        assert "malformed answer" in await refusal(f"http://shop.example:{shop.port}/")
    assert await refusal(f"http://shop.example:{shop.port}/") == "connection refused"


async def test_slots_are_free_again_after_failures() -> None:
    fetcher = PageFetcher(ANYWHERE, DirectConnector(ANYWHERE, resolving()), ssl.create_default_context())
    for _ in range(10):
        with pytest.raises(PageUnavailable):
            await fetcher.fetch("http://shop.example:9/")
    behaviour = answering("200 OK", b"fine")
    async with site(b"") as shop:
        shop.behaviour = behaviour
        assert (await fetcher.fetch(f"http://shop.example:{shop.port}/")).body == "fine"
