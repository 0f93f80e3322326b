"""The writer of events to connections: one task for all connections that keep up.

A commit may have events for thousands of connections. Waking a task for each would cost more than the writes,
and all events of a connection's channels go out in one write. A connection whose peer reads slowly, or that
needs events from the disk, gets a task of its own until it has caught up, and delays no other connection.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

import structlog
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.stream.subscription import Subscription, SubscriptionBatch
from deskwire.http.stream import pusher
from deskwire.http.stream.heartbeat import ConnectionTimeouts
from deskwire.http.stream.socket_writer import Lifetime, SocketWriter
from deskwire.http.stream.websocket import text_frame

log: Final = structlog.get_logger(__name__)

# Bytes of frames after which no further channel is added to a write.
_WRITE_BYTES: Final = 64 * 1024


class EventWriter:
    """Writes one connection's events.

    `flusher` calls `flush` when there may be new ones.
    """

    __slots__ = ("_catching_up", "_flusher", "_lifetime", "_pending", "_timeouts", "_writer")

    def __init__(
        self, flusher: Flusher, writer: SocketWriter, lifetime: Lifetime, timeouts: ConnectionTimeouts
    ) -> None:
        self._flusher = flusher
        self._writer = writer
        self._lifetime = lifetime
        self._timeouts = timeouts
        self._pending: dict[Subscription, None] = {}  # subscriptions that may have new events, in order
        self._catching_up = False

    def follow(self, subscription: Subscription) -> None:
        """Write the subscription's events, until it or the connection ends."""
        subscription.listen(partial(self._wake, subscription))
        self._wake(subscription)
        if subscription.typing:
            self._lifetime.spawn(partial(self._write_typing, subscription))

    def _wake(self, subscription: Subscription) -> None:
        """Schedule a flush of the subscription, which may have new events."""
        if self._writer.ending or not subscription.current:
            return
        self._pending[subscription] = None
        if not self._catching_up:
            self._flusher.schedule(self)

    def flush(self) -> None:
        """Write the new events of all channels, at most about 64 KB, in one write.

        See `Flushable`.
        """
        if self._writer.ending or self._catching_up:
            return
        try:
            if self._writer.lock.held or not self._flush():
                self._catching_up = True
                self._lifetime.spawn(self._catch_up)
            elif self._pending:
                self._flusher.schedule(self)
        except trio.BrokenResourceError:
            self._writer.break_off()

    def break_off(self) -> None:
        """End the connection without a goodbye.

        See `Flushable`.
        """
        self._writer.break_off()

    def _flush(self) -> bool:
        """Flush.

        Returns False if the rest must wait for the disk or for the peer.
        """
        frames, size, at_hand = [], 0, True
        while self._pending and size < _WRITE_BYTES and at_hand:
            subscription = next(iter(self._pending))
            batch = subscription.recent() if subscription.current else None
            if batch is not None:
                del self._pending[subscription]
                frames.append(self._framed(subscription, batch))
                size += len(frames[-1])
            elif subscription.current:
                at_hand = False
            else:
                del self._pending[subscription]
        return self._writer.put_now(self._timeouts.with_ping(b"".join(frames))) and at_hand

    async def _catch_up(self) -> None:
        """Write events until none are left, waiting for the disk and the peer."""
        while self._writer.rest or self._pending:
            subscription, batch = next(iter(self._pending), None), None
            if subscription is not None:
                # Removed before the read, not after it: an event that is published during the read schedules it again.
                del self._pending[subscription]
            if subscription is not None and subscription.current:
                try:
                    batch = subscription.recent() or await subscription.stored()
                except Unavailable as error:  # the client reconnects and continues where it was
                    log.warning("stream.cut_off", channel=subscription.channel.name, reason=error.reason)
                    self._lifetime.end(pusher.UNREADABLE)
                    return
            async with self._writer.lock:
                if self._writer.ending:
                    return
                frames = b""
                if subscription is not None and batch is not None:
                    if subscription.current:
                        frames = self._timeouts.with_ping(self._framed(subscription, batch))
                    else:
                        subscription.rewind()  # if the paused subscription resumes, it starts with these events
                if not await self._writer.put(frames):
                    return
        self._catching_up = False

    def _framed(self, subscription: Subscription, batch: SubscriptionBatch) -> bytes:
        """Return the frames of a channel's next batch.

        If writing them fails, nothing more is confirmed.
        """
        subscription.written = batch.upto  # the next heartbeat confirms a batch without events
        if batch.more:
            self._pending[subscription] = None  # after the other channels
        name = subscription.channel.name
        self._writer.traffic.events += len(batch.events)
        return b"".join([text_frame(pusher.event(event.type, name, event.body)) for event in batch.events])

    async def _write_typing(self, subscription: Subscription) -> None:
        """Write typing events, which are not stored.

        Each channel has one reader, and no event is replayed.
        """
        while subscription.held:
            event = await subscription.next_typing()
            frame = text_frame(pusher.event(event.type, subscription.channel.name, event.body))
            async with self._writer.lock:
                if self._writer.ending or not subscription.current:
                    continue
                if await self._writer.put(frame):
                    self._writer.traffic.typing += 1


# Connections written before other tasks run: about a third of a millisecond of work.
_FLUSH_BATCH_SIZE: Final = 16


class Flushable(Protocol):
    """A connection that may have events to write."""

    def flush(self) -> None:
        """Write new events without waiting."""

    def break_off(self) -> None:
        """End the connection without a goodbye."""


class Flusher:
    """The queue of connections to flush, in the order in which they were scheduled."""

    def __init__(self) -> None:
        self._due: dict[Flushable, None] = {}
        self._wakeup = trio.Event()

    def schedule(self, connection: Flushable) -> None:
        """Schedule a flush of the connection.

        Repeated calls have no further effect.
        """
        self._due[connection] = None
        self._wakeup.set()

    async def run(self) -> None:
        """Flush until cancelled."""
        while True:
            await self._wakeup.wait()
            due, self._due, self._wakeup = self._due, {}, trio.Event()
            for count, connection in enumerate(due, 1):
                self._flush(connection)
                if not count % _FLUSH_BATCH_SIZE:
                    await trio.lowlevel.checkpoint()

    @staticmethod
    def _flush(connection: Flushable) -> None:
        try:
            connection.flush()
        except Exception:  # the task's top level: a bug ends one connection only
            log.exception("stream.connection_failed")
            connection.break_off()
