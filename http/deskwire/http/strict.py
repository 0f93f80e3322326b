"""HTTP/1.1 as Hypercorn speaks it, without what lets a request slip past a proxy (ADR 26).

* `Upgrade: h2c` is left alone. Behind a proxy that passes it on it would open a tunnel in which nothing is
  filtered any more; RFC 9113 has dropped it.
* A request with both `Content-Length` and `Transfer-Encoding` is refused: two readers could see two ends of it
  (RFC 9112 6.1). So is a `Content-Length` beside another, by h11 itself.
* What can't be read is answered with a problem document that has a request's id, as everything else.
"""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Final

import h11
import structlog
from hypercorn.events import Closed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.events import Response
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H2ProtocolAssumedError, H11Protocol
from hypercorn.trio.tcp_server import TCPServer

from deskwire.engine.clock import wall_clock
from deskwire.engine.ids import new_id
from deskwire.http.headers import missing
from deskwire.http.problems import raw_problem

log: Final = structlog.get_logger(__name__)

_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
_REFUSALS: Final = {
    431: ("header_too_large", "The request's line and headers are too large."),
    501: ("unsupported_transfer_encoding", "The only transfer encoding that is spoken here is chunked."),
}
_UNREADABLE: Final = ("bad_request", "This is not a well-formed HTTP request.")


class StrictH11(H11Protocol):
    """Hypercorn's protocol with these three changes."""

    async def stream_send(self, event: StreamEvent) -> None:
        """Send what an answer is made of; its head gets the headers that it lacks."""
        if isinstance(event, Response) and event.status_code >= HTTPStatus.OK:
            event = replace(event, headers=[*event.headers, *missing(event.headers)])
        await super().stream_send(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        if event.method == b"PRI" and event.target == b"*" and event.http_version == b"2.0":
            raise H2ProtocolAssumedError(b"PRI * HTTP/2.0\r\n\r\n" + self.connection.trailing_data[0])

    async def _create_stream(self, request: h11.Request) -> None:
        if _FRAMING <= {name for name, _ in request.headers}:
            await self._send_error_response(400)
            await self.send(Closed())
        else:
            await super()._create_stream(request)

    async def _send_error_response(self, status_code: int) -> None:
        code, detail = _REFUSALS.get(status_code, _UNREADABLE)
        request_id = new_id("req", wall_clock())
        headers, body = raw_problem(status_code, code, detail, request_id)
        log.info("http.unreadable", status=status_code, code=code, request_id=request_id)
        told = [*headers, (b"connection", b"close"), *self.config.response_headers("h11")]
        reason = HTTPStatus(status_code).phrase.encode()
        await self._send_h11_event(h11.Response(status_code=status_code, headers=told, reason=reason))
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())


class StrictServer(TCPServer):
    """Hypercorn's handler of a connection, with the strict protocol."""

    async def _read_data(self) -> None:
        made = self.protocol.protocol
        if not isinstance(made, H2Protocol):
            self.protocol.protocol = StrictH11(
                made.app,
                made.config,
                made.context,
                made.task_group,
                made.connection_state,
                made.ssl,
                made.client,
                made.server,
                made.send,
            )
        await super()._read_data()
