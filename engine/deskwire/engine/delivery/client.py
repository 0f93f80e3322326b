"""One attempt at a delivery: a signed POST within its budget (contract 6.3, 6.4.1, decisions 6)."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Protocol

import httpx
import trio

from deskwire.engine.clock import Clock
from deskwire.engine.deliveries import Attempt
from deskwire.engine.delivery.dialer import Dialer
from deskwire.engine.delivery.failure import WIRE_ERRORS, in_words
from deskwire.engine.delivery.retry_after import asked_wait_ms
from deskwire.engine.delivery.signature import signature_header
from deskwire.engine.delivery.transport import Transport

READ_MAX: Final = 16 * 1024
"""Bytes of an answer's body that are read at most (decisions 6)."""

KEPT_MAX: Final = 1024
"""Bytes of them that the delivery log keeps (decisions 6)."""


def _user_agent() -> bytes:
    try:
        return f"Deskwire/{version('deskwire')}".encode()
    except PackageNotFoundError:  # run from the sources
        return b"Deskwire/0"


_USER_AGENT: Final = _user_agent()


class Content(Protocol):
    """What of an event is posted."""

    @property
    def type(self) -> str:
        """The event type."""

    @property
    def body(self) -> bytes:
        """The envelope."""


class Postable(Protocol):
    """What an attempt needs of a delivery, be it a row (`ports.Delivery`) or in memory alone."""

    @property
    def id(self) -> str:
        """The `dlv_` id, the same over all attempts."""

    @property
    def event(self) -> Content:
        """The event."""

    @property
    def attempts(self) -> int:
        """How many were made."""

    @property
    def previous(self) -> int | None:
        """Sequence of what was sent before, None for events without a sequence."""


@dataclass(slots=True)
class _Seen:
    """What has come back so far; it stays when the time is up."""

    status: int | None = None
    headers: Sequence[tuple[bytes, bytes]] = field(default_factory=tuple)
    answer: bytes = b""
    error: str | None = None


class Client:
    """Posts to one endpoint; connections are kept and used again.

    Args:
        url: one that `target.url_problems` found nothing wrong with.
        concurrency: how many attempts are under way at the same time at most.
        timeout_s: seconds for name, connection, TLS, request and the head of the answer together.
        clock: says when an attempt began.
    """

    def __init__(
        self,
        url: str,
        dialer: Dialer,
        *,
        ssl_context: ssl.SSLContext,
        concurrency: int,
        timeout_s: float,
        clock: Clock,
    ) -> None:
        self._url = httpx.URL(url)
        self._transport = Transport(dialer, connections=concurrency, ssl_context=ssl_context)
        self._timeout_s = timeout_s
        self._clock = clock
        self._headers: Final = (
            (b"Host", self._url.netloc),
            (b"Content-Type", b"application/json"),
            (b"User-Agent", _USER_AGENT),
        )

    async def post(self, delivery: Postable, secrets: Sequence[str]) -> Attempt:
        """Make the next attempt at `delivery`, signed with each of `secrets`.

        A 2xx counts once the head of the answer is there. The rest of the time goes to reading the body,
        which is cut off at READ_MAX; a connection whose body was not read to its end is closed.
        """
        at, began = self._clock(), trio.current_time()
        request = self._request(delivery, secrets, at)
        seen = _Seen()
        with trio.move_on_after(self._timeout_s) as scope:
            try:
                await self._exchange(request, seen)
            except WIRE_ERRORS as error:
                seen.error = in_words(error)
        if scope.cancelled_caught:
            seen.error = f"timeout: no answer within {self._timeout_s:g} s"
        latency_ms = round((trio.current_time() - began) * 1000)
        return Attempt(
            delivery.attempts + 1,
            at,
            latency_ms,
            seen.status,
            _verdict(seen),
            seen.answer[:KEPT_MAX],
            asked_wait_ms(seen.status, seen.headers, at + latency_ms),
        )

    async def aclose(self) -> None:
        """Close all connections; the client may be used again afterwards."""
        await self._transport.aclose()

    def _request(self, delivery: Postable, secrets: Sequence[str], at: int) -> httpx.Request:
        body = delivery.event.body
        headers = [
            *self._headers,
            (b"Service-Signature", signature_header(secrets, at // 1000, body).encode()),
            (b"Service-Delivery-Id", delivery.id.encode()),
            (b"Service-Event", delivery.event.type.encode()),
            (b"Service-Attempt", b"%d" % (delivery.attempts + 1)),
        ]
        if delivery.previous is not None:
            headers.append((b"Service-Previous-Sequence", b"%d" % delivery.previous))
        return httpx.Request("POST", self._url, headers=headers, content=body)

    async def _exchange(self, request: httpx.Request, seen: _Seen) -> None:
        response = await self._transport.handle_async_request(request)
        seen.status, seen.headers = response.status_code, response.headers.raw
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        size = 0
        try:
            with trio.CancelScope() as reading:
                async for chunk in stream:
                    size += len(chunk)
                    if len(seen.answer) < KEPT_MAX:
                        seen.answer += chunk
                    if size >= READ_MAX:
                        reading.cancel()  # ends the generators inside; a `break` would leave them open
        finally:
            await stream.aclose()


def _verdict(seen: _Seen) -> str | None:
    """What is wrong with the answer; once there is a status it says it all."""
    if seen.status is None:
        return seen.error or "no answer"
    if 200 <= seen.status < 300:
        return None
    if 300 <= seen.status < 400:
        return f"status {seen.status}: redirects are not followed"
    return f"status {seen.status}"
