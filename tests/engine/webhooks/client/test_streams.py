"""Streams over TCP and TLS: requests and responses of any size, in any pieces."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

import pytest
import trio

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt, Delivery
from deskwire.engine.webhooks.http.streams import DirectStream, TlsStream
from tests.support.sockets.receivers import Receiver, Receivers, Request, answering, client_for, delivery

VERSIONS = {"TCP": None, "TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}


def large(number: int = 1, size: int = 3_000_000) -> Delivery:
    made = delivery(number)
    return replace(made, event=replace(made.event, body=b"%d" % number * size))


@pytest.fixture(params=VERSIONS)
async def receiver(
    receivers: Receivers, trusting: ssl.SSLContext, request: pytest.FixtureRequest
) -> Receiver:
    version = VERSIONS[request.param]
    if version is not None:
        trusting.minimum_version = trusting.maximum_version = version
    return await receivers(tls=version is not None)


async def posted(receiver: Receiver, context: ssl.SSLContext, *made: Delivery) -> Sequence[Attempt]:
    client = client_for(receiver, ssl_context=context, timeout_s=60)
    try:
        return [await client.post(each, ["whsec_test"]) for each in made]
    finally:
        await client.aclose()


async def test_a_request_larger_than_all_buffers_arrives_whole(
    receiver: Receiver, trusting: ssl.SSLContext
) -> None:
    attempts = await posted(receiver, trusting, large(1), large(2), delivery(3))
    assert [attempt.error for attempt in attempts] == [None] * 3
    assert [len(request.body) for request in receiver.requests] == [3_000_000, 3_000_000, 1]
    assert [request.body[:1] for request in receiver.requests] == [b"1", b"2", b"3"]
    assert receiver.connections == 1


async def test_a_response_that_comes_byte_by_byte_is_read_whole(
    receiver: Receiver, trusting: ssl.SSLContext
) -> None:
    async def in_bytes(stream: trio.abc.Stream, _: Request) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks":
            await stream.send_all(bytes([byte]))
            await trio.lowlevel.checkpoint()

    receiver.behaviour = in_bytes
    attempts = await posted(receiver, trusting, delivery(1), delivery(2))
    assert [(attempt.status, attempt.answer) for attempt in attempts] == [(200, b"thanks")] * 2
    assert receiver.connections == 1


async def test_a_response_that_ends_with_the_connection_is_read_to_its_end(
    receiver: Receiver, trusting: ssl.SSLContext
) -> None:
    """The end of TCP is enough without TLS's close_notify, which many servers omit."""

    async def answer_and_end(stream: trio.abc.Stream, _: Request) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nthanks")
        under = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
        await under.aclose()

    receiver.behaviour = answer_and_end
    (attempt,) = await posted(receiver, trusting, delivery())
    assert (attempt.status, attempt.error, attempt.answer) == (200, None, b"thanks")


async def test_a_server_that_closes_during_the_handshake_fails_the_attempt(
    nursery: trio.Nursery, trusting: ssl.SSLContext
) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def close(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.aclose()

    nursery.start_soon(trio.serve_listeners, close, [listener])
    receiver = Receiver(answering("204 No Content"), listener.socket.getsockname()[1], tls=True)
    (attempt,) = await posted(receiver, trusting, delivery())
    assert attempt.status is None
    assert attempt.error == "TLS: unexpected eof while reading"


async def test_a_read_that_is_cancelled_loses_no_byte(
    receivers: Receivers, nursery: trio.Nursery, trusting: ssl.SSLContext
) -> None:
    receiver = await receivers(tls=True)
    release = trio.Event()

    async def in_two_parts(stream: trio.abc.Stream, _: Request) -> None:
        await stream.send_all(b"first")
        await release.wait()
        await stream.send_all(b"second")
        await trio.sleep_forever()

    receiver.behaviour = in_two_parts
    stream = await trio.open_tcp_stream("127.0.0.1", receiver.port)
    tls = TlsStream(stream, trusting, "localhost")
    await tls.do_handshake()
    await tls.send_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    assert await tls.receive_some() == b"first"
    with trio.move_on_after(0.05) as cancelled:
        await tls.receive_some()
    assert cancelled.cancelled_caught
    release.set()
    assert await tls.receive_some(3) == b"sec"
    assert await tls.receive_some() == b"ond"
    await tls.aclose()


async def test_a_closed_stream_neither_reads_nor_writes(receivers: Receivers) -> None:
    receiver = await receivers()
    for _ in range(2):  # Trio must not confuse the two
        stream = DirectStream(await trio.open_tcp_stream("127.0.0.1", receiver.port))
        await stream.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await stream.receive_some()
        with pytest.raises(trio.ClosedResourceError):
            await stream.send_all(b"GET")
