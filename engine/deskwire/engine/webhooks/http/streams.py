"""Streams of a client's connections that cost less than Trio's, because only one task at a time uses a stream (ADR 105).

`DirectStream` is a TCP stream that reads and writes its socket itself. `TlsStream` is TLS over another stream. `trio.SSLStream` serves
a sender and a receiver at the same time, with locks, and passes Trio's scheduler for each record.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio

T = TypeVar("T")

_READ_SIZE: Final = 16 * 1024


class DirectStream(trio.abc.Stream):
    """A TCP stream; raises trio.BrokenResourceError and trio.ClosedResourceError as `trio.SocketStream` does.

    Sending passes Trio's scheduler only if the system can't take all at once, and receiving only to wait.
    """

    def __init__(self, transport_stream: trio.SocketStream) -> None:
        self.transport_stream: Final = transport_stream
        self._socket: Final = transport_stream.socket

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See `trio.abc.SendStream.send_all`."""
        if rest := self._sent_now(data):
            await self.transport_stream.send_all(rest)

    async def wait_send_all_might_not_block(self) -> None:
        """See `trio.abc.SendStream.wait_send_all_might_not_block`."""
        await self.transport_stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See `trio.abc.ReceiveStream.receive_some`. `trio.SocketStream` tries to read before there can be anything."""
        while True:
            await trio.lowlevel.wait_readable(self._descriptor())
            try:
                return os.read(self._descriptor(), max_bytes or _READ_SIZE)
            except BlockingIOError:
                pass  # woken for nothing
            except OSError as error:
                raise trio.BrokenResourceError from error

    async def aclose(self) -> None:
        """See `trio.abc.AsyncResource.aclose`."""
        await self.transport_stream.aclose()

    def _sent_now(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Send the bytes that the system takes without waiting; return the rest. Raises trio.BrokenResourceError."""
        try:
            return data[os.write(self._descriptor(), data) :]
        except BlockingIOError:
            return data
        except OSError as error:
            raise trio.BrokenResourceError from error

    def _descriptor(self) -> int:
        """Return the socket's file descriptor. Raises trio.ClosedResourceError."""
        descriptor = self._socket.fileno()
        if descriptor < 0:
            raise trio.ClosedResourceError  # waiting for -1 would leave it busy in Trio for all sockets that are closed
        return descriptor


class TlsStream(trio.abc.Stream):
    """TLS of a client over another stream; `do_handshake` comes first.

    Raises trio.BrokenResourceError, caused by the `ssl.SSLError` if TLS fails. As with HTTPS in general, the end of the other stream
    ends this one, with or without TLS's close_notify, and none is sent.

    Args:
        server_name: the name or address that the server's certificate must be for.
    """

    def __init__(self, transport_stream: trio.abc.Stream, context: ssl.SSLContext, server_name: str) -> None:
        self.transport_stream: Final = transport_stream
        self._incoming: Final = ssl.MemoryBIO()
        self._outgoing: Final = ssl.MemoryBIO()
        self._tls: Final = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)

    async def do_handshake(self) -> None:
        """Negotiate, and verify the server's certificate. Raises trio.BrokenResourceError."""
        await self._run_tls(self._tls.do_handshake)
        await self._flush()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See `trio.abc.SendStream.send_all`."""
        view = memoryview(data)
        while view:
            view = view[await self._run_tls(self._tls.write, view) :]
        await self._flush()

    async def wait_send_all_might_not_block(self) -> None:
        """See `trio.abc.SendStream.wait_send_all_might_not_block`."""
        await self.transport_stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See `trio.abc.ReceiveStream.receive_some`."""
        if not self.has_unread:
            await self._receive()  # a read that can't succeed would cost an exception
        try:
            return await self._run_tls(self._tls.read, max_bytes or _READ_SIZE)
        except trio.BrokenResourceError as error:
            if _is_eof(error.__cause__):
                return b""
            raise

    async def aclose(self) -> None:
        """See `trio.abc.AsyncResource.aclose`."""
        await self.transport_stream.aclose()

    @property
    def has_unread(self) -> bool:
        """True if bytes have been received here that were not read yet, or the end of TLS."""
        return bool(self._incoming.pending or self._tls.pending())

    async def _run_tls(self, operation: Callable[..., T], *arguments: Any) -> T:
        """Run an operation of TLS, again after each receipt of bytes that it needs, and return its result."""
        while True:
            try:
                return operation(*arguments)
            except ssl.SSLWantReadError:
                await self._flush()
            except ssl.SSLError as error:
                raise trio.BrokenResourceError from error
            await self._receive()

    async def _receive(self) -> None:
        if data := await self.transport_stream.receive_some(_READ_SIZE):
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self.transport_stream.send_all(self._outgoing.read())


def direct(stream: trio.SocketStream) -> trio.abc.Stream:
    """Return a stream that uses the socket itself; the given one if its socket is none of the operating system."""
    return DirectStream(stream) if stream.socket.fileno() >= 0 else stream


def socket_of(stream: trio.abc.Stream) -> trio.socket.SocketType:
    """Return the socket beneath all TLS."""
    while isinstance(stream, TlsStream | DirectStream):
        stream = stream.transport_stream
    assert isinstance(stream, trio.SocketStream)
    return stream.socket


def is_quiet(stream: trio.abc.Stream) -> bool:
    """Return whether nothing is there to be read, neither bytes nor the end, in TLS or beneath it."""
    while isinstance(stream, TlsStream):
        if stream.has_unread:
            return False
        stream = stream.transport_stream
    return not socket_of(stream).is_readable()


def _is_eof(error: BaseException | None) -> bool:
    # Some versions of Python have no error of its own for it, see `trio._ssl`.
    return isinstance(error, ssl.SSLEOFError) or "UNEXPECTED_EOF_WHILE_READING" in (
        getattr(error, "strerror", None) or ""
    )
