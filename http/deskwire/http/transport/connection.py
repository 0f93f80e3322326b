"""A client's connection, with a timeout for each write.

Bytes that were read can be pushed back. Hypercorn shields its writes from cancellation and gives them no
deadline, so a client that never reads could delay a shutdown without limit. Here every write has a
deadline, which `limit_writes` shortens.
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

# The beginning of a request for the stream.
STREAM_REQUEST: Final = b"GET /app/"

DRAIN_BYTES_MAX: Final = 1 << 16
# Limits of reading the rest of an unwanted body, in bytes and seconds.
DRAIN_TIMEOUT_S: Final = 1.0

# A closed connection may send for this long; a client that needs longer is not reading.
LINGER_TIMEOUT_S: Final = 1.0

# A connection whose peer has closed is kept for this long, because its last request may not have been read
# yet.
HALF_CLOSED_TIMEOUT_S: Final = 2.0

# Only Linux has it.
TCP_USER_TIMEOUT: Final[int | None] = getattr(socket, "TCP_USER_TIMEOUT", None)

_LINGER_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 16
# Decrypted bytes of an anonymous connection that wait for its turn.
_ANONYMOUS_READ_BYTES: Final = 1 << 14
# SO_LINGER without time: the system discards buffered data of a peer that does not read.
_LINGER_OFF: Final = struct.pack("ii", 1, 0)


# Stands for no `arrival_timeout`, and is never entered.
_UNLIMITED: Final = trio.CancelScope()


class FrontStream(trio.abc.HalfCloseableStream):
    """A TCP connection of a client.

    Args:
        write_timeout_s: time limit of one `send_all`; after that the connection is closed and
            BrokenResourceError raised, even within a shield.

    `slot` counts the unsent bytes of `send_all`, and `scheduler` orders the reads, if they are set.
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
        self._turn_passed = False
        self._arrival = _UNLIMITED
        self._sent_eof = False
        self._closing = False

    def push_back(self, data: bytes) -> None:
        """Make the next read return `data` first."""
        self._pushed = data + self._pushed

    def take_back(self) -> bytes:
        """Return the data that was pushed back, as read."""
        data, self._pushed = self._pushed, b""
        return data

    def limit_writes(self, deadline: float) -> None:
        """Limit all writes, including the current one, to `deadline` on Trio's clock."""
        self._latest = min(self._latest, deadline)
        if self._writing is not None:
            self._writing.deadline = min(self._writing.deadline, deadline)

    def set_idle(self, *, idle: bool) -> None:
        """Note whether a request is under way on the connection."""
        if self.slot is not None:
            self.slot.set_idle(idle=idle)

    def keep_open(self) -> None:
        """Exempt the connection from eviction."""
        if self.slot is not None:
            self.slot.keep_open()

    def abort(self) -> None:
        """End the connection as if the peer had gone, and discard unsent data."""
        with suppress(OSError):  # disconnected
            self.socket.setsockopt(SOL_SOCKET, SO_LINGER, _LINGER_OFF)
            self.socket.shutdown(SHUT_RDWR)

    def set_head_timeout(self, seconds: float, connection: trio.CancelScope) -> None:
        """Cancel `connection` if a request's head takes longer than `seconds`.

        The time runs from the head's first byte; infinity is no limit. If the peer has closed and no
        request is under way, the limit is much shorter: Hypercorn would keep an incomplete request until
        the idle timeout.
        """
        self._head_s, self._connection = seconds, connection
        connection.deadline = inf

    def detect_dead_peer(self) -> None:
        """End the connection when sent data is not acknowledged for a while.

        By default TCP retries for minutes.
        """
        if TCP_USER_TIMEOUT is not None:
            with suppress(OSError):  # disconnected
                self.socket.setsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT, int(self._write_timeout_s * 1000))

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Suspend the timeout of heads while a request is served."""
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
        """Limit the time in which the rest of a head, or the end, must arrive."""
        if not self._serving:
            within_s = min(self._head_s, HALF_CLOSED_TIMEOUT_S) if self._ended else self._head_s
            self._connection.deadline = min(self._connection.deadline, trio.current_time() + within_s)

    @contextmanager
    def arrival_timeout(self, seconds: float) -> Iterator[None]:
        """Limit the time in which the client must send what is read here; waits for the connection's turn don't count.

        Raises trio.TooSlowError.
        """
        with trio.fail_after(seconds) as self._arrival:
            try:
                yield
            finally:
                self._arrival = _UNLIMITED

    async def until_readable(self) -> None:
        """Return once a read may not have to wait.

        Returns at once if that is unknown.

        An idle connection takes a third less memory here than in a read, because a read has more stack
        frames.
        """
        if not self._pushed:
            await trio.lowlevel.wait_readable(self.socket)

    async def acquire_turn(self) -> bool:
        """Wait for data, and for this connection's turn to have it read (`scheduler`).

        Returns False if data may not have arrived, because the connection takes no turns.
        """
        slot, scheduler = self.slot, self.scheduler
        if slot is None or scheduler is None:
            return False
        if not self._serving:
            scheduler.release(self)
        if not slot.is_anonymous:
            scheduler.note_identified()
            return False
        await self._wait_readable()
        scheduler.release(self)
        await self._wait_for_turn(scheduler, slot.network)
        return True

    async def _wait_for_turn(self, scheduler: FairScheduler, network: str) -> None:
        arrival, began = self._arrival, trio.current_time()
        deadline, arrival.deadline = arrival.deadline, inf
        try:
            await scheduler.acquire(self, network)
        finally:
            arrival.deadline = deadline + trio.current_time() - began

    def pass_turn(self) -> None:
        """Keep the turn for the task that goes on with this connection."""
        if self.scheduler is not None:
            self.scheduler.pass_on(self)
            self._turn_passed = True

    async def ensure_turn(self) -> None:
        """Hold a turn: the current one if it has not expired, or the next."""
        if self.slot is not None and self.scheduler is not None and self.slot.is_anonymous:
            await self.scheduler.ensure(self, self.slot.network)

    async def next_turn(self) -> None:
        """Release the turn and acquire the next, or hold the turn that another task has passed."""
        if self.scheduler is not None and not self._turn_passed:
            self.scheduler.release(self)
        self._turn_passed = False
        await self.ensure_turn()

    async def _wait_readable(self) -> None:
        """Return once data has arrived.

        Bytes that had to be read to find out are pushed back.
        """
        await trio.lowlevel.wait_readable(self.socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See `trio.abc.ReceiveStream`.

        Raises ClosedResourceError once `aclose` has begun, which reads the remaining data.
        """
        if self._closing:
            raise trio.ClosedResourceError("the connection is being closed")
        data = b""
        if not self._pushed:
            arrived = await self.acquire_turn()
            if self._closing:  # closed during the wait: `aclose` reads now, and there must be one reader
                raise trio.ClosedResourceError("the connection is being closed")
            if arrived:  # at once, because the turn would last until other tasks have run
                data = self.receive_arrived(max_bytes or _READ_BYTES)
        data = data or await self._receive(max_bytes)
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
        """The address of the other end.

        Returns None if it is disconnected or has none.
        """
        try:
            address = self.socket.getpeername()
        except OSError:
            return None
        return str(address[0]) if isinstance(address, tuple) else None

    async def receive_next(self) -> bytes:
        """Return the peer's next data, once there is some.

        Returns empty bytes at the end. Timeouts of heads do not apply.

        It takes half the time of `receive_some`, which first tries a read that fails if nothing has arrived
        yet.

        Raises BrokenResourceError.
        """
        if self._pushed:
            return self.take_back()
        arrived = await self.acquire_turn()
        while True:
            if not arrived:  # a second wait would make the turn last until other tasks have run
                await trio.lowlevel.wait_readable(self.socket)
            try:
                return os.read(self.socket.fileno(), _READ_BYTES)
            except BlockingIOError:
                arrived = False  # spurious wake-up
            except ConnectionError as error:
                raise trio.BrokenResourceError from error

    def receive_arrived(self, max_bytes: int) -> bytes:
        """Return data that has arrived, without waiting; empty bytes if there is none, or the end."""
        try:
            return os.read(self.socket.fileno(), max_bytes)
        except OSError:
            return b""  # nothing yet; a broken connection is found by the next read

    def send_now(self, data: bytes) -> bytes:
        """Send as much as the system accepts without waiting.

        Returns the rest, for `send_all`.

        No other write may be under way. Raises BrokenResourceError.
        """
        try:
            return data[os.write(self.socket.fileno(), data) :]
        except BlockingIOError:
            return data
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See `trio.abc.SendStream`. Raises BrokenResourceError after a timeout as well."""
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
        """See `trio.abc.HalfCloseableStream`. Nothing can be sent once it has begun."""
        self._sent_eof = True
        if isinstance(self._raw, trio.abc.HalfCloseableStream):
            await self._raw.send_eof()

    async def aclose(self) -> None:
        """Close the connection.

        Before that, it reads for a moment the data that the peer is still sending. A connection that is
        closed with unread bytes is reset, and the reset may discard the response (RFC 9112 section 9.6).
        """
        self._closing = True
        try:
            with trio.move_on_at(min(trio.current_time() + LINGER_TIMEOUT_S, self._latest)):
                sending = self.has_unread_data()
                while sending:
                    sending = bool(await self.socket.recv(_LINGER_BYTES))
        except (OSError, trio.BusyResourceError, trio.ClosedResourceError):
            pass  # already closed, or another task reads
        finally:
            await self._raw.aclose()

    def has_unread_data(self) -> bool:
        """Return whether data, or the end, has arrived that was not read."""
        return self.socket.fileno() >= 0 and self.socket.is_readable()


class TlsFrontStream(FrontStream):
    """A `FrontStream` over TLS.

    Hypercorn recognizes it by its attributes.

    The memory for TLS is allocated once the client has sent something.

    Args:
        context: with the certificate.
    """

    def __init__(self, stream: trio.SocketStream, context: ssl.SSLContext, *, write_timeout_s: float) -> None:
        super().__init__(stream, write_timeout_s=write_timeout_s)
        self.transport_stream = stream
        self._context = context
        self._tls: trio.SSLStream[trio.SocketStream] | None = None

    async def until_readable(self) -> None:
        """Return at once.

        Decrypted data may be waiting although the socket is not readable.
        """

    def receive_arrived(self, max_bytes: int) -> bytes:
        """Return empty bytes: the handshake comes first."""
        return b""

    async def _wait_readable(self) -> None:
        if self._tls is not None:
            self.push_back(bytes(await self._raw.receive_some(_ANONYMOUS_READ_BYTES)))
        else:
            await super()._wait_readable()

    def send_now(self, data: bytes) -> bytes:
        """Return all of it: TLS writes may have to wait."""
        return data

    async def receive_next(self) -> bytes:
        """See `FrontStream.receive_next`."""
        if not self._pushed:
            await self.acquire_turn()
        return self.take_back() or bytes(await self._raw.receive_some(_READ_BYTES))

    async def peek_byte(self) -> bytes:
        """Return the first byte that the client sends, without consuming it.

        Returns empty bytes if it sends none.

        Raises BrokenResourceError.
        """
        try:
            return await self.socket.recv(1, MSG_PEEK)
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def do_handshake(self) -> None:
        """See `trio.SSLStream`.

        Does nothing the second time.
        """
        if self._tls is None:
            self._raw = self._tls = trio.SSLStream(
                self.transport_stream, self._context, server_side=True, https_compatible=True
            )
        await self._tls.do_handshake()

    def selected_alpn_protocol(self) -> str | None:
        """Return the protocol that the handshake negotiated."""
        assert self._tls is not None, "the handshake is over"
        agreed: str | None = self._tls.selected_alpn_protocol()
        return agreed


_READ: Final = 16 * 1024
# Reads of a drain, a megabyte: a client that sends more is not waiting for a response.
_READS: Final = 64


async def drain(stream: trio.abc.Stream, last: bytes) -> None:
    """Read until the peer closes, a read begins with `last`, or it has sent too much.

    A connection that is closed with unread bytes is reset, and the reset may discard the goodbye before it
    (RFC 9112 section 9.6). Nothing is parsed.

    Args:
        last: the first bytes of the peer's goodbye.

    Raises BrokenResourceError and ClosedResourceError.
    """
    for _ in range(_READS):
        data = await stream.receive_some(_READ)
        if not data or data.startswith(last):
            return
