"""One stream connection: what it is subscribed to, and the tasks that read, write and end it.

- One writer at a time, under a lock; a write that was cut off leaves no whole frame behind, so nothing is
  written after it.
- The connection ends once, by `end`: with a goodbye (`pusher:error`, close frame, then reading until the
  peer's close frame, Pusher protocol close codes) or without one. After that no event is written.
- A consumer confirms what it has by the pong to a ping that was written behind the events (decisions 5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import Final

import structlog
import trio
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, TextMessage
from wsproto.events import Ping as WirePing
from wsproto.events import Pong as WirePong

from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Subscription
from deskwire.http import pusher
from deskwire.http.frames import FrameCache, text_frame
from deskwire.http.measured import Traffic
from deskwire.http.pings import Pings

log: Final = structlog.get_logger(__name__)

LINGER_S: Final = 5.0
"""How long a goodbye may take, from its first byte to the peer's close frame."""
_READ: Final = 16 * 1024

Handler = Callable[[str], Awaitable[None]]
Opener = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection may take: see `RealtimeStream`."""

    ping_s: float
    write_timeout_s: float
    inbound_bytes: int
    unsubscribed_s: float


class Session:
    """An accepted websocket. `run` is its life; `send`, `follow` and `end` are for its owner.

    Args:
        stream: the transport; closed by the caller.
        traffic: counts what is written.
        rest: bytes that came behind the handshake.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        hub: Hub,
        frames: FrameCache,
        traffic: Traffic,
        limits: Limits,
        rest: bytes,
    ) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self.settled = False
        self._stream = stream
        self._hub = hub
        self._frames = frames
        self._traffic = traffic
        self._limits = limits
        self._wire = Connection(ConnectionType.SERVER, trailing_data=rest)
        self._lock = trio.Lock()
        self._nursery: trio.Nursery | None = None
        self._ending = False
        self._deaf = False
        self._said: int | None = None
        self._text: list[str] = []
        self._text_size = 0
        self._stir = trio.Event()
        self._pings = Pings(limits.ping_s, trio.current_time())

    async def run(self, on_open: Opener, on_text: Handler) -> None:
        """Serve until the connection is over. Leaves all its subscriptions.

        Args:
            on_open: awaited first.
            on_text: awaited for each text message, in order.

        Cancellation: at once, without a goodbye.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._keep_time)
                await on_open()
                await self._read(on_text)
                self._nursery.cancel_scope.cancel()
        finally:
            self._ending = True
            for held in self.subscriptions.values():
                self._hub.leave(held, for_good=False)

    def spawn(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run `task` as long as the connection lives."""
        assert self._nursery is not None, "the session runs"
        if not self._ending:
            self._nursery.start_soon(task)

    async def send(self, *messages: bytes) -> bool:
        """Write protocol messages, unless the connection is ending; whether they were written."""
        return await self._write(b"".join(map(text_frame, messages)))

    def follow(self, held: Subscription) -> None:
        """Send what the subscription finds, from now until it or the connection ends.

        Its answer has been written: from here on a pong confirms where it begins, and a gap before that.
        """
        self.subscriptions[held.channel.name] = held
        held.written = held.start.position
        self.settled = True
        self.spawn(lambda: self._pump(held))
        if held.typing:
            self.spawn(lambda: self._pump_passing(held))

    def unfollow(self, channel: str) -> None:
        """End a subscription by the client's word."""
        held = self.subscriptions.pop(channel, None)
        if held is not None:
            self._hub.leave(held, for_good=True)

    def end(self, goodbye: pusher.Close | None) -> None:
        """End the connection, with a goodbye or by dropping it; only the first call counts."""
        if self._ending or self._nursery is None:
            return
        self._ending = True
        if goodbye is None:
            self._nursery.cancel_scope.cancel()
        else:
            self._nursery.start_soon(self._say_goodbye, goodbye)

    # Writing

    async def _write(self, data: bytes, held: Subscription | None = None) -> bool:
        """Write whole frames; False if they were not, or not for sure, written."""
        async with self._lock:
            if self._ending or (held is not None and not held.current):
                return False
            return await self._put(data)

    async def _put(self, data: bytes) -> bool:
        """Write under the lock. What fails or takes too long ends the connection."""
        try:
            with trio.move_on_after(self._limits.write_timeout_s):
                await self._stream.send_all(data)
                return True
            self._traffic.write_timeouts += 1
            log.info("stream.write_timeout")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self._ending = True
        assert self._nursery is not None
        self._nursery.cancel_scope.cancel()
        return False

    async def _pump(self, held: Subscription) -> None:
        while held.current:
            batch = await held.next()
            if batch.events:
                frames = b"".join(self._frames.frame(event, held.channel.name) for event in batch.events)
                if not await self._write(frames, held):
                    return
                self._traffic.events += len(batch.events)
                if self._pings.want():
                    self._stir.set()
            held.written = batch.upto  # without events it is confirmed by the next heartbeat

    async def _pump_passing(self, held: Subscription) -> None:
        while held.current:
            event = await held.next_passing()
            # Past the frames that are kept: of each channel there is one reader, and replay there is none.
            frame = text_frame(pusher.event(event.type, held.channel.name, event.body))
            if await self._write(frame, held):
                self._traffic.typing += 1

    async def _say_goodbye(self, goodbye: pusher.Close) -> None:
        with trio.move_on_after(LINGER_S):
            async with self._lock:
                await self._farewell(goodbye)
            await trio.sleep_forever()  # the reader ends the session at the peer's close frame
        assert self._nursery is not None
        self._nursery.cancel_scope.cancel()

    async def _farewell(self, goodbye: pusher.Close) -> None:
        data = b""
        if goodbye.code >= 4000:  # the codes below are websocket's own; clients know them from the frame
            data += text_frame(pusher.error(goodbye.message, goodbye.code))
        if self._wire.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            data += self._wire.send(CloseConnection(goodbye.code, goodbye.message))
            self._said = goodbye.code
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            assert self._nursery is not None
            self._nursery.cancel_scope.cancel()

    # Time

    async def _keep_time(self) -> None:
        """Heartbeats, confirmations, and the end of those who never subscribe."""
        patience = trio.current_time() + self._limits.unsubscribed_s
        while not self._ending:
            with trio.move_on_at(min(self._pings.due_at(), inf if self.settled else patience)):
                await self._stir.wait()
            self._stir = trio.Event()
            due, now = self._pings.due_at(), trio.current_time()
            if not self._pings.beat(now):
                self._traffic.no_pong += 1
                self.end(pusher.NO_PONG)
            elif not self.settled and now >= patience:
                self.end(pusher.NEVER_SUBSCRIBED)
            elif now >= due:
                await self._ping()

    async def _ping(self) -> None:
        async with self._lock:
            if not self._ending and self._wire.state is ConnectionState.OPEN:
                payload = self._pings.next(self.subscriptions.values(), trio.current_time())
                await self._put(self._wire.send(WirePing(payload)))

    # Reading

    async def _read(self, on_text: Handler) -> None:
        """Read until the peer has closed, or gone."""
        while True:
            for event in self._wire.events():
                if self._deaf:
                    break
                if await self._take(event, on_text):
                    return
            try:
                data = await self._stream.receive_some(_READ)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if not data:
                return
            if not self._deaf and self._wire.state is not ConnectionState.CLOSED:
                self._wire.receive_data(bytes(data))

    async def _take(self, event: Event, on_text: Handler) -> bool:
        """Handle one event; True at the end of the connection."""
        match event:
            case CloseConnection():
                return await self._closed(event)
            case WirePong():
                for held, position in self._pings.pong(bytes(event.payload)):
                    self._hub.confirm(held, position)
            case _ if self._ending:
                pass  # read on only to find the peer's close frame
            case WirePing():
                await self._write(self._wire.send(event.response()))
            case TextMessage():
                await self._gather(event, on_text)
            case BytesMessage():
                self._hang_up(pusher.Close(1003, "Only text messages are spoken here."))
            case _:
                pass
        return False

    async def _gather(self, event: TextMessage, on_text: Handler) -> None:
        if event.data:
            self._text.append(event.data)
            self._text_size += len(event.data.encode())
        if self._text_size > self._limits.inbound_bytes:
            limit = self._limits.inbound_bytes
            self._hang_up(pusher.Close(1009, f"A message may have {limit} bytes."))
        elif event.message_finished:
            text = "".join(self._text)
            self._text, self._text_size = [], 0
            await on_text(text)

    def _hang_up(self, goodbye: pusher.Close) -> None:
        """End because of what the peer sent; what follows is not even looked at."""
        self._deaf = True
        self.end(goodbye)

    async def _closed(self, event: CloseConnection) -> bool:
        if self._wire.state is ConnectionState.CLOSED:
            if event.code == self._said:  # an answer (RFC 6455 5.5.1); another code may have crossed ours
                for held in self.subscriptions.values():
                    self._hub.confirm(held, held.written)
            return True
        if self._wire.state is ConnectionState.REMOTE_CLOSING:
            await self._write(self._wire.send(event.response()))
            return True
        self._hang_up(pusher.Close(event.code, event.reason or "Malformed frame."))  # wsproto's verdict
        return False
