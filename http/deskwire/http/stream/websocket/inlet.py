"""The inbound side of a stream connection: frames, counted, and messages put together from them; no I/O (RFC 6455 5.4)."""

from __future__ import annotations

from collections.abc import Iterator

import trio
from wsproto.connection import ConnectionState
from wsproto.events import Event, TextMessage

from deskwire.http.stream import pusher
from deskwire.http.stream.inflow import HangUp, Inflow
from deskwire.http.stream.websocket.parser import Wire


class Inlet:
    """The inbound side of one connection.

    Args:
        largest: bytes of a message at most.
        rest: bytes that came behind the handshake.
        frames: the number of frames so far.
    """

    __slots__ = ("_assembler", "_inflow", "_largest", "frames", "wire")

    def __init__(self, largest: int, rest: bytes) -> None:
        self.wire = Wire(largest, rest)
        self.frames = 0
        self._largest = largest
        self._assembler = MessageAssembler(largest)
        self._inflow = Inflow(largest)

    def feed(self, data: bytes) -> None:
        """Take what was read. Raises HangUp."""
        if self.wire.state is not ConnectionState.CLOSED:
            self.wire.receive_data(data)
        self._inflow.bytes(len(data), trio.current_time())

    def events(self) -> Iterator[Event]:
        """Yield what has come. A read without a whole frame counts as one, as it costs as much. Raises HangUp."""
        before = self.frames
        for event in self.wire.events():
            self._count()
            yield event
        if self.frames == before:
            self._count()

    def text(self, event: TextMessage) -> str | None:
        """Return the whole message, if this is its last part. Raises HangUp."""
        try:
            text = self._assembler.add(event)
        except TooLong:
            raise HangUp(pusher.too_big(self._largest)) from None
        if text is not None:
            self._inflow.message(trio.current_time())
        return text

    def _count(self) -> None:
        self.frames += 1
        self._inflow.frame(trio.current_time())


class TooLong(Exception):
    """A message has more bytes than it may."""


class MessageAssembler:
    """The inbound messages of one connection. Nothing is kept between two, and one buffer of one that is under way.

    Args:
        limit: largest number of bytes of a whole message.
    """

    __slots__ = ("_buffer", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer: bytearray | None = None

    def add(self, event: TextMessage) -> str | None:
        """Return the whole message, if this is its last part. Raises TooLong."""
        if self._buffer is None and event.message_finished:
            self._check(len(event.data.encode()))
            return event.data
        buffer = self._buffer = bytearray() if self._buffer is None else self._buffer
        buffer += event.data.encode()
        self._check(len(buffer))
        if not event.message_finished:
            return None
        self._buffer = None
        return buffer.decode()

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLong
