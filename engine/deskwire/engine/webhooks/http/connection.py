"""One HTTP/1.1 connection of a client: request, head, body, one exchange after the other (RFC 9112).

Plain responses are read by `plain_response`, all others by h11, which knows the protocol; the bounds are set here. Of
whatever a receiver sends, HEAD_MAX bytes are read up to the end of its head, interim responses included, and
BODY_WIRE_MAX bytes after it, framing included. The caller bounds the time.
"""

from __future__ import annotations

import ssl
from collections import deque
from contextlib import ExitStack
from typing import Final

import h11
import trio

from deskwire.engine.core.http1 import ResponseHead, plain_response
from deskwire.engine.webhooks.http.streams import TlsStream, is_quiet, socket_of

HEAD_MAX: Final = 64 * 1024
"""Bytes of a response up to the end of its head."""

BODY_WIRE_MAX: Final = 32 * 1024
"""Bytes after the head, the framing of chunks included: twice what is read of a body."""

_READ_SIZE: Final = 16 * 1024
_ANY_HOST: Final = [(b"Host", b"*")]
_ALPN: Final = ("http/1.1",)


class Disconnected(Exception):
    """The receiver has closed the connection before its response."""


class HttpConnection:
    """A connection that nobody else uses.

    Args:
        stream: a TCP stream, or TLS over one; it belongs to the connection from now on.

    Attributes:
        answered: whether any byte has come of the response to the last request.
        idle_since: when the last response had been read, in Trio's seconds.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._socket: Final = socket_of(stream)
        self._method = b""
        self._wire: h11.Connection | None = None  # while a response is not plain
        self._body = b""
        self._bytes_left = 0
        self.answered = False
        self.idle_since = 0.0

    async def send(self, method: bytes, request: bytes) -> None:
        """Send a request, which says how long its body is.

        A connection that breaks meanwhile is no error: some servers respond first, and close (RFC 9112, 9.6).
        """
        self._method, self._bytes_left, self.answered = method, HEAD_MAX, False
        try:
            await self._stream.send_all(request)
        except trio.BrokenResourceError:
            pass  # reading shows whether there is a response

    async def head(self) -> ResponseHead:
        """Return the head of the final response.

        Raises:
            Disconnected: there is none.
            h11.RemoteProtocolError: the response is not HTTP, or its head has no end.
            trio.BrokenResourceError: the connection broke.
        """
        data = bytes(await self._stream.receive_some(_READ_SIZE))
        if not data:
            raise Disconnected
        self.answered = True
        plain = plain_response(data) if self._method != b"CONNECT" else None
        if plain is not None:
            head, self._body = plain
            return head
        self._wire = wire = self._new_h11()
        self._bytes_left -= len(data)
        wire.receive_data(data)
        while (event := await self._next_event(wire)) is not None:
            if isinstance(event, h11.Response):
                self._bytes_left = BODY_WIRE_MAX
                return ResponseHead(event.status_code, event.headers)
        raise h11.RemoteProtocolError(f"no end of its head within {HEAD_MAX} bytes")

    async def next_chunk(self) -> bytes:
        """Return the next next_chunk of the response's body; empty at its end, or when it is too long. Raises as `head`."""
        if self._wire is None:
            body, self._body = self._body, b""
            return body
        event = await self._next_event(self._wire)
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    def _new_h11(self) -> h11.Connection:
        """Return an h11 connection that has sent a request with this method; of a response, nothing depends on the rest."""
        wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        wire.send(h11.Request(method=self._method, target=b"*", headers=_ANY_HOST))
        wire.send(h11.EndOfMessage())
        return wire

    async def _next_event(self, wire: h11.Connection) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED] | None:
        """Return the next event of the response; None if that would take too many bytes."""
        while (event := wire.next_event()) is h11.NEED_DATA:
            if self._bytes_left <= 0:
                return None
            data = bytes(await self._stream.receive_some(_READ_SIZE))
            if not data and wire.their_state is h11.SEND_RESPONSE:
                raise Disconnected
            self._bytes_left -= len(data)
            wire.receive_data(data)
        return event

    def next_cycle(self) -> bool:
        """Make ready for another request; return False if there can't be one, as something is unread or was the last."""
        wire, self._wire = self._wire, None
        if wire is None:
            return not self._body
        return wire.our_state is h11.DONE and wire.their_state is h11.DONE and not any(wire.trailing_data)

    def detach_stream(self) -> trio.abc.Stream:
        """Return the stream, after the proxy has agreed to a tunnel.

        Raises h11.RemoteProtocolError if it has sent something in the tunnel already.
        """
        assert self._wire is not None, "the proxy has responded"
        if self._wire.trailing_data[0]:
            raise h11.RemoteProtocolError("it sent more than its head")
        return self._stream

    @property
    def quiet(self) -> bool:
        """Return whether nothing has come on an idle connection since, neither its end nor stray bytes."""
        return is_quiet(self._stream)

    def close(self) -> None:
        """Close at once, without TLS's close_notify: each response says itself where it ends."""
        self._socket.close()


def header_lines(*lines: bytes) -> bytes:
    """Return lines of a request's head. Raises h11.LocalProtocolError if they would be read as something else."""
    data = b"\r\n".join((*lines, b""))
    if data.count(b"\n") != len(lines) or data.count(b"\r") != len(lines) or b"\0" in data:
        raise h11.LocalProtocolError("a line ends within the head of the request")
    return data


async def start_tls(stream: trio.abc.Stream, context: ssl.SSLContext, name: str) -> trio.abc.Stream:
    """Return TLS over `stream` with the server called `name`; if that fails, or is cancelled, `stream` is closed.

    Raises trio.BrokenResourceError, caused by what TLS objects to.
    """
    context.set_alpn_protocols(_ALPN)
    with ExitStack() as undo:
        undo.callback(socket_of(stream).close)
        secure = TlsStream(stream, context, name)
        await secure.do_handshake()
        undo.pop_all()
    return secure


KEEPALIVE_S: Final = 4.0
"""Seconds for which an idle connection is kept. Many servers close theirs after 5 s (Node's default); a request
sent just then would fail."""


class IdleConnections:
    """The connections that have had a response and may have another request."""

    def __init__(self) -> None:
        self._idle: deque[HttpConnection] = deque()

    def take(self, now: float) -> HttpConnection | None:
        """Take the connection used last, if it is still good, so that surplus ones grow old. `now` is on Trio's clock."""
        oldest_kept = now - KEEPALIVE_S
        while self._idle and self._idle[0].idle_since < oldest_kept:
            self._idle.popleft().close()
        while self._idle:
            connection = self._idle.pop()
            if connection.quiet:
                return connection
            connection.close()
        return None

    def give(self, connection: HttpConnection, now: float) -> None:
        """Keep a connection, or close it if it has had its last response. `now` is on Trio's clock."""
        if connection.next_cycle():
            connection.idle_since = now
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()
