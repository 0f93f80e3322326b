"""One attempt over real sockets: timeout, response and error texts.

Source: contract 6.4.1.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

import pytest
import stripe
import trio
import trustme
from trio.testing import MockClock

from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.http.address import AddressPolicy, IPAddress, ResolutionFailed, SystemResolver
from deskwire.engine.webhooks.http.client import BODY_KEPT_MAX, BODY_READ_MAX
from tests.support.sockets.receivers import (
    EPOCH_MS,
    Behaviour,
    Receiver,
    Receivers,
    Request,
    answering,
    client_for,
    delivery,
    resolving,
)


async def attempt_at(receiver: Receiver, **options: object) -> Attempt:
    """Return the result of one attempt by a new client."""
    client = client_for(receiver, **options)  # type: ignore[arg-type]
    try:
        return await client.post(delivery(), ["whsec_test"])
    finally:
        await client.aclose()


async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
    await trio.sleep_forever()


async def closing(stream: trio.abc.Stream, _request: Request) -> None:
    await stream.aclose()


def dripping(first: bytes, drop: bytes, every_s: float = 0.5) -> Behaviour:
    """Send `first`, then `drop` repeatedly."""

    async def drip(stream: trio.abc.Stream, _request: Request) -> None:
        await stream.send_all(first)
        while True:
            await trio.sleep(every_s)  # virtual time: the mock clock jumps
            await stream.send_all(drop)

    return drip


async def test_an_attempt_is_signed_with_its_own_time(receivers: Receivers, mock_clock: MockClock) -> None:
    """Contract 6.3.1, 6.3.2; decisions 6."""
    receiver = await receivers()
    await trio.sleep(100)  # virtual time: the mock clock jumps
    attempt = await attempt_at(receiver)
    header = receiver.requests[0].headers["Service-Signature"]
    assert header.startswith(f"t={attempt.at // 1000},v1=")
    assert attempt.at >= EPOCH_MS + 100_000
    assert stripe.WebhookSignature.verify_header("1", header, "whsec_test")


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "204 No Content", "299 Fine"])
async def test_any_2xx_is_a_success(receivers: Receivers, mock_clock: MockClock, status: str) -> None:
    """Contract 6.4.1."""
    attempt = await attempt_at(await receivers(answering(status)))
    assert (attempt.number, attempt.status, attempt.error) == (1, int(status[:3]), None)


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "410 Gone", "500 Oops", "503 Busy"])
async def test_anything_else_is_a_failure(receivers: Receivers, mock_clock: MockClock, status: str) -> None:
    """Contract 6.4.2; decisions 6."""
    attempt = await attempt_at(await receivers(answering(status, b"why")))
    assert (attempt.status, attempt.error) == (int(status[:3]), f"status {status[:3]}")
    assert attempt.answer == b"why"


async def test_a_redirect_is_a_failure_and_is_not_followed(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6."""
    other = await receivers()
    receiver = await receivers(answering("307 Temporary", extra=f"Location: {other.url}\r\n".encode()))
    attempt = await attempt_at(receiver)
    assert attempt.error == "status 307: redirects are not followed"
    assert other.connections == 0


async def test_a_silent_receiver_has_five_seconds(receivers: Receivers, mock_clock: MockClock) -> None:
    """Contract 6.4.1."""
    receiver = await receivers(silent)
    began = trio.current_time()
    attempt = await attempt_at(receiver)
    assert (attempt.status, attempt.error) == (None, "timeout: no answer within 5 s")
    assert trio.current_time() - began == pytest.approx(5, abs=0.1)
    assert attempt.latency_ms == pytest.approx(5000, abs=100)


@pytest.mark.parametrize(
    ("first", "drop"),
    [(b"", b"H"), (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), (b"HTTP/1.1 100 Continue\r\n\r\n", b"")],
    ids=["status line", "headers", "interim answer"],
)
async def test_a_dripping_head_does_not_stretch_the_budget(
    receivers: Receivers, mock_clock: MockClock, first: bytes, drop: bytes
) -> None:
    """Decisions 6: the 5 s are for connect, TLS, request and status line together."""
    began = trio.current_time()
    attempt = await attempt_at(await receivers(dripping(first, drop)))
    assert attempt.status is None
    assert attempt.error
    assert trio.current_time() - began <= 5.1


async def test_slow_lookup_slow_connection_and_slow_answer_share_one_budget(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6."""

    async def slow_name(_host: str, _port: int) -> Sequence[IPAddress]:
        await trio.sleep(3)  # virtual time: the mock clock jumps
        return await resolving()("", 0)

    async def slow_answer(stream: trio.abc.Stream, request: Request) -> None:
        await trio.sleep(3)  # virtual time: the mock clock jumps
        await answering("200 OK")(stream, request)

    began = trio.current_time()
    attempt = await attempt_at(await receivers(slow_answer), resolver=slow_name)
    assert attempt.error == "timeout: no answer within 5 s"
    assert trio.current_time() - began == pytest.approx(5, abs=0.1)


async def test_endless_headers_are_cut_off(receivers: Receivers, mock_clock: MockClock) -> None:
    """Decisions 6; no receiver can fill the memory."""
    receiver = await receivers(dripping(b"HTTP/1.1 200 OK\r\n", b"X-Header: and so on\r\n" * 1000, 0))
    attempt = await attempt_at(receiver)
    assert attempt.status is None
    assert attempt.error is not None
    assert attempt.error.startswith("malformed answer:")


async def test_an_endless_body_is_read_to_its_bound_and_the_connection_closed(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: at most 16 KiB of the body are read; the first 1 KiB is logged."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    receiver = await receivers(dripping(head, b"400\r\n" + b"x" * 0x400 + b"\r\n", 0.01))
    client = client_for(receiver)
    began = trio.current_time()
    attempt = await client.post(delivery(), ["whsec_test"])
    assert (attempt.status, attempt.error, attempt.answer) == (200, None, b"x" * BODY_KEPT_MAX)
    assert trio.current_time() - began <= BODY_READ_MAX / 0x400 * 0.01 + 0.1
    await trio.sleep(1)  # virtual time: the mock clock jumps
    assert receiver.open == 0


async def test_a_success_counts_though_its_body_drips_until_the_end(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.1: the status must be there within 5 s, not the body."""
    receiver = await receivers(dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"z"))
    client = client_for(receiver)
    began = trio.current_time()
    attempt = await client.post(delivery(), ["whsec_test"])
    assert (attempt.status, attempt.error) == (200, None)
    assert attempt.answer == b"z" * len(attempt.answer)
    assert trio.current_time() - began == pytest.approx(5, abs=0.1)
    await trio.sleep(1)  # virtual time: the mock clock jumps
    assert receiver.open == 0


async def test_a_receiver_that_closes_without_an_answer_is_a_failure(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    attempt = await attempt_at(await receivers(closing))
    assert (attempt.status, attempt.error) == (None, "connection closed before the answer")


async def test_something_that_does_not_speak_http_is_a_failure(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    attempt = await attempt_at(await receivers(dripping(b"220 mail.example ESMTP\r\n\r\n", b"")))
    assert attempt.error is not None
    assert attempt.error.startswith("malformed answer:")


async def test_a_closed_port_is_a_refused_connection(receivers: Receivers, mock_clock: MockClock) -> None:
    receiver = await receivers()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    receiver.port = listener.socket.getsockname()[1]
    await listener.aclose()
    assert (await attempt_at(receiver)).error == "connection refused"


async def test_a_connection_is_used_again(receivers: Receivers, mock_clock: MockClock) -> None:
    receiver = await receivers(answering("200 OK", b"thanks"))
    client = client_for(receiver)
    for number in range(1, 6):
        assert (await client.post(delivery(number), ["whsec_test"])).error is None
    assert receiver.sequences == [1, 2, 3, 4, 5]
    assert receiver.connections == 1
    await client.aclose()


async def test_tls_is_verified_and_carries_the_delivery(
    receivers: Receivers, mock_clock: MockClock, trusting: ssl.SSLContext
) -> None:
    """Contract 6.2.2; decisions 6: TLS verified."""
    receiver = await receivers(tls=True)
    attempt = await attempt_at(receiver, ssl_context=trusting)
    assert (attempt.status, attempt.error) == (204, None)


async def test_an_untrusted_certificate_fails_with_its_reason(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: TLS is verified, and the delivery log contains the reason."""
    attempt = await attempt_at(await receivers(tls=True))
    assert attempt.error is not None
    assert attempt.error.startswith("TLS: certificate verify failed: unable to get local issuer")


async def test_another_hosts_certificate_fails_with_its_reason(
    receivers: Receivers, mock_clock: MockClock, trusting: ssl.SSLContext, authority: trustme.CA
) -> None:
    """Decisions 6: the certificate must match the URL's name, not the address dialled."""

    class Elsewhere(Receiver):
        @property
        def url(self) -> str:
            return f"https://other.example:{self.port}/"

    receiver = await receivers(tls=True)
    attempt = await attempt_at(Elsewhere(receiver.behaviour, receiver.port, tls=True), ssl_context=trusting)
    assert attempt.error is not None
    assert attempt.error.startswith("TLS: certificate verify failed: Hostname mismatch")


async def test_a_silent_tls_handshake_ends_with_the_budget_and_leaves_nothing_open(
    receivers: Receivers, mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    """Decisions 6: the 5 s include TLS."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    ended = trio.Event()

    async def swallow(stream: trio.SocketStream) -> None:
        while await stream.receive_some():
            pass
        ended.set()

    nursery.start_soon(trio.serve_listeners, swallow, [listener])
    receiver = Receiver(silent, listener.socket.getsockname()[1], tls=True)
    began = trio.current_time()
    attempt = await attempt_at(receiver)
    assert attempt.error == "timeout: no answer within 5 s"
    assert trio.current_time() - began == pytest.approx(5, abs=0.1)
    with trio.fail_after(60):
        await ended.wait()


async def test_a_refused_address_is_in_the_log_and_is_not_dialled(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: the delivery log contains the reason of a refusal."""
    receiver = await receivers()
    attempt = await attempt_at(receiver, policy=AddressPolicy())
    assert attempt.error == "address refused: 127.0.0.1 is loopback"
    assert receiver.connections == 0


async def test_a_name_that_changes_its_meaning_after_the_check_gains_nothing(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: DNS rebinding fails because exactly the checked address is dialled."""
    receiver = await receivers()
    answers = iter(["8.8.8.8", "127.0.0.1"])
    asked = []

    async def rebinding(host: str, port: int) -> Sequence[IPAddress]:
        asked.append(host)
        return await resolving(next(answers))(host, port)

    await rebinding("localhost", receiver.port)  # the result at registration
    attempt = await attempt_at(receiver, policy=AddressPolicy(), resolver=rebinding)
    assert attempt.error == "address refused: 127.0.0.1 is loopback"
    assert asked == ["localhost", "localhost"]
    assert receiver.connections == 0


async def test_one_refused_address_among_good_ones_refuses_the_connection(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers()
    attempt = await attempt_at(receiver, policy=AddressPolicy(), resolver=resolving("8.8.8.8", "10.0.0.1"))
    assert attempt.error == "address refused: 10.0.0.1 is private"


async def test_the_next_address_is_tried_when_one_does_not_answer(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers()
    attempt = await attempt_at(receiver, resolver=resolving("127.0.0.9", "::1", "127.0.0.1"))
    assert attempt.error is None


async def test_a_name_that_is_not_known_is_a_failure_with_its_name(
    receivers: Receivers, mock_clock: MockClock
) -> None:
    async def unknown(host: str, _port: int) -> Sequence[IPAddress]:
        raise ResolutionFailed(f"host not found: {host}")

    attempt = await attempt_at(await receivers(), resolver=unknown)
    assert attempt.error == "host not found: localhost"


async def test_system_resolver_takes_literals_without_a_lookup_and_reports_unknown_names() -> None:
    resolver = SystemResolver()
    assert [str(address) for address in await resolver("2001:db8::1", 443)] == ["2001:db8::1"]
    with pytest.raises(ResolutionFailed, match=r"host not found: nowhere\.invalid"):
        await resolver("nowhere.invalid", 443)
    with pytest.raises(ResolutionFailed, match="host not found"):
        await resolver("a" * 300, 443)
