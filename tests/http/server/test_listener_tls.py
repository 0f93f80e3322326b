"""The same front behind TLS: routing, certificates that change, and clients that do not speak TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import trio
import trustme

from deskwire.http.server.listener import FrontLimits
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.raw_peer import RawPeer
from tests.support.streaming import NOON, Front, delay_turns, real_front, real_stage, small_app

AUTHORITY, ANOTHER = trustme.CA(), trustme.CA()


def served(authority: trustme.CA) -> ssl.SSLContext:
    """Return a server's context with a certificate for `localhost`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    """A front with a certificate."""
    limits = FrontLimits(peek_s=2, handshake_s=0.5, handshakes=1, requests_s=1, shutdown_s=2)
    async with (
        real_stage(tmp_path, lambda: NOON) as stage,
        real_front(stage, small_app, limits, tls=served(AUTHORITY)) as front,
    ):
        yield front


async def secure(
    front: Front, *protocols: str, authority: trustme.CA = AUTHORITY
) -> trio.SSLStream[trio.SocketStream]:
    context = ssl.create_default_context()
    authority.configure_trust(context)
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


async def test_malformed_request_over_tls_gets_strict_transport_security(front: Front) -> None:
    """RFC 6797 7.1: every answer over a secure connection."""
    stream = await secure(front)
    await stream.send_all(b"nonsense\r\n\r\n")
    refusal = b"".join([bytes(part) async for part in stream])
    assert refusal.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nstrict-transport-security: max-age=31536000\r\n" in refusal.lower()


async def test_plain_http_is_refused_with_a_hint_to_use_tls(front: Front) -> None:
    plain = await front.raw()
    await plain.send_all(b"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
    with trio.fail_after(HANG_TIMEOUT_S):
        answer = b"".join([bytes(part) async for part in plain])
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    problem = orjson.loads(body)
    assert (problem["status"], problem["code"]) == (400, "tls_required")
    assert problem["requestId"].encode() in head  # whichever way the header is spelled


async def test_next_connection_gets_the_new_certificate_and_the_old_ones_continue(
    front: Front,
) -> None:
    """A renewal disturbs no open connection."""
    before = await secure(front, "http/1.1")
    await before.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200" in bytes(await before.receive_some())
    front.tls = served(ANOTHER)
    after = await secure(front, "http/1.1", authority=ANOTHER)
    for stream in (before, after):
        await stream.send_all(b"GET /still HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"/still" in b"".join([bytes(part) async for part in stream])


async def test_a_handshake_that_never_ends_is_ended_and_others_have_theirs_then(front: Front) -> None:
    slow = await front.raw()
    await slow.send_all(b"\x16\x03\x01")
    stream = await secure(front, "http/1.1")
    await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"/hello" in b"".join([bytes(part) async for part in stream])
    with trio.fail_after(HANG_TIMEOUT_S):
        await drained(slow)


async def test_waits_for_turns_count_neither_for_the_handshake_nor_as_the_clients_delay(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    delay_turns(monkeypatch, 1.2)  # longer than `handshake_s`, and two of them than `peek_s`
    stream = await secure(front, "http/1.1")
    await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"/hello" in b"".join([bytes(part) async for part in stream])


async def test_a_client_that_leaves_before_its_handshake_leaves_nothing(front: Front) -> None:
    for hello in (b"", b"\x16\x03\x01", b"\x16\x03\x01\x00\x02\x01\x00", b"\x80nonsense"):
        gone = await front.raw()
        await gone.send_all(hello)
        await gone.aclose()
    front.stop.set()
    with trio.fail_after(HANG_TIMEOUT_S):
        await front.stopped.wait()


async def test_client_without_a_tls_handshake_is_dropped(front: Front) -> None:
    odd, silent = await front.raw(), await front.raw()
    await odd.send_all(b"\x05\x01\x00")
    with trio.fail_after(HANG_TIMEOUT_S):
        await drained(odd)
        await drained(silent)


async def drained(stream: trio.SocketStream) -> None:
    """Read to the end, however it comes."""
    try:
        while await stream.receive_some():
            pass
    except trio.BrokenResourceError:
        pass
