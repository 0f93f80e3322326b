"""The same front behind TLS: routing, HTTP/2 by ALPN, and clients that do not speak TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trustme

from deskwire.http.front import FrontLimits
from tests.rawpeer import RawPeer
from tests.streaming import NOON, Front, real_front, real_stage, small_app

AUTHORITY = trustme.CA()


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    """A front with a certificate for `localhost`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["h2", "http/1.1"])
    AUTHORITY.issue_cert("localhost").configure_cert(context)
    limits = FrontLimits(peek_s=0.5, requests_s=1, shutdown_s=2)
    async with (
        real_stage(tmp_path, lambda: NOON) as stage,
        real_front(stage, small_app, limits, tls=context) as front,
    ):
        yield front


async def secure(front: Front, *protocols: str) -> trio.SSLStream[trio.SocketStream]:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    raw = await front.raw()
    return trio.SSLStream(raw, context, server_hostname="localhost", https_compatible=True)


async def test_the_stream_is_served_over_tls(front: Front) -> None:
    """Decisions 5: `wss://host/app/{streamKey}`."""
    peer = RawPeer(await secure(front))
    await peer.open()
    assert (await peer.message())["event"] == "pusher:connection_established"
    front.stop.set()
    assert await peer.close_code() == 4200


async def test_requests_over_tls_go_to_the_application(front: Front) -> None:
    stream = await secure(front, "http/1.1")
    await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    parts = [bytes(part) async for part in stream]
    assert b"/hello" in b"".join(parts)


async def test_http_2_is_agreed_on_by_alpn(front: Front) -> None:
    stream = await secure(front, "h2")
    await stream.send_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
    assert bytes(await stream.receive_some())[3] == 4  # a SETTINGS frame (RFC 9113 6.5)
    assert stream.selected_alpn_protocol() == "h2"


async def test_a_client_that_speaks_no_tls_or_nothing_is_dropped(front: Front) -> None:
    plain, silent = await front.raw(), await front.raw()
    await plain.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    with trio.fail_after(2):
        await drained(plain)
        await drained(silent)


async def drained(stream: trio.SocketStream) -> None:
    """Read to the end, however it comes."""
    try:
        while await stream.receive_some():
            pass
    except trio.BrokenResourceError:
        pass
