"""One stream connection: what it is subscribed to, and the tasks that read, write and end it.

- One writer at a time; a write that was cut off leaves no whole frame behind, so nothing is written after it.
- `flush` writes what is new on all channels at once, and never waits. What must wait, for the disk or for a
  slow reader, is done by a task that is there only as long as that takes.
- The connection ends once, by `end`: with a goodbye (`pusher:error`, close frame, then reading until the
  peer's close frame, Pusher protocol, close codes) or without one. After that no event is written.
- What the peer sends is bounded (ADR 42). Of one that has broken a rule nothing more is parsed.
- A consumer confirms what it has by the pong to a ping that was written behind the events (decisions 5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import Final

import trio
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Event, TextMessage
from wsproto.events import Ping as WirePing
from wsproto.events import Pong as WirePong

from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Batch, Subscription
from deskwire.http.metrics.measurements import Traffic
from deskwire.http.server.connection import LINGER_S, FrontStream
from deskwire.http.server.drain import drain
from deskwire.http.stream import pusher
from deskwire.http.stream.flusher import Flusher
from deskwire.http.stream.inflow import HangUp, TooMuch
from deskwire.http.stream.limits import Bounds
from deskwire.http.stream.party import Party
from deskwire.http.stream.strangers import Stranger
from deskwire.http.stream.websocket.frames import text_frame
from deskwire.http.stream.websocket.heartbeat import Heartbeat
from deskwire.http.stream.websocket.inlet import Inlet
from deskwire.http.stream.writer import SocketWriter

GOODBYE_S: Final = 5.0
"""How long a goodbye may take, from its first byte to the peer's close frame."""
_READ: Final = 16 * 1024
_TURN: Final = 16
"""Frames after which other tasks have their turn: less than a millisecond."""
_STRANGER_S: Final = 0.25
"""How long such a turn of others is while the connection has not subscribed; clients send one or two frames before that."""
_WRITE_BYTES: Final = 64 * 1024
"""Bytes of frames after which one write of several channels is full."""


class Session:
    """An accepted websocket. `run` is its life; `send`, `follow` and `end` are for its owner.

    Args:
        stream: the transport; closed by the caller.
        traffic: counts what is written.
        rest: bytes that came behind the handshake.
        stranger: it, until it is settled.
    """

    __slots__ = (
        "_bounds",
        "_catching_up",
        "_deaf",
        "_ending",
        "_flusher",
        "_fresh",
        "_hub",
        "_inlet",
        "_nursery",
        "_out",
        "_patience",
        "_pings",
        "_said",
        "_stranger",
        "_stream",
        "_traffic",
        "_waiting",
        "_wire",
        "subscriptions",
    )

    def __init__(
        self,
        stream: trio.abc.Stream,
        hub: Hub,
        flusher: Flusher,
        traffic: Traffic,
        bounds: Bounds,
        rest: bytes,
        stranger: Stranger,
    ) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self._stranger: Stranger | None = stranger
        self._stream = stream
        self._out = SocketWriter(stream, bounds.write_timeout_s, traffic)
        self._hub = hub
        self._flusher = flusher
        self._traffic = traffic
        self._bounds = bounds
        self._inlet = Inlet(bounds.inbound_bytes, rest)
        self._wire = self._inlet.wire
        self._nursery: trio.Nursery | None = None
        self._fresh: dict[Subscription, None] = {}
        self._catching_up = False
        self._ending = False
        self._deaf = False
        self._said: int | None = None
        self._pings = Heartbeat(bounds.ping_s, trio.current_time())
        self._patience = trio.current_time() + bounds.unsubscribed_s
        self._waiting = trio.CancelScope()
        stranger.make_room = partial(self.end, pusher.NEVER_SUBSCRIBED)

    async def run(self, party: Party) -> None:
        """Serve until the connection is over: `party` greets, then hears each text message, in order.

        Leaves all its subscriptions.

        Cancellation: at once, without a goodbye.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                try:
                    await party.greet()
                    await self._read(party)
                finally:  # before the nursery closes: whoever flushes in between would find it closed
                    self._break_off()
        finally:
            for held in self.subscriptions.values():
                self._hub.leave(held, for_good=False)

    def settle(self) -> None:
        """Let it stay, for as long as it likes and whoever needs room: its client has shown a good token."""
        if isinstance(self._stream, FrontStream):
            self._stream.keep()
        if self._stranger is not None:
            self._stranger.known()
            self._stranger = None

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
        self.settle()
        held.listen(partial(self._stir, held))
        self._stir(held)
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
        async with self._out.lock:
            if self._ending or (held is not None and not held.current):
                return False
            return await self._put(data)

    async def _put(self, data: bytes) -> bool:
        """Write under the lock. What fails or takes too long ends the connection."""
        if await self._out.put(data):
            return True
        self._break_off()
        return False

    def _break_off(self) -> None:
        """End the connection without a word: it is gone, or a frame was cut off."""
        self._ending = True
        assert self._nursery is not None
        self._nursery.cancel_scope.cancel()

    # Events

    def _stir(self, held: Subscription) -> None:
        """There may be something new on a channel."""
        if self._ending or not held.current:
            return
        self._fresh[held] = None
        if not self._catching_up:
            self._flusher.due(self)

    def flush(self) -> None:
        """Write what is new on all channels, at most about 64 KB, in one go; see `Flushable`."""
        if self._ending or self._catching_up:
            return
        try:
            if self._out.lock.held or not self._flush():
                self._catching_up = True
                self.spawn(self._catch_up)
            elif self._fresh:
                self._flusher.due(self)
        except trio.BrokenResourceError:
            self._break_off()

    def _flush(self) -> bool:
        """As `flush`; False if the rest must wait for the disk or for the peer."""
        frames, size, at_hand = [], 0, True
        while self._fresh and size < _WRITE_BYTES and at_hand:
            held = next(iter(self._fresh))
            batch = held.recent() if held.current else None
            if batch is not None:
                frames.append(self._framed(held, batch))
                size += len(frames[-1])
            elif held.current:
                at_hand = False
            else:
                del self._fresh[held]
        return self._out.put_now(self._along(b"".join(frames))) and at_hand

    async def _catch_up(self) -> None:
        """Write what is new until nothing is, taking the time it takes."""
        while self._out.rest or self._fresh:
            held, batch = next(iter(self._fresh), None), None
            if held is not None and held.current:
                batch = held.recent() or await held.stored()
            async with self._out.lock:
                if self._ending:
                    return
                frames = b""
                if held is not None and batch is not None and held.current:
                    frames = self._along(self._framed(held, batch))
                elif held is not None:
                    self._fresh.pop(held, None)
                if not await self._put(frames):
                    return
        self._catching_up = False

    def _framed(self, held: Subscription, batch: Batch) -> bytes:
        """The frames of what is written next on a channel. If the write fails nothing is confirmed any more."""
        held.written = batch.upto  # without events it is confirmed by the next heartbeat
        del self._fresh[held]
        if batch.more:
            self._fresh[held] = None  # behind the others
        name = held.channel.name
        self._traffic.events += len(batch.events)
        return b"".join([text_frame(pusher.event(event.type, name, event.body)) for event in batch.events])

    def _along(self, frames: bytes) -> bytes:
        """The frames, and behind them a ping if one is due."""
        if frames:
            self._pings.want()
            if self._pings.may_go_along(trio.current_time()):
                frames += self._next_ping()
            self._waiting.deadline = self._due_at()
        return frames

    async def _pump_passing(self, held: Subscription) -> None:
        while held.current:
            event = await held.next_passing()
            # Past the frames that are kept: of each channel there is one reader, and replay there is none.
            frame = text_frame(pusher.event(event.type, held.channel.name, event.body))
            if await self._write(frame, held):
                self._traffic.typing += 1

    async def _say_goodbye(self, goodbye: pusher.Close) -> None:
        # Of a peer that has broken the rules no close frame is looked for (RFC 6455 7.1.1).
        with trio.move_on_after(LINGER_S if self._deaf else GOODBYE_S):
            async with self._out.lock:
                await self._farewell(goodbye)
            await trio.sleep_forever()  # the reader ends the session at the peer's close frame
        self._break_off()

    async def _farewell(self, goodbye: pusher.Close) -> None:
        data = b""
        if goodbye.code >= 4000:  # the codes below are websocket's own; clients know them from the frame
            data += text_frame(pusher.error(goodbye.message, goodbye.code))
        if self._wire.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            data += self._wire.send(CloseConnection(goodbye.code, goodbye.message))
            self._said = goodbye.code
        try:
            await self._out.put_last(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._break_off()

    # Time

    def _due_at(self) -> float:
        """When the reader is to stop waiting and keep time."""
        if self._ending:
            return inf
        return min(self._pings.due_at(), inf if self._stranger is None else self._patience)

    async def _keep_time(self) -> None:
        """Heartbeats, confirmations, and the end of those who never subscribe."""
        due, now = self._pings.due_at(), trio.current_time()
        if not self._pings.beat(now):
            self._traffic.no_pong += 1
            self.end(pusher.NO_PONG)
        elif self._stranger is not None and now >= self._patience:
            self.end(pusher.NEVER_SUBSCRIBED)
        elif now >= due:
            async with self._out.lock:
                if not self._ending:
                    await self._put(self._next_ping())

    def _next_ping(self) -> bytes:
        if self._wire.state is not ConnectionState.OPEN:
            return b""
        payload = self._pings.next(self.subscriptions.values(), trio.current_time())
        return self._wire.send(WirePing(payload))

    # Reading

    async def _read(self, party: Party) -> None:
        """Read until the peer has closed, or gone; and keep time, as this task waits anyway."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            try:
                await self._listen(party)
            except HangUp as cause:
                self._traffic.flooded += isinstance(cause, TooMuch)
                self._deaf = True
                self.end(cause.goodbye)
                await drain(self._stream)  # has checkpoints, in which the goodbye is said

    async def _listen(self, party: Party) -> None:
        """Handle what comes, up to the end of the connection. Raises HangUp."""
        going_on = True
        while going_on:
            for event in self._inlet.events():
                if await self._take(event, party):
                    return
                if self._inlet.frames % _TURN == 0:
                    await trio.sleep(0 if self._stranger is None else _STRANGER_S)
            going_on = await self._receive()

    async def _receive(self) -> bool:
        """Feed the protocol with what comes next; False at the end. Nothing is kept while waiting for it."""
        while True:
            if self._due_at() <= trio.current_time():
                await self._keep_time()
            with trio.CancelScope(deadline=self._due_at()) as self._waiting:
                if isinstance(self._stream, FrontStream):
                    await self._stream.until_readable()
                data = bytes(await self._stream.receive_some(_READ))
                if data:
                    self._inlet.feed(data)
                return bool(data)

    async def _take(self, event: Event, party: Party) -> bool:
        """Handle one event; True at the end of the connection. Raises HangUp."""
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
                if (text := self._inlet.text(event)) is not None:
                    await party.hear(text)
            case BytesMessage():
                raise HangUp(pusher.Close(1003, "Only text messages are spoken here."))
            case _:
                pass
        return False

    async def _closed(self, event: CloseConnection) -> bool:
        if self._wire.state is ConnectionState.CLOSED:
            if event.code == self._said:  # an answer (RFC 6455 5.5.1); another code may have crossed ours
                for held in self.subscriptions.values():
                    self._hub.confirm(held, held.reached)
            return True
        if self._wire.state is ConnectionState.REMOTE_CLOSING:
            await self._write(self._wire.send(event.response()))
            return True
        raise HangUp(pusher.Close(event.code, event.reason or "Malformed frame."))  # wsproto's verdict
