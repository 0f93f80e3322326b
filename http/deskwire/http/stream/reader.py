"""The reading end of one stream connection: frames to messages, pongs and the close.

The size and rate of a peer's messages are bounded (ADR 41). After a broken rule, nothing more of the peer is parsed.
"""

from __future__ import annotations

from typing import Final, Protocol

import trio
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage

from deskwire.http.server.connection import LINGER_S, FrontStream
from deskwire.http.server.drain import drain
from deskwire.http.stream import pusher
from deskwire.http.stream.inflow import HangUp, TooMuch
from deskwire.http.stream.lifetime import Lifetime
from deskwire.http.stream.timekeeper import Timekeeper
from deskwire.http.stream.websocket.inlet import Inlet
from deskwire.http.stream.writer import SocketWriter

_READ: Final = 16 * 1024
_TURN: Final = 16
"""Frames after which other tasks have their turn: less than a millisecond."""
_STRANGER_S: Final = 0.25
"""How long such a turn of others is while the connection has not subscribed; clients send one or two frames before that."""


class MessageHandler(Protocol):
    """The receiver of a connection's messages."""

    async def greet(self) -> None:
        """Send the connection's first message."""

    async def receive(self, text: str) -> None:
        """Act on a text message."""


class Reader:
    """The reading end of one connection; its task also keeps the time, as it waits anyway.

    Args:
        stream: the transport.
        inlet: what has been read of it.
    """

    __slots__ = ("_inlet", "_lifetime", "_stream", "_timekeeper", "_writer")

    def __init__(
        self,
        stream: trio.abc.Stream,
        inlet: Inlet,
        writer: SocketWriter,
        lifetime: Lifetime,
        timekeeper: Timekeeper,
    ) -> None:
        self._stream = stream
        self._inlet = inlet
        self._writer = writer
        self._lifetime = lifetime
        self._timekeeper = timekeeper

    async def run(self, handler: MessageHandler) -> None:
        """Read until the peer has closed or gone; `handler` gets each text message, in order."""
        try:  # not `suppress`: from Python 3.12 on that takes groups of these, too, which are a handler's failures
            await self._read_or_hang_up(handler)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _read_or_hang_up(self, handler: MessageHandler) -> None:
        try:
            await self._read(handler)
        except HangUp as cause:
            self._writer.traffic.flooded += isinstance(cause, TooMuch)
            self._lifetime.goodbye_s = LINGER_S  # no close frame is looked for (RFC 6455 7.1.1)
            self._lifetime.end(cause.goodbye)
            await drain(self._stream)  # has checkpoints, in which the goodbye is said

    async def _read(self, handler: MessageHandler) -> None:
        """Handle what comes, up to the end of the connection. Raises HangUp."""
        going_on = True
        while going_on:
            for event in self._inlet.events():
                if await self._handle(event, handler):
                    return
                if self._inlet.frames % _TURN == 0:
                    await trio.sleep(0 if self._timekeeper.settled else _STRANGER_S)
            going_on = await self._receive()

    async def _receive(self) -> bool:
        """Feed the parser with what comes next; return False at the end. Nothing is kept while waiting for it."""
        timekeeper = self._timekeeper
        while True:
            if timekeeper.due_at() <= trio.current_time():
                await timekeeper.keep()
            with trio.CancelScope(deadline=timekeeper.due_at()) as timekeeper.waiting:
                if isinstance(self._stream, FrontStream):
                    await self._stream.until_readable()
                data = bytes(await self._stream.receive_some(_READ))
                if data:
                    self._inlet.feed(data)
                return bool(data)

    async def _handle(self, event: Event, handler: MessageHandler) -> bool:
        """Handle one event; return True at the end of the connection. Raises HangUp."""
        match event:
            case CloseConnection():
                return await self._closed(event)
            case Pong():
                self._timekeeper.pong(bytes(event.payload))
            case _ if self._writer.ending:
                pass  # read on only to find the peer's close frame
            case Ping():
                await self._writer.write(self._inlet.wire.send(event.response()))
            case TextMessage():
                if (text := self._inlet.text(event)) is not None:
                    await handler.receive(text)
            case BytesMessage():
                raise HangUp(pusher.TEXT_ONLY)
            case _:
                pass
        return False

    async def _closed(self, event: CloseConnection) -> bool:
        wire = self._inlet.wire
        if wire.state is ConnectionState.CLOSED:
            if event.code == self._lifetime.sent_code:  # RFC 6455 5.5.1; another code may have crossed ours
                self._timekeeper.confirm_all()
            return True
        if wire.state is ConnectionState.REMOTE_CLOSING:
            await self._writer.write(wire.send(event.response()))
            return True
        raise HangUp(pusher.Close(event.code, event.reason or "Malformed frame."))  # wsproto's verdict
