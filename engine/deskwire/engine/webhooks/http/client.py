"""HTTP client of webhooks: one signed POST per attempt (contract 6.3, 6.4.1)."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import trio
from msgspec import Struct

from deskwire.engine.core.build import version
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.http1 import Header
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.http.connection import HttpConnection, IdleConnections, header_lines, start_tls
from deskwire.engine.webhooks.http.connectors import Connector
from deskwire.engine.webhooks.http.failure import (
    SHORTAGE_RETRY_DELAY_MS,
    WIRE_ERRORS,
    describe_error,
    shortage,
)
from deskwire.engine.webhooks.http.retry_after import asked_wait_ms
from deskwire.engine.webhooks.signature import signature_header, standard_signature
from deskwire.engine.webhooks.url import WebhookUrl

# Bytes of a response's body that are read (decisions 6).
BODY_READ_MAX: Final = 16 * 1024

# Bytes of it that the delivery log keeps (decisions 6).
BODY_KEPT_MAX: Final = 1024


_USER_AGENT: Final = f"Deskwire/{version()}".encode()


class Withheld(Exception):
    """The delivery was erased before its first byte was sent; no byte was sent."""


def _always() -> bool:
    return True


class EventContent(Protocol):
    """The parts of an event that are posted."""

    @property
    def id(self) -> str:
        """The event's id, by which receivers of Standard Webhooks remove duplicates."""

    @property
    def type(self) -> str:
        """The event type."""

    @property
    def body(self) -> bytes:
        """The envelope."""


class Postable(Protocol):
    """A delivery as the client needs it, stored as a row or kept in memory only."""

    @property
    def id(self) -> str:
        """The `dlv_` id, the same for all attempts."""

    @property
    def event(self) -> EventContent:
        """The event."""

    @property
    def attempts(self) -> int:
        """The number of attempts made so far."""

    @property
    def previous(self) -> int | None:
        """The sequence of the previous event, None for events without a sequence."""


class _PartialResponse(Struct):
    """The part of a response received so far, which remains after a timeout.

    Args:
        stage: prefix for a timeout's message that names the party at fault, see `Connector.stage`.
        headers: with names in lower case.
        answer: the first bytes of the body.
        lacked: the resource that this machine lacked, as a message.
        complete: whether the exchange ended without an error.
    """

    stage: str = ""
    status: int | None = None
    headers: Sequence[Header] = ()
    answer: bytes = b""
    error: str | None = None
    lacked: str | None = None
    complete: bool = False


class Client:
    """Posts to one endpoint and reuses connections. Each running attempt has its own.

    Args:
        url: a URL that `url_problems` has accepted.
        connector: makes connections.
        ssl_context: verifies the receiver's certificate.
        timeout_s: seconds for name lookup, connection, TLS, request and the head of the response together.
        clock: gives the start time of an attempt.
    """

    def __init__(
        self, url: str, connector: Connector, *, ssl_context: ssl.SSLContext, timeout_s: float, clock: Clock
    ) -> None:
        self._target: Final = WebhookUrl.parse(url)
        self._connector = connector
        self._ssl_context = ssl_context
        self._timeout_s = timeout_s
        self._clock = clock
        self._idle: Final = IdleConnections()
        form, extra = connector.request_target(self._target)
        headers = (
            (b"Host", self._target.authority),
            (b"Content-Type", b"application/json"),
            (b"User-Agent", _USER_AGENT),
            *extra,
        )
        self._head: Final = header_lines(
            b"POST %s HTTP/1.1" % form, *[b"%s: %s" % header for header in headers]
        )

    async def post(
        self, delivery: Postable, secrets: Sequence[str], may_send: Callable[[], bool] = _always
    ) -> Attempt:
        """Make the next attempt at `delivery`, signed with each of `secrets`.

        A 2xx counts as soon as the head of the response has arrived. The rest of the timeout is for reading
        the body, of which at most BODY_READ_MAX bytes are read. A connection with an unread rest of a body is
        closed.

        If a kept connection ends before the first byte of a response, this is no attempt: the receiver had
        closed it or was about to. The request is sent again at once on a new connection, with a new timeout.
        If that connection ends too, the attempt has failed.

        Args:
            may_send: called when there is a connection, right before the first byte is sent.

        Raises Withheld if `may_send` returns False.
        """
        kept = self._idle.take(trio.current_time())
        made = None if kept is None else await self._try(delivery, secrets, may_send, kept)
        if made is None:
            made = await self._try(delivery, secrets, may_send, None)
        assert made is not None, "a new connection is never stale"
        return made

    async def _try(
        self,
        delivery: Postable,
        secrets: Sequence[str],
        may_send: Callable[[], bool],
        kept: HttpConnection | None,
    ) -> Attempt | None:
        """Make an attempt on a kept or a new connection; None if the kept one was stale."""
        at, began = self._clock(), trio.current_time()
        request = self._request(delivery, secrets, at)
        response, used = _PartialResponse(), kept
        with trio.CancelScope(deadline=began + self._timeout_s) as scope:
            try:
                used = used or await self._connect(response)
                if not may_send():
                    used.close()
                    raise Withheld
                await _exchange(used, request, response)
            except (*WIRE_ERRORS, MemoryError) as error:
                response.lacked = shortage(error)
                if kept is not None and not kept.answered and response.lacked is None:
                    return None
                response.error = response.lacked or describe_error(error)
        ended = trio.current_time()
        if scope.cancelled_caught:
            response.error = f"{response.stage}timeout: no answer within {self._timeout_s:g} s"
        if response.complete and used is not None:
            self._idle.give(used, ended)
        return self._attempt_of(delivery, at, round((ended - began) * 1000), response)

    def _attempt_of(
        self, delivery: Postable, at: int, latency_ms: int, response: _PartialResponse
    ) -> Attempt:
        """Return the attempt with its response, as far as it was received."""
        return Attempt(
            delivery.attempts + 1,
            at,
            latency_ms,
            response.status,
            _error(response),
            response.answer[:BODY_KEPT_MAX],
            asked_wait_ms(response.status, response.headers, at + latency_ms)
            if response.lacked is None
            else SHORTAGE_RETRY_DELAY_MS,
        )

    async def aclose(self) -> None:
        """Close all idle connections; the client can be used again afterwards."""
        self._idle.close()
        await trio.lowlevel.checkpoint()

    def _request(self, delivery: Postable, secrets: Sequence[str], at: int) -> bytes:
        event, previous, t = delivery.event, delivery.previous, at // 1000
        body = event.body
        lines = header_lines(
            b"Content-Length: %d" % len(body),
            b"Service-Signature: " + signature_header(secrets, t, body).encode(),
            b"Service-Delivery-Id: " + delivery.id.encode(),
            b"Service-Event: " + event.type.encode(),
            b"Service-Attempt: %d" % (delivery.attempts + 1),
            *(() if previous is None else (b"Service-Previous-Sequence: %d" % previous,)),
            b"webhook-id: " + event.id.encode(),
            b"webhook-timestamp: %d" % t,
            b"webhook-signature: " + standard_signature(secrets, event.id, t, body).encode(),
            b"",
        )
        return self._head + lines + body

    async def _connect(self, response: _PartialResponse) -> HttpConnection:
        response.stage = self._connector.stage
        stream = await self._connector.connect(self._target)
        response.stage = ""
        if self._target.tls:
            stream = await start_tls(stream, self._ssl_context, self._target.host)
        return HttpConnection(stream)


async def _exchange(connection: HttpConnection, request: bytes, response: _PartialResponse) -> None:
    """Send a request and read its response; on failure, close the connection."""
    try:
        await connection.send(b"POST", request)
        response.status, response.headers = await connection.head()
        size = 0
        while size < BODY_READ_MAX and (next_chunk := await connection.next_chunk()):
            size += len(next_chunk)
            if len(response.answer) < BODY_KEPT_MAX:
                response.answer += next_chunk
        response.complete = True
    finally:
        if not response.complete:
            connection.close()


def _error(response: _PartialResponse) -> str | None:
    """Return why an attempt failed, None for a 2xx. A received status decides alone."""
    if response.status is None:
        return response.error or "no answer"
    if 200 <= response.status < 300:
        return None
    if 300 <= response.status < 400:
        return f"status {response.status}: redirects are not followed"
    return f"status {response.status}"
