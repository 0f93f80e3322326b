"""One stream connection: its subscriptions, its reader and its parts.

The size and rate of a peer's messages are limited (ADR 41). After a violation, no more of its data is
parsed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

import trio
from msgspec import Struct
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage

from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Subscription
from deskwire.http.measurements import Traffic
from deskwire.http.stream import pusher
from deskwire.http.stream.event_writer import EventWriter, Flusher
from deskwire.http.stream.heartbeat import ConnectionTimeouts
from deskwire.http.stream.limits import ProtocolViolation, RateExceeded, UnsubscribedSlot
from deskwire.http.stream.socket_writer import Lifetime, SocketWriter
from deskwire.http.stream.websocket import CLOSE_FRAME, InboundMessages, text_frame
from deskwire.http.transport.connection import LINGER_TIMEOUT_S, FrontStream, drain

# Clients authorize and subscribe at once, unless the service delays them.
UNSUBSCRIBED_GRACE_S: Final = 5.0


class SessionLimits(Struct, frozen=True):
    """The limits of each connection.

    See `RealtimeStream`.
    """

    ping_s: float
    write_timeout_s: float
    inbound_bytes: int
    unsubscribed_s: float


class StreamSession:
    """An accepted websocket. `run` serves it.

    Its owner calls `send`, `follow` and `end`.

    Args:
        stream: the transport; closed by the caller.
        traffic: counts frames written and the reasons of ends.
        rest: bytes received after the handshake.
        slot: the connection's slot among the unsubscribed connections, until it is settled.

    Attributes:
        subscriptions: by channel name.
    """

    __slots__ = (
        "_events",
        "_hub",
        "_lifetime",
        "_reader",
        "_slot",
        "_stream",
        "_timeouts",
        "_writer",
        "subscriptions",
    )

    def __init__(
        self,
        stream: trio.abc.Stream,
        hub: Hub,
        flusher: Flusher,
        traffic: Traffic,
        limits: SessionLimits,
        rest: bytes,
        slot: UnsubscribedSlot,
    ) -> None:
        inbound = InboundMessages(limits.inbound_bytes, rest)
        self.subscriptions: dict[str, Subscription] = {}
        self._stream = stream
        self._hub = hub
        self._slot: UnsubscribedSlot | None = slot
        self._writer = SocketWriter(stream, limits.write_timeout_s, traffic)
        self._lifetime = Lifetime(self._writer, inbound.wire)
        self._timeouts = ConnectionTimeouts(
            hub,
            self.subscriptions,
            self._writer,
            inbound.wire,
            self._lifetime,
            ping_s=limits.ping_s,
            unsubscribed_s=limits.unsubscribed_s,
        )
        self._events = EventWriter(flusher, self._writer, self._lifetime, self._timeouts)
        self._reader = MessageReader(stream, inbound, self._writer, self._lifetime, self._timeouts)
        slot.evict = partial(self.end, pusher.NEVER_SUBSCRIBED)

    @property
    def ending(self) -> bool:
        """True once the connection is closing and writes nothing but its goodbye."""
        return self._writer.ending

    @property
    def lacks_subscription(self) -> bool:
        """True if the client should have subscribed by now and has not.

        False while it waits for a channel.
        """
        return not self.subscriptions and self._timeouts.unsubscribed_for_s > UNSUBSCRIBED_GRACE_S

    async def run(self, handler: MessageHandler) -> None:
        """Serve until the connection ends.

        `handler` greets, then receives each text message in order. All its subscriptions end with it.

        Cancellation: at once, without a goodbye.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._lifetime.begin(nursery)
                try:
                    await handler.greet()
                    await self._reader.run(handler)
                finally:  # before the nursery closes, because a flush must not find it closed
                    self._writer.break_off()
        finally:
            for subscription in self.subscriptions.values():
                self._hub.leave(subscription, for_good=False)

    def settle(self) -> None:
        """Exempt the connection from eviction and the subscription timeout.

        Its client has shown a valid token.
        """
        if isinstance(self._stream, FrontStream):
            self._stream.keep_open()
        if self._slot is not None:
            self._slot.release()
            self._slot = None
            self._timeouts.settle()

    def spawn(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run `task` while the connection is open."""
        self._lifetime.spawn(task)

    async def send(self, *messages: bytes) -> bool:
        """Write protocol messages, unless the connection is ending.

        Returns whether they were written.
        """
        return await self._writer.write(b"".join(map(text_frame, messages)))

    def follow(self, subscription: Subscription) -> None:
        """Send the subscription's events, until it or the connection ends.

        The client knows where the subscription begins: from now on a pong confirms that position, and a gap
        before it.
        """
        self.subscriptions[subscription.channel.name] = subscription
        subscription.written = subscription.start.position
        self.settle()
        self._events.follow(subscription)

    def unfollow(self, channel: str) -> None:
        """End a subscription at the client's request."""
        subscription = self.subscriptions.pop(channel, None)
        if subscription is not None:
            self._hub.leave(subscription, for_good=True)

    def note_unauthorized(self) -> None:
        """Count the end of the connection as an end for a refused authorization."""
        self._writer.traffic.unauthorized += not self._writer.ending

    def end(self, goodbye: pusher.StreamClose) -> None:
        """End the connection with a goodbye.

        Only the first call has an effect.
        """
        self._lifetime.end(goodbye)


# Bytes of one read.
_READ: Final = 16 * 1024
# Frames after which other tasks run: less than a millisecond of work.
_TURN: Final = 16
# Length of this pause for an unsubscribed connection; clients send one or two frames before they subscribe.
_UNSUBSCRIBED_PAUSE_S: Final = 0.25


class MessageHandler(Protocol):
    """The receiver of a connection's messages."""

    async def greet(self) -> None:
        """Send the connection's first message."""

    async def receive(self, text: str) -> None:
        """Handle a text message."""


class MessageReader:
    """The reader of one connection.

    Its task also enforces the timeouts, because it waits anyway.

    Args:
        stream: the transport.
        inbound: parses the data that was read.
    """

    __slots__ = ("_inbound", "_lifetime", "_stream", "_timeouts", "_writer")

    def __init__(
        self,
        stream: trio.abc.Stream,
        inbound: InboundMessages,
        writer: SocketWriter,
        lifetime: Lifetime,
        timeouts: ConnectionTimeouts,
    ) -> None:
        self._stream = stream
        self._inbound = inbound
        self._writer = writer
        self._lifetime = lifetime
        self._timeouts = timeouts

    async def run(self, handler: MessageHandler) -> None:
        """Read until the peer has closed or disconnected.

        `handler` gets each text message in order.
        """
        try:  # not `suppress`: from Python 3.12 on it also catches groups of these, which are failures of the handler
            await self._read_or_hang_up(handler)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _read_or_hang_up(self, handler: MessageHandler) -> None:
        try:
            await self._read(handler)
        except ProtocolViolation as cause:
            self._writer.traffic.flooded += isinstance(cause, RateExceeded)
            self._lifetime.goodbye_s = (
                LINGER_TIMEOUT_S  # the peer's close frame is not expected (RFC 6455 7.1.1)
            )
            self._lifetime.end(cause.goodbye)
            await drain(self._stream, CLOSE_FRAME)  # the goodbye is sent at its checkpoints

    async def _read(self, handler: MessageHandler) -> None:
        """Handle events until the end of the connection. Raises ProtocolViolation."""
        going_on = True
        while going_on:
            for event in self._inbound.events():
                if await self._handle(event, handler):
                    return
                if self._inbound.frames % _TURN == 0:
                    await trio.sleep(0 if self._timeouts.settled else _UNSUBSCRIBED_PAUSE_S)
            going_on = await self._receive()

    async def _receive(self) -> bool:
        """Feed the parser with the next data.

        Returns False at the end. No buffer is held while waiting.
        """
        timeouts = self._timeouts
        while True:
            if timeouts.due_at() <= trio.current_time():
                await timeouts.enforce()
            with trio.CancelScope(deadline=timeouts.due_at()) as timeouts.waiting:
                if isinstance(self._stream, FrontStream):
                    await self._stream.until_readable()
                data = bytes(await self._stream.receive_some(_READ))
                if data:
                    self._inbound.feed(data)
                return bool(data)

    async def _handle(self, event: Event, handler: MessageHandler) -> bool:
        """Handle one event.

        Returns True at the end of the connection. Raises ProtocolViolation.
        """
        match event:
            case CloseConnection():
                return await self._closed(event)
            case Pong():
                self._timeouts.pong(bytes(event.payload))
            case _ if self._writer.ending:
                pass  # read on only to find the peer's close frame
            case Ping():
                await self._writer.write(self._inbound.wire.send(event.response()))
            case TextMessage():
                if (text := self._inbound.text(event)) is not None:
                    await handler.receive(text)
            case BytesMessage():
                raise ProtocolViolation(pusher.TEXT_ONLY)
            case _:
                pass
        return False

    async def _closed(self, event: CloseConnection) -> bool:
        wire = self._inbound.wire
        if wire.state is ConnectionState.CLOSED:
            if event.code == self._lifetime.sent_code:  # RFC 6455 5.5.1; another code may have crossed ours
                self._timeouts.confirm_all()
            return True
        if wire.state is ConnectionState.REMOTE_CLOSING:
            await self._writer.write(wire.send(event.response()))
            return True
        raise ProtocolViolation(
            pusher.StreamClose(event.code, event.reason or "Malformed frame.")
        )  # the violation that wsproto found
