"""The connection that the front hands on: its first bytes were already read, and its writes can't last for ever.

Hypercorn shields its writes from cancellation and gives them no deadline, so a client that never reads
would hold a shutdown for as long as it likes. Here every write has one, and `cut` shortens it.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from socket import IPPROTO_TCP, MSG_PEEK, SHUT_RDWR, SO_LINGER, SOL_SOCKET
from typing import Final

import trio

from deskwire.http.transport.connection_slots import ConnectionSlot
from deskwire.http.transport.fair_scheduling import FairScheduler

_OUT_OF_TIME = "the peer did not read in time"

STREAM_REQUEST: Final = b"GET /app/"
"""What a request for the stream begins with."""

DRAIN_BYTES_MAX: Final = 1 << 16
DRAIN_TIMEOUT_S: Final = 1.0
"""Bytes of a body that nobody wants which are read away, and for how long."""

LINGER_TIMEOUT_S: Final = 1.0
"""How long a closed connection may go on sending; who needs longer is not listening."""

HALF_CLOSED_TIMEOUT_S: Final = 2.0
"""How long a connection is kept whose peer has closed: a request may have come just before, and be taken up only now."""

TCP_USER_TIMEOUT: Final[int | None] = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux has it

_LINGER_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 16
_ANONYMOUS_READ_BYTES: Final = 1 << 14
"""What waits decrypted for a stranger's turn."""
_LINGER_OFF: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: what waits in the system's buffers is not kept for a peer that does not read."""


class FrontStream(trio.abc.HalfCloseableStream):
    """A TCP connection as the front hands it on.

    Args:
        write_timeout_s: how long one `send_all` may take; after that the connection is closed and
            BrokenResourceError raised, also within a shield.

    `slot` is where what waits in `send_all` is counted, and `scheduler` who waits to be read, if those are set.
    """

    slot: ConnectionSlot | None = None
    scheduler: FairScheduler | None = None

    def __init__(self, stream: trio.SocketStream, *, write_timeout_s: float) -> None:
        self.socket = stream.socket
        self._raw: trio.abc.Stream = stream
        self._pushed = b""
        self._write_timeout_s = write_timeout_s
        self._latest = inf
        self._writing: trio.CancelScope | None = None
        self._connection = trio.CancelScope()
        self._head_s = inf
        self._serving = 0
        self._ended = False
        self._sent_eof = False
        self._closing = False

    def push_back(self, data: bytes) -> None:
        """Let the next read begin with `data`."""
        self._pushed = data + self._pushed

    def take_back(self) -> bytes:
        """Return what was pushed back; it counts as read."""
        data, self._pushed = self._pushed, b""
        return data

    def limit_writes(self, deadline: float) -> None:
        """Let no write, not even one under way, last beyond `deadline` on Trio's clock."""
        self._latest = min(self._latest, deadline)
        if self._writing is not None:
            self._writing.deadline = min(self._writing.deadline, deadline)

    def set_idle(self, *, idle: bool) -> None:
        """Note that nothing is asked on the connection, or something."""
        if self.slot is not None:
            self.slot.set_idle(idle=idle)

    def keep_open(self) -> None:
        """Let the connection stay whatever others need."""
        if self.slot is not None:
            self.slot.keep_open()

    def abort(self) -> None:
        """Let the connection end as if the peer had gone. What it has not taken is thrown away."""
        with suppress(OSError):  # it has gone
            self.socket.setsockopt(SOL_SOCKET, SO_LINGER, _LINGER_OFF)
            self.socket.shutdown(SHUT_RDWR)

    def set_head_timeout(self, seconds: float, connection: trio.CancelScope) -> None:
        """End `connection` if a request's head takes longer than `seconds` from its first byte; infinity for never.

        So, much sooner, if the peer has closed and no request is answered: Hypercorn would keep what is left until
        it is idle for too long.
        """
        self._head_s, self._connection = seconds, connection
        connection.deadline = inf

    def detect_dead_peer(self) -> None:
        """Let the connection end when what was sent is not acknowledged for a while: TCP itself goes on for minutes."""
        if TCP_USER_TIMEOUT is not None:
            with suppress(OSError):  # it has gone
                self.socket.setsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT, int(self._write_timeout_s * 1000))

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Expect no head while a request is answered."""
        self._serving += 1
        self._connection.deadline = inf
        self.set_idle(idle=False)
        try:
            yield
        finally:
            self._serving -= 1
            self.set_idle(idle=True)
            if self.scheduler is not None:
                self.scheduler.release(self)
            if self._ended:
                self._set_deadline()

    def _set_deadline(self) -> None:
        """Bound the time in which the rest of a head, or the end, has to come from now on."""
        if not self._serving:
            within_s = min(self._head_s, HALF_CLOSED_TIMEOUT_S) if self._ended else self._head_s
            self._connection.deadline = min(self._connection.deadline, trio.current_time() + within_s)

    async def until_readable(self) -> None:
        """Return once a read may not have to wait; at once where that can't be told.

        An idle connection takes a third less memory here than in a read, which goes through more calls.
        """
        if not self._pushed:
            await trio.lowlevel.wait_readable(self.socket)

    async def acquire_turn(self) -> None:
        """Wait until something has come, and it is this connection's turn to have it read (`scheduler`)."""
        slot, scheduler = self.slot, self.scheduler
        if slot is None or scheduler is None:
            return
        if not self._serving:
            scheduler.release(self)
        if slot.is_anonymous:
            await self._wait_readable()
            scheduler.release(self)
            await scheduler.acquire(self, slot.network)
        else:
            scheduler.note_identified()

    async def ensure_turn(self) -> None:
        """Have a turn: the one that is still held, or the next."""
        if self.slot is not None and self.scheduler is not None and self.slot.is_anonymous:
            await self.scheduler.ensure(self, self.slot.network)

    async def next_turn(self) -> None:
        """Give the turn back, and have the next."""
        if self.scheduler is not None:
            self.scheduler.release(self)
        await self.ensure_turn()

    async def _wait_readable(self) -> None:
        """Return once something has come; what had to be read to know that is read again."""
        await trio.lowlevel.wait_readable(self.socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See `trio.abc.ReceiveStream`. Raises ClosedResourceError from `aclose` on, which reads what still comes."""
        if self._closing:
            raise trio.ClosedResourceError("the connection is being closed")
        if not self._pushed:
            await self.acquire_turn()
            if self._closing:  # meanwhile: `aclose` reads what still comes, and two can't read
                raise trio.ClosedResourceError("the connection is being closed")
        data = await self._receive(max_bytes)
        self._ended = self._ended or not data
        self._set_deadline()
        return data

    async def _receive(self, max_bytes: int | None) -> bytes:
        if not self._pushed:
            return bytes(await self._raw.receive_some(max_bytes))
        await trio.lowlevel.checkpoint()
        end = len(self._pushed) if max_bytes is None else max_bytes
        data, self._pushed = self._pushed[:end], self._pushed[end:]
        return data

    @property
    def peer(self) -> str | None:
        """The address of the other end; None if it is gone, or has none."""
        try:
            address = self.socket.getpeername()
        except OSError:
            return None
        return str(address[0]) if isinstance(address, tuple) else None

    async def receive_next(self) -> bytes:
        """Return what the peer sends next, once there is some; empty at the end. Bounds on heads do not hold for it.

        It takes half the time of `receive_some`, whose first try fails where there is nothing yet.

        Raises BrokenResourceError.
        """
        if self._pushed:
            return self.take_back()
        await self.acquire_turn()
        while True:
            await trio.lowlevel.wait_readable(self.socket)
            try:
                return os.read(self.socket.fileno(), _READ_BYTES)
            except BlockingIOError:
                pass  # woken for nothing
            except ConnectionError as error:
                raise trio.BrokenResourceError from error

    def send_now(self, data: bytes) -> bytes:
        """Send what the system takes without waiting; return the rest, for `send_all`.

        No other write may be under way. Raises BrokenResourceError.
        """
        try:
            return data[os.write(self.socket.fileno(), data) :]
        except BlockingIOError:
            return data
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See `trio.abc.SendStream`. Raises BrokenResourceError when out of time, too."""
        if self._sent_eof:
            raise trio.ClosedResourceError("the connection is being closed")
        deadline = min(trio.current_time() + self._write_timeout_s, self._latest)
        slot, size = self.slot, len(data)
        with trio.CancelScope(deadline=deadline) as scope:
            self._writing = scope
            if slot is not None:
                slot.add_unsent(size)
            try:
                await self._raw.send_all(data)
            finally:
                if slot is not None:
                    slot.remove_unsent(size)
                self._writing = None
        if scope.cancelled_caught:
            await trio.aclose_forcefully(self)
            raise trio.BrokenResourceError(_OUT_OF_TIME)

    async def wait_send_all_might_not_block(self) -> None:
        """See `trio.abc.SendStream`."""
        await self._raw.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """See `trio.abc.HalfCloseableStream`. From here on nothing can be sent, not only from its end on."""
        self._sent_eof = True
        if isinstance(self._raw, trio.abc.HalfCloseableStream):
            await self._raw.send_eof()

    async def aclose(self) -> None:
        """Close the connection. What the peer is still sending is read away first, for a moment.

        Closed with unread bytes, a connection is reset, and a reset overtakes the response that says why
        (RFC 9112 section 9.6).
        """
        self._closing = True
        try:
            with trio.move_on_at(min(trio.current_time() + LINGER_TIMEOUT_S, self._latest)):
                sending = self.has_unread_data()
                while sending:
                    sending = bool(await self.socket.recv(_LINGER_BYTES))
        except (OSError, trio.BusyResourceError, trio.ClosedResourceError):
            pass  # it is closed already, or somebody else reads it away
        finally:
            await self._raw.aclose()

    def has_unread_data(self) -> bool:
        """Tell whether something has come that was not read, or the end."""
        return self.socket.fileno() >= 0 and self.socket.is_readable()


class TlsFrontStream(FrontStream):
    """A `FrontStream` over TLS; it has what Hypercorn looks for to tell the two apart.

    What TLS takes of memory is taken when the client has begun to speak, not before.

    Args:
        context: with the certificate.
    """

    def __init__(self, stream: trio.SocketStream, context: ssl.SSLContext, *, write_timeout_s: float) -> None:
        super().__init__(stream, write_timeout_s=write_timeout_s)
        self.transport_stream = stream
        self._context = context
        self._tls: trio.SSLStream[trio.SocketStream] | None = None

    async def until_readable(self) -> None:
        """Return at once: what was received may hold more than what was read."""

    async def _wait_readable(self) -> None:
        if self._tls is not None:
            self.push_back(bytes(await self._raw.receive_some(_ANONYMOUS_READ_BYTES)))
        else:
            await super()._wait_readable()

    def send_now(self, data: bytes) -> bytes:
        """Return all of it: over TLS nothing goes without waiting."""
        return data

    async def receive_next(self) -> bytes:
        """See `FrontStream.receive_next`."""
        if not self._pushed:
            await self.acquire_turn()
        return self.take_back() or bytes(await self._raw.receive_some(_READ_BYTES))

    async def peek_byte(self) -> bytes:
        """Return the first byte that the client sends, left where it is; empty if it sends none.

        Raises BrokenResourceError.
        """
        try:
            return await self.socket.recv(1, MSG_PEEK)
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def do_handshake(self) -> None:
        """See `trio.SSLStream`; does nothing the second time."""
        if self._tls is None:
            self._raw = self._tls = trio.SSLStream(
                self.transport_stream, self._context, server_side=True, https_compatible=True
            )
        await self._tls.do_handshake()

    def selected_alpn_protocol(self) -> str | None:
        """Return the protocol that the handshake agreed on."""
        assert self._tls is not None, "the handshake is over"
        agreed: str | None = self._tls.selected_alpn_protocol()
        return agreed


# DOC drain.py: """Reading away what a peer still sends that is not listened to any more.
#
# A connection that is closed with unread bytes is reset, and a reset overtakes the goodbye that says why (RFC 9112
# section 9.6). Nothing is parsed: at most the first byte of what came is looked at.
# """
#


_READ: Final = 16 * 1024
_READS: Final = 64
"""Reads at most, a megabyte: who sends more is not waiting for an answer."""


async def drain(stream: trio.abc.Stream, last: bytes) -> None:
    """Read until the peer closes, a close frame of its begins what comes, or it has sent too much.

    Raises BrokenResourceError and ClosedResourceError.
    """
    for _ in range(_READS):
        data = await stream.receive_some(_READ)
        if not data or data.startswith(last):
            return
