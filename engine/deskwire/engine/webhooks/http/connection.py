"""HTTP/1.1 client connections, and their reuse (RFC 9112).

`plain_response` parses simple responses, h11 all others. A receiver can send at most HEAD_MAX bytes up to the
end of its head, including interim responses, and BODY_WIRE_MAX bytes after it unless the caller sets another
limit, including framing. The caller limits the time.
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

# Bytes of a response up to the end of its head.
HEAD_MAX: Final = 64 * 1024

# Bytes after the head, including the framing of chunks: twice what is read of a body.
BODY_WIRE_MAX: Final = 32 * 1024

_READ_SIZE: Final = 16 * 1024
_ANY_HOST: Final = [(b"Host", b"*")]
_ALPN: Final = ("http/1.1",)


class Disconnected(Exception):
    """The receiver closed the connection before its response."""


class HttpConnection:
    """A connection for one exchange at a time.

    Args:
        stream: a TCP stream, or TLS over one; the connection owns it from now on.
        body_wire_max: bytes that are read after the head.

    Attributes:
        answered: whether any byte of the response to the last request has arrived.
        idle_since: when the last response had been read, in Trio's seconds.
    """

    def __init__(self, stream: trio.abc.Stream, body_wire_max: int = BODY_WIRE_MAX) -> None:
        self._stream = stream
        self._body_wire_max = body_wire_max
        self._socket: Final = socket_of(stream)
        self._method = b""
        self._wire: h11.Connection | None = None  # while a response is not plain
        self._body = b""
        self._bytes_left = 0
        self.answered = False
        self.idle_since = 0.0

    async def send(self, method: bytes, request: bytes) -> None:
        """Send a request with a known body length.

        A broken connection is not an error here: some servers respond early and close (RFC 9112, 9.6).
        """
        self._method, self._bytes_left, self.answered = method, HEAD_MAX, False
        try:
            await self._stream.send_all(request)
        except trio.BrokenResourceError:
            pass  # reading shows whether there is a response

    async def head(self) -> ResponseHead:
        """Return the head of the final response.

        Raises:
            Disconnected: the connection ended without a response.
            h11.RemoteProtocolError: the response is not HTTP, or its head is too long.
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
                self._bytes_left = self._body_wire_max
                return ResponseHead(event.status_code, event.headers)
        raise h11.RemoteProtocolError(f"no end of its head within {HEAD_MAX} bytes")

    async def next_chunk(self) -> bytes:
        """Return the next part of the response's body; empty at its end or limit.

        Raises as `head`.
        """
        if self._wire is None:
            body, self._body = self._body, b""
            return body
        event = await self._next_event(self._wire)
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    def _new_h11(self) -> h11.Connection:
        """Return an h11 connection that has just sent a request with the current method.

        h11 needs only the method of the request to parse the response.
        """
        wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        wire.send(h11.Request(method=self._method, target=b"*", headers=_ANY_HOST))
        wire.send(h11.EndOfMessage())
        return wire

    async def _next_event(self, wire: h11.Connection) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED] | None:
        """Return the next event of the response; None if it exceeds the limit of bytes."""
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
        """Prepare for another request; return False if the connection can't be reused."""
        wire, self._wire = self._wire, None
        if wire is None:
            return not self._body
        return wire.our_state is h11.DONE and wire.their_state is h11.DONE and not any(wire.trailing_data)

    def detach_stream(self) -> trio.abc.Stream:
        """Return the stream after the proxy has opened a tunnel.

        Raises h11.RemoteProtocolError if the proxy has already sent bytes in the tunnel.
        """
        assert self._wire is not None, "the proxy has responded"
        if self._wire.trailing_data[0]:
            raise h11.RemoteProtocolError("it sent more than its head")
        return self._stream

    @property
    def quiet(self) -> bool:
        """True if an idle connection has received neither bytes nor its end."""
        return is_quiet(self._stream)

    def close(self) -> None:
        """Close at once, without TLS's close_notify.

        That is safe because each response specifies its own end.
        """
        self._socket.close()


def header_lines(*lines: bytes) -> bytes:
    """Return joined header lines, each ended with CRLF.

    Raises h11.LocalProtocolError if a line contains a line break or NUL, which would allow header injection.
    """
    data = b"\r\n".join((*lines, b""))
    if data.count(b"\n") != len(lines) or data.count(b"\r") != len(lines) or b"\0" in data:
        raise h11.LocalProtocolError("a line ends within the head of the request")
    return data


async def start_tls(stream: trio.abc.Stream, context: ssl.SSLContext, name: str) -> trio.abc.Stream:
    """Return TLS over `stream` with the server called `name`.

    If the handshake fails or is cancelled, `stream` is closed. Raises trio.BrokenResourceError with the TLS
    error as its cause.
    """
    context.set_alpn_protocols(_ALPN)
    with ExitStack() as undo:
        undo.callback(socket_of(stream).close)
        secure = TlsStream(stream, context, name)
        await secure.do_handshake()
        undo.pop_all()
    return secure


# How long an idle connection is kept. Many servers close idle connections after 5 s (Node's default), and a
# request sent at that moment would fail.
KEEPALIVE_S: Final = 4.0


class IdleConnections:
    """Pool of idle connections to one receiver.

    Each endpoint has its own pool, so that no endpoint waits for another.
    """

    def __init__(self) -> None:
        self._idle: deque[HttpConnection] = deque()

    def take(self, now: float) -> HttpConnection | None:
        """Take the most recently used connection that is still open, or None.

        Surplus connections become old and are closed. `now` is Trio's time.
        """
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
        """Keep a connection, or close it if it can't be reused. `now` is Trio's time."""
        if connection.next_cycle():
            connection.idle_since = now
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()
