"""One HTTP/1.1 connection of a client: request, head, body, one exchange after the other (RFC 9112).

h11 knows the protocol; what is here is how much is read at most. A receiver can send what it likes: before the
end of its head HEAD_MAX bytes are taken, interim answers included, and behind it BODY_WIRE_MAX bytes, framing
included. How long all that may take is the caller's business.
"""

from __future__ import annotations

import ssl
from contextlib import ExitStack
from typing import Final

import h11
import trio

Header = tuple[bytes, bytes]

HEAD_MAX: Final = 64 * 1024
"""Bytes of an answer up to the end of its head."""

BODY_WIRE_MAX: Final = 32 * 1024
"""Bytes behind it, the framing of chunks included: twice what is read of a body."""

_READ: Final = 16 * 1024
_ALPN: Final = ("http/1.1",)


class Disconnected(Exception):
    """The other side has closed the connection before its answer."""


class Connection:
    """A connection that nobody else uses.

    Args:
        stream: a TCP stream, or TLS over one; it belongs to the connection from now on.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._socket: Final = socket_of(stream)
        self._wire: Final = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        self._left = 0
        self.idle_since = 0.0

    async def send(self, method: bytes, target: bytes, headers: list[Header], body: bytes = b"") -> None:
        """Send a request, whose headers say how long its body is.

        A connection that breaks meanwhile is no error: some servers answer first, and close (RFC 9112, 9.6).
        """
        wire = self._wire
        data = wire.send(h11.Request(method=method, target=target, headers=headers)) or b""
        if body:
            data += wire.send(h11.Data(data=body)) or b""
        wire.send(h11.EndOfMessage())
        self._left = HEAD_MAX
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError:
            pass  # reading will tell

    async def head(self) -> h11.Response:
        """The head of the final answer.

        Raises:
            Disconnected: there is none.
            h11.RemoteProtocolError: what came is not HTTP, or has no end.
            trio.BrokenResourceError: the connection broke.
        """
        while (event := await self._next_event()) is not None:
            if isinstance(event, h11.Response):
                self._left = BODY_WIRE_MAX
                return event
        raise h11.RemoteProtocolError(f"no end of its head within {HEAD_MAX} bytes")

    async def piece(self) -> bytes:
        """What comes next of the answer's body; empty at its end, or when it is too long. Raises as `head`."""
        event = await self._next_event()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _next_event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED] | None:
        """What has come; None if that would be too much."""
        while (event := self._wire.next_event()) is h11.NEED_DATA:
            if self._left <= 0:
                return None
            data = await self._stream.receive_some(_READ)
            if not data and self._wire.their_state is h11.SEND_RESPONSE:
                raise Disconnected
            self._left -= len(data)
            self._wire.receive_data(bytes(data))
        return event

    def next_cycle(self) -> bool:
        """Make ready for another request; False if there can't be one, as something is unread or was the last."""
        wire = self._wire
        if wire.our_state is not h11.DONE or wire.their_state is not h11.DONE or any(wire.trailing_data):
            return False
        wire.start_next_cycle()
        return True

    def released(self) -> trio.abc.Stream:
        """The stream, after the other side has agreed to a tunnel.

        Raises h11.RemoteProtocolError if it has begun to talk in the tunnel, where it is not its turn.
        """
        if self._wire.trailing_data[0]:
            raise h11.RemoteProtocolError("it sent more than its head")
        return self._stream

    @property
    def quiet(self) -> bool:
        """Whether nothing has come since; on an idle connection that is the other side's end, or nonsense."""
        return not self._socket.is_readable()

    def close(self) -> None:
        """Close at once, with no goodbye in TLS: each answer says itself where it ends."""
        self._socket.close()


async def secured(stream: trio.abc.Stream, context: ssl.SSLContext, name: str) -> trio.abc.Stream:
    """TLS over `stream` with the server called `name`; if that fails, or is cancelled, `stream` is closed.

    Raises trio.BrokenResourceError, caused by what TLS objects to.
    """
    context.set_alpn_protocols(_ALPN)
    made = trio.SSLStream(stream, context, server_hostname=name, https_compatible=True)
    with ExitStack() as undo:
        undo.callback(socket_of(stream).close)
        await made.do_handshake()
        undo.pop_all()
    return made


def socket_of(stream: trio.abc.Stream) -> trio.socket.SocketType:
    """The socket beneath all TLS."""
    while isinstance(stream, trio.SSLStream):
        stream = stream.transport_stream
    assert isinstance(stream, trio.SocketStream)
    return stream.socket
