"""Limits of stream connections (ADR 41).

They bound the inbound rate, and the unsubscribed connections of a network. A connection may send a burst
and then a steady rate. No Pusher client comes near it: a client that subscribes to all its 100 channels at
once sends a hundred messages of a kilobyte or two; after that it pings, answers pings, and changes a
channel now and then.

A connection is anonymous until it subscribes, so it takes one of the few slots of its network:

- A slot is free again once its connection has subscribed, or 10 s after it was taken, even if the connection
  has ended before. A connection that is still open then is evicted, if another one waits.
- A connection waits for a free slot for 5 s, first come, first served.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import trio
from msgspec import Struct, field

from deskwire.engine.core.limits.rate_limit import RateLimit, take
from deskwire.engine.core.tasks.mutex import Mutex
from deskwire.http.stream import pusher

# Frames, each part of a message and each control frame; also a read without a complete frame.
FRAME_RATE: Final = RateLimit(per_minute=60 * 50, burst=500)
MESSAGE_RATE: Final = RateLimit(per_minute=60 * 25, burst=250)
# Messages of the largest size that may arrive at once; after that the bytes of one per second.
LARGE_MESSAGES_BURST: Final = 16
_SECOND_NS: Final = 1_000_000_000


@cache  # one size is used
def _bytes_rate(largest: int) -> RateLimit:
    return RateLimit(per_minute=60 * largest, burst=LARGE_MESSAGES_BURST * largest)


class ProtocolViolation(Exception):
    """A peer has broken a rule, and its connection ends.

    `goodbye` tells the client why.
    """

    def __init__(self, goodbye: pusher.StreamClose) -> None:
        super().__init__(goodbye.message)
        self.goodbye = goodbye


class RateExceeded(ProtocolViolation):
    """A peer has sent more than it may."""


class InboundRate:
    """The rates of one connection's inbound data. Each method raises RateExceeded.

    Args:
        largest: bytes of the largest message.
    """

    __slots__ = ("_bytes", "_frames", "_largest", "_messages")

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._frames = self._messages = self._bytes = (
            0  # times at which the buckets are full again, in nanoseconds
        )

    def frame(self, now_s: float) -> None:
        """Count a frame."""
        self._frames = _count(FRAME_RATE, self._frames, 1, now_s, pusher.TOO_MANY_FRAMES)

    def message(self, now_s: float) -> None:
        """Count a message."""
        self._messages = _count(MESSAGE_RATE, self._messages, 1, now_s, pusher.TOO_MANY_MESSAGES)

    def bytes(self, count: int, now_s: float) -> None:
        """Count bytes."""
        self._bytes = _count(_bytes_rate(self._largest), self._bytes, count, now_s, pusher.TOO_MANY_BYTES)


def _count(rate: RateLimit, full_at_ns: int, count: int, now_s: float, refusal: pusher.StreamClose) -> int:
    """Return when the bucket is full again after this. Raises RateExceeded."""
    after = take(rate, full_at_ns, int(now_s * _SECOND_NS), count)
    if after is None:
        raise RateExceeded(refusal)
    return after


# Clients authorize and subscribe far faster.
SLOT_TIMEOUT_S: Final = 10.0
# pusher-js reports its connection as unavailable after 10 s.
SLOT_WAIT_TIMEOUT_S: Final = 5.0


def _ended() -> None:
    """Do nothing: the connection has already ended."""


class UnsubscribedSlot(Struct, eq=False):
    """The slot of a connection that has not subscribed.

    Args:
        since: time at which the slot was taken, on Trio's clock.
        evict: ends the connection, because another one needs the slot.
    """

    _slots: _Slots
    since: float
    evict: Callable[[], None] = _ended

    def release(self) -> None:
        """Release the slot: the connection has subscribed."""
        self._slots.free(self)

    def leave(self) -> None:
        """Note the end of the connection.

        Its slot stays taken until its timeout, which limits the rate of connections.
        """
        self.evict = _ended
        if self.since + SLOT_TIMEOUT_S <= trio.current_time():
            self._slots.free(self)


class _Slots(Struct, eq=False):
    """The slots of one network, in the order in which they were taken."""

    taken: dict[UnsubscribedSlot, None] = field(default_factory=dict)
    line: Mutex = field(default_factory=Mutex)
    freed: trio.Event = field(default_factory=trio.Event)

    def free(self, slot: UnsubscribedSlot) -> None:
        self.taken.pop(slot, None)
        self.freed.set()

    async def take(self, limit: int) -> UnsubscribedSlot:
        while len(self.taken) >= limit:
            oldest = next(iter(self.taken))
            if oldest.since + SLOT_TIMEOUT_S <= trio.current_time():
                del self.taken[oldest]
                oldest.evict()
                continue
            self.freed = trio.Event()
            with trio.move_on_at(oldest.since + SLOT_TIMEOUT_S):
                await self.freed.wait()
        slot = UnsubscribedSlot(self, trio.current_time())
        self.taken[slot] = None
        return slot

    def removable(self, now: float) -> bool:
        """True if the network has no open or recent connection."""
        return not self.line.held and all(
            slot.evict is _ended and slot.since + SLOT_TIMEOUT_S <= now for slot in self.taken
        )


class UnsubscribedLimit:
    """The slots of all networks.

    Args:
        limit: number of slots of a network.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._networks: dict[str, _Slots] = {}
        self._waiting: set[trio.CancelScope] = set()
        self._swept = 0.0
        self._closed = False

    async def admit(self, network: str | None) -> UnsubscribedSlot | None:
        """Return a slot for a new connection, at once if one is free.

        Returns None if none is free in time.

        Args:
            network: None for a client without limit.
        """
        if self._closed:
            return None
        if network is None:
            return UnsubscribedSlot(_Slots(), trio.current_time())
        self._sweep()
        slots = self._networks.setdefault(network, _Slots())
        with trio.move_on_after(SLOT_WAIT_TIMEOUT_S) as waiting:
            self._waiting.add(waiting)
            try:
                async with slots.line:
                    return await slots.take(self._limit)
            finally:
                self._waiting.discard(waiting)
        return None

    def close(self) -> None:
        """End all waiting, and admit no connection any longer."""
        self._closed = True
        for waiting in self._waiting:
            waiting.cancel()

    def __len__(self) -> int:
        """Return the number of networks in memory."""
        return len(self._networks)

    def _sweep(self) -> None:
        """Remove networks without recent connections.

        It runs at intervals, because it checks all of them.
        """
        now = trio.current_time()
        if now - self._swept >= SLOT_TIMEOUT_S:
            self._swept = now
            self._networks = {
                name: slots for name, slots in self._networks.items() if not slots.removable(now)
            }
