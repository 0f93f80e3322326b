"""Reuse of connections to a receiver, and when they are closed (RFC 9112)."""

from __future__ import annotations

import ssl

import h11
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.http.client import BODY_KEPT_MAX, BODY_READ_MAX, Client
from deskwire.engine.webhooks.http.connection import BODY_WIRE_MAX, HEAD_MAX, KEEPALIVE_S, header_lines
from tests.support.sockets.receivers import (
    Behaviour,
    Receiver,
    Receivers,
    Request,
    answering,
    client_for,
    delivery,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def sending(answer: bytes, *, closing: bool = False) -> Behaviour:
    """Answer each request with exactly these bytes."""

    async def send(stream: trio.abc.Stream, _request: Request) -> None:
        await stream.send_all(answer)
        if closing:
            await stream.aclose()

    return send


async def post(client: Client, number: int = 1) -> Attempt:
    return await client.post(delivery(number), ["whsec_test"])


async def two_posts(receiver: Receiver) -> tuple[Attempt, Attempt]:
    """Make two attempts, one after the other, with one client."""
    client = client_for(receiver)
    try:
        return await post(client, 1), await post(client, 2)
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\no\r\n1\r\nk\r\n0\r\nX-Sum: 1\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n" + OK,
        b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["length", "no content", "chunks and a trailer", "interim answers", "failure"],
)
async def test_a_connection_with_a_whole_answer_is_used_again(
    receivers: Receivers, mock_clock: MockClock, answer: bytes
) -> None:
    receiver = await receivers(sending(answer))
    first, second = await two_posts(receiver)
    assert first.status == second.status != 100
    assert receiver.connections == 1
    assert receiver.sequences == [1, 2]


@pytest.mark.parametrize(
    ("answer", "closing"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.1 200 OK\r\n\r\nok", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok", True),
        (OK + b"HTTP/1.1 500 Unasked\r\nContent-Length: 0\r\n\r\n", False),
    ],
    ids=["close", "HTTP/1.0", "body until the end", "body cut short", "an answer too many"],
)
async def test_a_connection_that_has_had_its_last_answer_is_closed(
    receivers: Receivers, mock_clock: MockClock, answer: bytes, closing: bool
) -> None:
    """Bytes of one response must not be read as the next one."""
    receiver = await receivers(sending(answer, closing=closing))
    first, second = await two_posts(receiver)
    assert (first.status, first.error, first.answer) == (200, None, b"ok")
    assert (second.status, second.error, second.answer) == (200, None, b"ok")
    await trio.sleep(1)  # virtual time: the mock clock jumps
    assert (receiver.connections, receiver.open) == (2, 0)


async def test_a_tls_connection_with_an_answer_too_many_is_closed(
    receivers: Receivers, trusting: ssl.SSLContext
) -> None:
    """A TLS record that arrives together with the response's is read from the socket with it."""

    async def answer(stream: trio.abc.Stream, _request: Request) -> None:
        assert isinstance(stream, trio.SSLStream)
        records = trio.testing.MemorySendStream()
        beneath, stream.transport_stream = stream.transport_stream, records
        await stream.send_all(OK)
        await stream.send_all(b"HTTP/1.1 500 Unasked\r\nContent-Length: 0\r\n\r\n")
        stream.transport_stream = beneath
        await beneath.send_all(records.get_data_nowait())

    receiver = await receivers(answer, tls=True)
    client = client_for(receiver, ssl_context=trusting)
    attempts = [await post(client, 1), await post(client, 2)]
    await client.aclose()
    assert [(attempt.status, attempt.answer) for attempt in attempts] == [(200, b"ok")] * 2
    assert receiver.connections == 2
    assert receiver.sequences == [1, 2]


async def test_a_connection_closed_by_the_receiver_costs_no_attempt(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.2: servers may close idle connections; this is not a failed delivery."""

    async def answer_and_close(stream: trio.abc.Stream, _request: Request) -> None:
        await stream.send_all(OK)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await stream.aclose()

    receiver = await receivers(answer_and_close)
    client = client_for(receiver)
    assert (await post(client, 1)).error is None
    await trio.sleep(2)  # virtual time: the mock clock jumps
    assert (await post(client, 2)).error is None
    assert (receiver.connections, receiver.sequences) == (2, [1, 2])
    await client.aclose()


async def test_bytes_that_come_between_two_attempts_end_the_connection(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    async def answer_and_go_on(stream: trio.abc.Stream, request: Request) -> None:
        await stream.send_all(OK)
        if request.connection == 1:
            await trio.sleep(1)  # virtual time: the mock clock jumps
            await stream.send_all(b"HTTP/1.1 500 Unasked\r\nContent-Length: 0\r\n\r\n")

    receiver = await receivers(answer_and_go_on)
    client = client_for(receiver)
    await post(client, 1)
    await trio.sleep(2)  # virtual time: the mock clock jumps
    assert (await post(client, 2)).status == 200
    assert receiver.connections == 2
    await client.aclose()


async def test_a_connection_that_is_idle_too_long_is_closed_and_not_used(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers()
    client = client_for(receiver)
    await post(client, 1)
    await trio.sleep(KEEPALIVE_S + 0.5)  # virtual time: the mock clock jumps
    await post(client, 2)
    await trio.sleep(0.5)  # virtual time: the mock clock jumps
    assert (receiver.connections, receiver.open) == (2, 1)
    await client.aclose()
    await trio.sleep(0.5)  # virtual time: the mock clock jumps
    assert receiver.open == 0


async def test_the_connections_of_a_burst_grow_old_while_one_is_in_use(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers()
    client = client_for(receiver)
    async with trio.open_nursery() as nursery:
        for number in range(1, 9):
            nursery.start_soon(post, client, number)
    assert receiver.connections == 8
    for number in range(9, 15):
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await post(client, number)
    await trio.sleep(0.5)  # virtual time: the mock clock jumps
    assert (receiver.connections, receiver.open) == (8, 1)
    await client.aclose()


async def test_tls_connections_are_used_again(
    receivers: Receivers, mock_clock: MockClock, trusting: ssl.SSLContext
) -> None:
    receiver = await receivers(answering("200 OK", b"thanks"), tls=True)
    client = client_for(receiver, ssl_context=trusting)
    for number in range(1, 6):
        assert (await post(client, number)).answer == b"thanks"
    assert (receiver.connections, receiver.sequences) == (1, [1, 2, 3, 4, 5])
    await client.aclose()


async def test_an_attempt_that_is_cancelled_leaves_no_connection(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    receiver = await receivers(silent)
    client = client_for(receiver)
    with trio.move_on_after(1):
        await post(client)
    receiver.behaviour = answering("200 OK")
    assert (await post(client, 2)).error is None
    assert receiver.connections == 2
    await client.aclose()


async def test_a_flood_of_interim_answers_is_cut_off(receivers: Receivers, mock_clock: MockClock) -> None:
    """Each interim response is well-formed, but the head never ends."""
    receiver = await receivers(flooding(b"", b"HTTP/1.1 102 Processing\r\n\r\n"))
    attempt = await alone(receiver)
    assert (attempt.status, attempt.latency_ms < 5000) == (None, True)
    assert attempt.error == f"malformed answer: no end of its head within {HEAD_MAX} bytes"


async def test_a_body_in_tiny_chunks_is_cut_off_by_its_wire_size(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: at most 16 KiB of the body are read; framing does not give a receiver more time."""
    chunk = b"1;" + b"e" * 1000 + b"\r\nx\r\n"
    receiver = await receivers(flooding(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk))
    attempt = await alone(receiver)
    assert (attempt.status, attempt.error, attempt.latency_ms < 5000) == (200, None, True)
    assert set(attempt.answer) == {ord("x")}
    assert len(attempt.answer) < BODY_WIRE_MAX / 1000 + BODY_READ_MAX / 1000 + 1 < BODY_KEPT_MAX


async def test_an_answer_that_comes_before_the_request_was_read_counts(
    receivers: Receivers, mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    """RFC 9112, 9.6: a server may refuse early and close."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some(10)
        await stream.send_all(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        await stream.aclose()  # most of the request is unread, so sending the rest fails

    nursery.start_soon(trio.serve_listeners, refuse, [listener])
    client = client_for(Receiver(answering("200 OK"), listener.socket.getsockname()[1]))
    small = delivery()
    large = replace(small, event=replace(small.event, body=b"x" * 16 * 2**20))
    attempt = await client.post(large, ["whsec_test"])
    assert (attempt.status, attempt.error) == (413, "status 413")
    await client.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"\x00" * (HEAD_MAX + 1),
    ],
    ids=["two lengths", "negative length", "switching", "no header", "another version", "TLS", "zeros"],
)
async def test_a_malformed_answer_is_a_failure_and_ends_the_connection(
    receivers: Receivers, mock_clock: MockClock, answer: bytes
) -> None:
    receiver = await receivers(sending(answer))
    first, second = await two_posts(receiver)
    for attempt in (first, second):
        assert attempt.status is None
        assert attempt.error is not None
        assert attempt.error.startswith("malformed answer: ")
    assert receiver.connections == 2


def flooding(first: bytes, drop: bytes) -> Behaviour:
    """Send `first`, then `drop` as fast as the client reads."""

    async def flood(stream: trio.abc.Stream, _request: Request) -> None:
        await stream.send_all(first)
        while True:
            await stream.send_all(drop * 64)

    return flood


async def alone(receiver: Receiver) -> Attempt:
    """Make one attempt with a new client."""
    client = client_for(receiver)
    try:
        return await post(client)
    finally:
        await client.aclose()


@pytest.mark.parametrize("value", [b"a\r\nX: b", b"a\nX: b", b"a\rb", b"a\0b"])
def test_a_header_that_would_be_read_as_two_is_not_sent(value: bytes) -> None:
    with pytest.raises(h11.LocalProtocolError):
        header_lines(b"Host: x", b"X: " + value)
