"""Heartbeats and timeouts of one stream connection.

Sources: RFC 6455 5.5.2 and 5.5.3, decisions 5. A pong proves that the peer lives. A pong to one of our
pings proves more: the peer's library answers in order, so all frames written before that ping have arrived,
and their events are confirmed. Nothing else that clients send is proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

import trio
from msgspec import Struct
from wsproto.connection import ConnectionState
from wsproto.events import Ping

from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Subscription
from deskwire.http.stream import pusher
from deskwire.http.stream.socket_writer import Lifetime, SocketWriter
from deskwire.http.stream.websocket import WebsocketConnection

# The shortest time between two pings that request a confirmation.
CONFIRM_INTERVAL_S: Final = 1.0
# Such a ping waits this much longer for frames to go along with, because a write of its own costs as much
# as theirs.
CONFIRM_DELAY_S: Final = 0.25
# Heartbeats without a pong after which the peer is considered dead.
_UNANSWERED: Final = 2
# Pings whose pongs are expected; a pong covers all earlier pings, so dropping the oldest loses nothing.
_MARKS: Final = 128
_DIGITS: Final = 20


class _Mark(Struct, frozen=True):
    """A ping that was sent, and the positions of the events written before it."""

    number: int
    reached: tuple[tuple[Subscription, int], ...]


class Heartbeat:
    """The pings of one connection.

    No I/O. Times are in seconds on Trio's clock.

    Args:
        every_s: time between two heartbeats.
    """

    __slots__ = ("_beat", "_every_s", "_last", "_marks", "_number", "_unanswered", "_wanted")

    def __init__(self, every_s: float, now: float) -> None:
        self._every_s = every_s
        self._beat = now + every_s
        self._wanted = False
        self._number = 0
        self._last = -inf
        self._unanswered = 0
        self._marks: list[_Mark] = []

    def due_at(self) -> float:
        """Return when the next ping is due."""
        return (
            min(self._beat, self._last + CONFIRM_INTERVAL_S + CONFIRM_DELAY_S) if self._wanted else self._beat
        )

    def may_go_along(self, now: float) -> bool:
        """Return whether a ping may follow the frames that are written now."""
        return now >= self._last + CONFIRM_INTERVAL_S

    def want(self) -> None:
        """Request a confirmation of the events written."""
        self._wanted = True

    def beat(self, now: float) -> bool:
        """Count a heartbeat if one is due.

        Returns False if the peer has missed too many pongs.
        """
        if now >= self._beat:
            if self._unanswered >= _UNANSWERED:
                return False
            self._unanswered += 1
            self._beat = now + self._every_s
        return True

    def next(self, subscriptions: Iterable[Subscription], now: float) -> bytes:
        """Return the payload of a ping that is written now.

        It follows all events that these subscriptions have reached.
        """
        self._wanted = False
        self._number += 1
        self._last = now
        reached = tuple((subscription, subscription.reached) for subscription in subscriptions)
        self._marks = [*self._marks, _Mark(self._number, reached)][-_MARKS:]
        return str(self._number).encode()

    def pong(self, payload: bytes) -> list[tuple[Subscription, int]]:
        """Return the positions of subscriptions that a pong confirms.

        It covers all earlier pings.
        """
        self._unanswered = 0
        confirmed: list[tuple[Subscription, int]] = []
        if payload.isdigit() and len(payload) < _DIGITS:
            while self._marks and self._marks[0].number <= int(payload):
                confirmed += self._marks.pop(0).reached
        return confirmed


class ConnectionTimeouts:
    """The timeouts of one connection, in seconds on Trio's clock.

    Args:
        subscriptions: of the connection, by channel name.
        ping_s: time between two heartbeats.
        unsubscribed_s: how long the connection may stay without a subscription.

    Attributes:
        settled: True if the connection may stay without a subscription.
        waiting: the scope of the reader's wait; its deadline moves with the next timeout.
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
        wire: WebsocketConnection,
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
        """The seconds since the connection began without a subscription.

        Returns 0 once it is settled.
        """
        return 0.0 if self.settled else trio.current_time() - self._began

    def due_at(self) -> float:
        """Return when the reader must call `enforce`."""
        if self._writer.ending:
            return inf
        return min(self._heartbeat.due_at(), self._subscribe_by)

    async def enforce(self) -> None:
        """Send a due ping, or end a connection after a timeout.

        The peer was silent, or has never subscribed.
        """
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
        """Return frames of events, followed by a ping if one is due."""
        if frames:
            self._heartbeat.want()
            if self._heartbeat.may_go_along(trio.current_time()):
                frames += self._next_ping()
            self.waiting.deadline = self.due_at()
        return frames

    def pong(self, payload: bytes) -> None:
        """Confirm the events that were written before the ping of this pong."""
        for subscription, position in self._heartbeat.pong(payload):
            self._hub.confirm(subscription, position)

    def confirm_all(self) -> None:
        """Confirm all events written: the peer has answered our close frame."""
        for subscription in self._subscriptions.values():
            self._hub.confirm(subscription, subscription.reached)

    def _next_ping(self) -> bytes:
        if self._wire.state is not ConnectionState.OPEN:
            return b""
        payload = self._heartbeat.next(self._subscriptions.values(), trio.current_time())
        return self._wire.send(Ping(payload))
