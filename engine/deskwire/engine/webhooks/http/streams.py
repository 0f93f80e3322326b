"""Streams for one task at a time, which cost less than Trio's (ADR 105).

`DirectStream` is a TCP stream that reads and writes its socket itself. `TlsStream` is TLS over another
stream. `trio.SSLStream` supports a concurrent sender and receiver with locks, and enters Trio's scheduler for
each record.
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
    """A TCP stream that calls the operating system directly.

    It raises trio.BrokenResourceError and trio.ClosedResourceError as `trio.SocketStream` does. Sending
    enters Trio's scheduler only if the system can't take all bytes at once; receiving enters it only to wait.
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
        """See `trio.abc.ReceiveStream.receive_some`."""
        while True:
            await trio.lowlevel.wait_readable(self._descriptor())
            try:
                return os.read(self._descriptor(), max_bytes or _READ_SIZE)
            except BlockingIOError:
                pass  # spurious wakeup
            except OSError as error:
                raise trio.BrokenResourceError from error

    async def aclose(self) -> None:
        """See `trio.abc.AsyncResource.aclose`."""
        await self.transport_stream.aclose()

    def _sent_now(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Send the bytes that the system takes without waiting; return the others.

        Raises trio.BrokenResourceError.
        """
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
            raise trio.ClosedResourceError  # Trio would treat -1 as one busy descriptor, shared by all closed sockets
        return descriptor


class TlsStream(trio.abc.Stream):
    """TLS client over another stream; call `do_handshake` first.

    Raises trio.BrokenResourceError, caused by the `ssl.SSLError` if TLS fails. As usual for HTTPS, the end of
    the other stream ends this one with or without TLS's close_notify, and no close_notify is sent.

    Args:
        server_name: the name or address that the server's certificate must match.
    """

    def __init__(self, transport_stream: trio.abc.Stream, context: ssl.SSLContext, server_name: str) -> None:
        self.transport_stream: Final = transport_stream
        self._incoming: Final = ssl.MemoryBIO()
        self._outgoing: Final = ssl.MemoryBIO()
        self._tls: Final = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)

    async def do_handshake(self) -> None:
        """Negotiate TLS and verify the certificate. Raises trio.BrokenResourceError."""
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
            await self._receive()  # avoids the exception of a read without data
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
        """True if received bytes, or the end of TLS, have not been read yet."""
        return bool(self._incoming.pending or self._tls.pending())

    async def _run_tls(self, operation: Callable[..., T], *arguments: Any) -> T:
        """Run a TLS operation, and repeat it after each receipt of bytes that it needs."""
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
    """Return a stream that uses the socket itself.

    If the socket is not the operating system's, the given stream is returned.
    """
    return DirectStream(stream) if stream.socket.fileno() >= 0 else stream


def socket_of(stream: trio.abc.Stream) -> trio.socket.SocketType:
    """Return the socket below all TLS layers."""
    while isinstance(stream, TlsStream | DirectStream):
        stream = stream.transport_stream
    assert isinstance(stream, trio.SocketStream)
    return stream.socket


def is_quiet(stream: trio.abc.Stream) -> bool:
    """Return whether neither bytes nor the end have arrived, in TLS or below it."""
    while isinstance(stream, TlsStream):
        if stream.has_unread:
            return False
        stream = stream.transport_stream
    return not socket_of(stream).is_readable()


def _is_eof(error: BaseException | None) -> bool:
    # Some Python versions have no specific error for it, see `trio._ssl`.
    return isinstance(error, ssl.SSLEOFError) or "UNEXPECTED_EOF_WHILE_READING" in (
        getattr(error, "strerror", None) or ""
    )
