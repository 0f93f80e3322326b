"""The request that hands a push to the push service of a browser (RFC 8030), by the connections of webhooks.

It is made once. Whether the request may have left decides about a retry: a push must not be shown twice.
"""

from __future__ import annotations

import ssl
from typing import Final

import trio
from msgspec import Struct

from deskwire.engine.core.build import version
from deskwire.engine.core.clock import Clock
from deskwire.engine.webhooks.http.connection import HttpConnection, header_lines, start_tls
from deskwire.engine.webhooks.http.connectors import Connector
from deskwire.engine.webhooks.http.failure import WIRE_ERRORS, describe_error, shortage
from deskwire.engine.webhooks.http.retry_after import asked_wait_ms
from deskwire.engine.webhooks.url import WebhookUrl

ATTEMPT_TIMEOUT_S: Final = 15.0
"""Maximum time of an attempt."""
_USER_AGENT: Final = f"Deskwire/{version()}".encode()


class PushAnswer(Struct, frozen=True):
    """The outcome of an attempt.

    Args:
        status: the status of the push service; None without an answer.
        error: why there is no answer.
        may_have_left: whether any byte of the request may have reached the push service.
        wait_ms: the wait that the push service requested.
    """

    status: int | None
    error: str | None = None
    may_have_left: bool = True
    wait_ms: int | None = None


class PushRequest(Struct, frozen=True):
    """A push, ready to be sent.

    Args:
        url: the endpoint.
        body: encrypted.
        authorization: the signature of the installation.
        ttl_s: seconds for which the push service keeps the push for a browser that is offline.
        topic: a name by which the push service replaces a push that it still keeps.
    """

    url: str
    body: bytes
    authorization: str
    ttl_s: int
    topic: str


class PushClient:
    """Sends pushes, each over a connection of its own: an idle one may be closed just when a request leaves.

    Args:
        connector: makes connections, and refuses addresses that are not allowed.
        ssl_context: verifies the certificates of push services.
    """

    def __init__(self, connector: Connector, ssl_context: ssl.SSLContext, clock: Clock) -> None:
        self._connector = connector
        self._ssl_context = ssl_context
        self._clock = clock

    async def send(self, request: PushRequest) -> PushAnswer:
        """Send a push, and return the outcome."""
        left = False
        connection: HttpConnection | None = None
        try:
            with trio.fail_after(ATTEMPT_TIMEOUT_S):
                target = WebhookUrl.parse(request.url)
                stream = await self._connector.connect(target)
                if target.tls:
                    stream = await start_tls(stream, self._ssl_context, target.host)
                connection = HttpConnection(stream)
                head = self._head(request, target)
                left = True
                await connection.send(b"POST", head + request.body)
                status, headers = await connection.head()
            return PushAnswer(status, wait_ms=asked_wait_ms(status, headers, self._clock()))
        except trio.TooSlowError:
            stage = "" if left else self._connector.stage
            error = f"{stage}timeout: no answer within {ATTEMPT_TIMEOUT_S:g} s"
            return PushAnswer(None, error, may_have_left=left)
        except (*WIRE_ERRORS, MemoryError) as failure:
            error = shortage(failure) or describe_error(failure)
            return PushAnswer(None, error, may_have_left=left)
        finally:
            if connection is not None:
                connection.close()

    def _head(self, request: PushRequest, target: WebhookUrl) -> bytes:
        form, extra = self._connector.request_target(target)
        headers = (
            (b"Host", target.authority),
            (b"User-Agent", _USER_AGENT),
            *extra,
            (b"Connection", b"close"),
            (b"Authorization", request.authorization.encode()),
            (b"Content-Encoding", b"aes128gcm"),
            (b"Content-Type", b"application/octet-stream"),
            (b"Content-Length", b"%d" % len(request.body)),
            (b"TTL", b"%d" % request.ttl_s),
            (b"Urgency", b"high"),
            (b"Topic", request.topic.encode()),
        )
        lines = [b"%s: %s" % header for header in headers]
        return header_lines(b"POST %s HTTP/1.1" % form, *lines, b"")
