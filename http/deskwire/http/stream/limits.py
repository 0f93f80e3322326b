"""The rate at which a stream connection may send: so much at once, and from then on so much a second (ADR 41).

No Pusher client comes near it: one that subscribes to all its 100 channels at once sends a hundred messages of a
kilobyte or two, and after that it pings, answers pings, and changes a channel now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import trio
from msgspec import Struct, field

from deskwire.engine.core.limits.rate_limit import Rate, take
from deskwire.engine.core.tasks.mutex import Mutex
from deskwire.http.stream import pusher

FRAME_RATE: Final = Rate(per_minute=60 * 50, burst=500)
"""Frames, each part of a message and each control frame; also a read that brings none to its end."""
MESSAGE_RATE: Final = Rate(per_minute=60 * 25, burst=250)
LARGE_MESSAGES_BURST: Final = 16
"""Messages of the largest size that may come at once; from then on the bytes of one in each second."""
_SECOND_NS: Final = 1_000_000_000


@cache  # there is one
def _bytes_rate(largest: int) -> Rate:
    return Rate(per_minute=60 * largest, burst=LARGE_MESSAGES_BURST * largest)


class ProtocolViolation(Exception):
    """A peer has broken a rule, and its connection ends; `goodbye` tells it why."""

    def __init__(self, goodbye: pusher.StreamClose) -> None:
        super().__init__(goodbye.message)
        self.goodbye = goodbye


class RateExceeded(ProtocolViolation):
    """A peer has sent more than it may."""


class InboundRate:
    """The account of what one connection has sent. Each method raises TooMuch.

    Args:
        largest: bytes of the largest message.
    """

    __slots__ = ("_bytes", "_frames", "_largest", "_messages")

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._frames = self._messages = self._bytes = 0  # when each is full again, in nanoseconds

    def frame(self, now_s: float) -> None:
        """Count a frame."""
        self._frames = _count(FRAME_RATE, self._frames, 1, now_s, pusher.TOO_MANY_FRAMES)

    def message(self, now_s: float) -> None:
        """Count a message."""
        self._messages = _count(MESSAGE_RATE, self._messages, 1, now_s, pusher.TOO_MANY_MESSAGES)

    def bytes(self, count: int, now_s: float) -> None:
        """Count bytes."""
        self._bytes = _count(_bytes_rate(self._largest), self._bytes, count, now_s, pusher.TOO_MANY_BYTES)


def _count(rate: Rate, full_at_ns: int, count: int, now_s: float, refusal: pusher.StreamClose) -> int:
    """Return when the bucket is full again after that. Raises TooMuch."""
    after = take(rate, full_at_ns, int(now_s * _SECOND_NS), count)
    if after is None:
        raise RateExceeded(refusal)
    return after


# DOC strangers.py: """The limit on stream connections of one network that have not subscribed, and on their rate.
#
# The owner of a connection is unknown until it has subscribed (ADR 41). So it takes one of the few slots of its network:
#
# - A slot is free again as soon as its connection has subscribed; else 10 s after it was taken, whether the connection
#   has ended by then or not. A connection that is still open then makes room, if another waits.
# - A connection that finds none waits for one, in the order of coming, for 5 s.
# """
#


SLOT_TIMEOUT_S: Final = 10.0
"""How long a slot is kept for its connection: far longer than clients take to authorize and subscribe."""
SLOT_WAIT_TIMEOUT_S: Final = 5.0
"""How long a newcomer waits; pusher-js calls its connection unavailable after 10 s."""


def _ended() -> None:
    """Do nothing: the connection has ended already."""


class UnsubscribedSlot(Struct, eq=False):
    """A connection that has not subscribed, in its slot.

    Args:
        since: time at which it took the slot, on Trio's clock.
        evict: ends the connection, as another needs the slot.
    """

    _slots: _Slots
    since: float
    evict: Callable[[], None] = _ended

    def release(self) -> None:
        """Give the slot back: the connection has subscribed."""
        self._slots.free(self)

    def leave(self) -> None:
        """Note that the connection has ended. Its slot is kept for its time, which bounds the rate of connections."""
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
        """Return whether nobody needs it any more."""
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
        """Give a new connection its slot, at once if one is free; return None if none is free in time.

        Args:
            network: None for a client that may be anybody; there is no limit on those.
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
        """Let nobody wait any longer, and nobody begin to."""
        self._closed = True
        for waiting in self._waiting:
            waiting.cancel()

    def __len__(self) -> int:
        """Return how many networks are remembered."""
        return len(self._networks)

    def _sweep(self) -> None:
        """Forget the networks from which nobody has come for a while; seldom, as it checks all of them."""
        now = trio.current_time()
        if now - self._swept >= SLOT_TIMEOUT_S:
            self._swept = now
            self._networks = {
                name: slots for name, slots in self._networks.items() if not slots.removable(now)
            }
