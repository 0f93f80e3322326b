"""Kept connections that end before a response: the request is sent again at once.

Source: decisions 6.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED
from tests.support.sockets.receivers import (
    Behaviour,
    Receivers,
    Request,
    client_for,
    delivery,
    opened,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Ending = Callable[[trio.abc.Stream], Awaitable[None]]


def _socket(stream: trio.abc.Stream) -> trio.socket.SocketType:
    while isinstance(stream, trio.SSLStream):
        stream = stream.transport_stream
    assert isinstance(stream, trio.SocketStream)
    return stream.socket


async def orderly(stream: trio.abc.Stream) -> None:
    """End with FIN; over TLS after close_notify."""
    await stream.aclose()


async def abrupt(stream: trio.abc.Stream) -> None:
    """End with FIN, without TLS's close_notify."""
    _socket(stream).shutdown(socket.SHUT_RDWR)
    await trio.lowlevel.checkpoint()


async def reset(stream: trio.abc.Stream) -> None:
    """End with RST."""
    _socket(stream).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    _socket(stream).close()
    await trio.lowlevel.checkpoint()


async def half_close(stream: trio.abc.Stream) -> None:
    """Close only the sending side, and continue to read for a while."""
    _socket(stream).shutdown(socket.SHUT_WR)
    await trio.sleep(1)  # virtual time: the mock clock jumps


async def notify(stream: trio.abc.Stream) -> None:
    """Send TLS's close_notify, and leave the connection open for a while."""
    assert isinstance(stream, trio.SSLStream)
    with trio.move_on_after(1):
        await stream.unwrap()


def ending_each_second(ending: Ending) -> Behaviour:
    """Answer a connection's first request; close the connection at the second."""
    answered: set[int] = set()

    async def behave(stream: trio.abc.Stream, request: Request) -> None:
        if request.connection in answered:
            await ending(stream)
            raise EOFError
        answered.add(request.connection)
        await stream.send_all(OK)

    return behave


def large(number: int, size: int) -> Delivery:
    """Return a delivery whose body is the number after this many blanks."""
    one = delivery(number)
    return replace(one, event=replace(one.event, body=b" " * size + str(number).encode()))


@pytest.mark.parametrize("tls", [False, True], ids=["TCP", "TLS"])
@pytest.mark.parametrize("ending", [orderly, abrupt, reset, half_close])
async def test_a_kept_connection_that_ends_before_an_answer_is_no_attempt(
    receivers: Receivers, mock_clock: MockClock, trusting: ssl.SSLContext, ending: Ending, tls: bool
) -> None:
    receiver = await receivers(ending_each_second(ending), tls=tls)
    client = client_for(receiver, ssl_context=trusting)
    began = trio.current_time()
    made = [await client.post(delivery(number), ["whsec_test"]) for number in range(1, 6)]
    assert trio.current_time() - began < 1
    assert [(each.number, each.status, each.error) for each in made] == [(1, 200, None)] * 5
    assert receiver.connections == 5
    assert receiver.sequences == [1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert {each.headers["Service-Attempt"] for each in receiver.requests} == {"1"}
    await client.aclose()


async def test_a_close_notify_instead_of_an_answer_is_no_attempt(
    receivers: Receivers, mock_clock: MockClock, trusting: ssl.SSLContext
) -> None:
    receiver = await receivers(ending_each_second(notify), tls=True)
    client = client_for(receiver, ssl_context=trusting)
    made = [await client.post(delivery(number), ["whsec_test"]) for number in (1, 2)]
    assert [each.error for each in made] == [None, None]
    assert receiver.sequences == [1, 2, 2]
    await client.aclose()


@pytest.mark.parametrize("tls", [False, True], ids=["TCP", "TLS"])
async def test_kept_connection_that_ends_during_the_write_is_no_attempt(
    receivers: Receivers, mock_clock: MockClock, trusting: ssl.SSLContext, tls: bool
) -> None:
    """The receiver reads part of a request that exceeds all buffers, and closes."""

    async def read_a_part(stream: trio.abc.Stream, request: Request) -> None:
        await stream.send_all(OK)
        if request.connection == 1:
            await stream.receive_some(1000)
            await reset(stream)
            raise EOFError

    receiver = await receivers(read_a_part, tls=tls)
    client = client_for(receiver, ssl_context=trusting)
    assert (await client.post(delivery(1), ["whsec_test"])).error is None
    assert (await client.post(large(2, 8_000_000), ["whsec_test"])).error is None
    assert receiver.sequences == [1, 2]
    assert receiver.connections == 2
    await client.aclose()


@pytest.mark.parametrize("ending", [orderly, reset])
async def test_a_new_connection_that_ends_is_a_failure(
    receivers: Receivers, mock_clock: MockClock, ending: Ending
) -> None:
    """One attempt sends its request on at most one new connection."""

    async def first_alone(stream: trio.abc.Stream, request: Request) -> None:
        if int(request.body) == 1:
            await stream.send_all(OK)
        else:
            await ending(stream)
            raise EOFError

    receiver = await receivers(first_alone)
    client = client_for(receiver)
    assert (await client.post(delivery(1), ["whsec_test"])).error is None
    failed = await client.post(delivery(2), ["whsec_test"])
    assert (failed.status, failed.error) == (None, "connection closed before the answer")
    assert receiver.sequences == [1, 2, 2]
    await client.aclose()


@pytest.mark.parametrize("first", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
async def test_a_kept_connection_that_ends_within_an_answer_is_a_failure(
    receivers: Receivers, mock_clock: MockClock, first: bytes
) -> None:
    """The receiver had started to process the request."""

    async def begin(stream: trio.abc.Stream) -> None:
        await stream.send_all(first)
        await stream.aclose()

    receiver = await receivers(ending_each_second(begin))
    client = client_for(receiver)
    assert (await client.post(delivery(1), ["whsec_test"])).error is None
    assert (await client.post(delivery(2), ["whsec_test"])).error is not None
    assert receiver.sequences == [1, 2]
    await client.aclose()


async def test_a_kept_connection_that_answers_nothing_times_out(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """The connection is still open, so the receiver has used its time (contract 6.4.1)."""

    async def silent(stream: trio.abc.Stream) -> None:
        await trio.sleep_forever()

    receiver = await receivers(ending_each_second(silent))
    client = client_for(receiver)
    assert (await client.post(delivery(1), ["whsec_test"])).error is None
    assert (await client.post(delivery(2), ["whsec_test"])).error == "timeout: no answer within 5 s"
    assert receiver.sequences == [1, 2]
    await client.aclose()


async def test_the_request_on_the_new_connection_has_the_whole_time(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    async def late(stream: trio.abc.Stream) -> None:
        await trio.sleep(4)  # virtual time: the mock clock jumps
        await stream.aclose()

    each_second = ending_each_second(late)

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        if request.connection == 2:
            await trio.sleep(3)  # virtual time: the mock clock jumps
        await each_second(stream, request)

    receiver = await receivers(slow)
    client = client_for(receiver)
    assert (await client.post(delivery(1), ["whsec_test"])).error is None
    second = await client.post(delivery(2), ["whsec_test"])
    assert second.error is None
    assert 2_900 <= second.latency_ms <= 3_200
    await client.aclose()


async def test_receiver_that_closes_after_each_answer_gets_all_deliveries_in_order(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(ending_each_second(orderly))
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        began = trio.current_time()
        for number in range(1, 41):
            await installation.send(number)
        await receiver.wait(79)
        assert trio.current_time() - began < 1
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert {row[1:] for row in await installation.rows()} == {("delivered", 1)}
        assert (await installation.stored()).circuit == CLOSED
        counters = installation.dispatcher.counters
        assert (counters.attempts, counters.failed_attempts) == (40, 0)
    assert list(dict.fromkeys(receiver.sequences)) == list(range(1, 41))
    assert receiver.sequences == sorted(receiver.sequences)
