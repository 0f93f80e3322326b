"""One stream connection: its subscriptions, and the parts that read, write, keep time and end it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio
from msgspec import Struct

from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Subscription
from deskwire.http.metrics.measurements import Traffic
from deskwire.http.server.connection import FrontStream
from deskwire.http.stream import pusher
from deskwire.http.stream.event_writer import EventWriter
from deskwire.http.stream.flusher import Flusher
from deskwire.http.stream.lifetime import Lifetime
from deskwire.http.stream.reader import MessageHandler, Reader
from deskwire.http.stream.strangers import Stranger
from deskwire.http.stream.timekeeper import Timekeeper
from deskwire.http.stream.websocket.frames import text_frame
from deskwire.http.stream.websocket.inlet import Inlet
from deskwire.http.stream.writer import SocketWriter

DEAF_S: Final = 5.0  # clients authorize and subscribe at once, or are held up by us


class SessionLimits(Struct, frozen=True):
    """The limits of each connection; `RealtimeStream`, which is given them, says what they are."""

    ping_s: float
    write_timeout_s: float
    inbound_bytes: int
    unsubscribed_s: float


class Session:
    """An accepted websocket. `run` is its life; `send`, `follow` and `end` are for its owner.

    Args:
        stream: the transport; closed by the caller.
        traffic: counts what is written, and why connections are ended.
        rest: bytes that came behind the handshake.
        stranger: the connection's place among those that have not subscribed, until it is settled.

    Attributes:
        subscriptions: those that the connection holds, by channel name.
    """

    __slots__ = (
        "_events",
        "_hub",
        "_lifetime",
        "_reader",
        "_stranger",
        "_stream",
        "_timekeeper",
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
        stranger: Stranger,
    ) -> None:
        inlet = Inlet(limits.inbound_bytes, rest)
        self.subscriptions: dict[str, Subscription] = {}
        self._stream = stream
        self._hub = hub
        self._stranger: Stranger | None = stranger
        self._writer = SocketWriter(stream, limits.write_timeout_s, traffic)
        self._lifetime = Lifetime(self._writer, inlet.wire)
        self._timekeeper = Timekeeper(
            hub,
            self.subscriptions,
            self._writer,
            inlet.wire,
            self._lifetime,
            ping_s=limits.ping_s,
            unsubscribed_s=limits.unsubscribed_s,
        )
        self._events = EventWriter(flusher, self._writer, self._lifetime, self._timekeeper)
        self._reader = Reader(stream, inlet, self._writer, self._lifetime, self._timekeeper)
        stranger.make_room = partial(self.end, pusher.NEVER_SUBSCRIBED)

    @property
    def ending(self) -> bool:
        """True if only a goodbye is still written."""
        return self._writer.ending

    @property
    def is_deaf(self) -> bool:
        """True if the client should have subscribed by now, has not, and waits for no channel."""
        return not self.subscriptions and self._timekeeper.unsubscribed_for_s > DEAF_S

    async def run(self, handler: MessageHandler) -> None:
        """Serve until the connection is over: `handler` greets, then receives each text message, in order.

        Leaves all its subscriptions.

        Cancellation: at once, without a goodbye.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._lifetime.begin(nursery)
                try:
                    await handler.greet()
                    await self._reader.run(handler)
                finally:  # before the nursery closes, as a flush in between would find it closed
                    self._writer.break_off()
        finally:
            for subscription in self.subscriptions.values():
                self._hub.leave(subscription, for_good=False)

    def settle(self) -> None:
        """Let the connection stay as long as it likes, even if others need room: its client has shown a valid token."""
        if isinstance(self._stream, FrontStream):
            self._stream.keep()
        if self._stranger is not None:
            self._stranger.known()
            self._stranger = None
            self._timekeeper.settle()

    def spawn(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run `task` as long as the connection lives."""
        self._lifetime.spawn(task)

    async def send(self, *messages: bytes) -> bool:
        """Write protocol messages, unless the connection is ending; return whether they were written."""
        return await self._writer.write(b"".join(map(text_frame, messages)))

    def follow(self, subscription: Subscription) -> None:
        """Send what the subscription finds, from now until it or the connection ends.

        The client has been told where it begins: from here on a pong confirms that, and a gap before it.
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
        """Count the end of the connection as one for a refused authorization."""
        self._writer.traffic.unauthorized += not self._writer.ending

    def end(self, goodbye: pusher.Close) -> None:
        """End the connection with a goodbye; only the first call counts."""
        self._lifetime.end(goodbye)
