"""The times of one stream connection: its pings, what their pongs confirm, and its time to subscribe.

A consumer confirms what it has by the pong to a ping that was written behind the events (decisions 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import trio
from wsproto.connection import ConnectionState
from wsproto.events import Ping

from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Subscription
from deskwire.http.stream import pusher
from deskwire.http.stream.lifetime import Lifetime
from deskwire.http.stream.websocket.heartbeat import Heartbeat
from deskwire.http.stream.websocket.parser import Wire
from deskwire.http.stream.writer import SocketWriter


class Timekeeper:
    """The times of one connection, in seconds on Trio's clock.

    Args:
        subscriptions: those of the connection, by channel name.
        ping_s: time between two heartbeats.
        unsubscribed_s: how long the connection may stay without a subscription.

    Attributes:
        settled: set once the connection may stay as long as it likes.
        waiting: the scope of the reader's wait; its deadline moves when something is due earlier or later.
    """

    __slots__ = (
        "_began",
        "_heartbeat",
        "_hub",
        "_lifetime",
        "_subscribe_by",
        "_subscriptions",
        "_wire",
        "_writer",
        "settled",
        "waiting",
    )

    def __init__(
        self,
        hub: Hub,
        subscriptions: Mapping[str, Subscription],
        writer: SocketWriter,
        wire: Wire,
        lifetime: Lifetime,
        *,
        ping_s: float,
        unsubscribed_s: float,
    ) -> None:
        now = trio.current_time()
        self._began = now
        self._hub = hub
        self._subscriptions = subscriptions
        self._writer = writer
        self._wire = wire
        self._lifetime = lifetime
        self._heartbeat = Heartbeat(ping_s, now)
        self._subscribe_by = now + unsubscribed_s
        self.settled = False
        self.waiting = trio.CancelScope()

    def settle(self) -> None:
        """Let the connection stay, subscribed or not."""
        self.settled = True
        self._subscribe_by = inf

    @property
    def unsubscribed_for_s(self) -> float:
        """The seconds since the connection began, as long as it has not subscribed; 0 once it is settled."""
        return 0.0 if self.settled else trio.current_time() - self._began

    def due_at(self) -> float:
        """Return when the reader is to stop waiting and call `keep`."""
        if self._writer.ending:
            return inf
        return min(self._heartbeat.due_at(), self._subscribe_by)

    async def keep(self) -> None:
        """Do what is due: a ping, or the end of a connection that is silent or has never subscribed."""
        due, now = self._heartbeat.due_at(), trio.current_time()
        if not self._heartbeat.beat(now):
            self._writer.traffic.no_pong += 1
            self._lifetime.end(pusher.NO_PONG)
        elif now >= self._subscribe_by:
            self._lifetime.end(pusher.NEVER_SUBSCRIBED)
        elif now >= due:
            async with self._writer.lock:
                if not self._writer.ending:
                    await self._writer.put(self._next_ping())

    def with_ping(self, frames: bytes) -> bytes:
        """Return frames of events, and behind them a ping if one is due."""
        if frames:
            self._heartbeat.want()
            if self._heartbeat.may_go_along(trio.current_time()):
                frames += self._next_ping()
            self.waiting.deadline = self.due_at()
        return frames

    def pong(self, payload: bytes) -> None:
        """Confirm what was written before the ping that this pong is for."""
        for subscription, position in self._heartbeat.pong(payload):
            self._hub.confirm(subscription, position)

    def confirm_all(self) -> None:
        """Confirm all that was written: the peer has answered our close frame."""
        for subscription in self._subscriptions.values():
            self._hub.confirm(subscription, subscription.reached)

    def _next_ping(self) -> bytes:
        if self._wire.state is not ConnectionState.OPEN:
            return b""
        payload = self._heartbeat.next(self._subscriptions.values(), trio.current_time())
        return self._wire.send(Ping(payload))
