"""What a stream connection may send: so much at once, and from then on so much a second (ADR 42).

No Pusher client comes near it: one that subscribes to all its 100 channels at once sends a hundred messages of a
kilobyte or two, and after that it pings, answers pings, and changes a channel now and then.
"""

from __future__ import annotations

from typing import Final

from deskwire.engine.rate import Rate, take
from deskwire.http import pusher

FRAMES: Final = Rate(per_minute=60 * 50, burst=500)
"""Frames, each part of a message and each control frame; also a read that brings none to its end."""
MESSAGES: Final = Rate(per_minute=60 * 25, burst=250)
LARGEST_AT_ONCE: Final = 16
"""Bytes may be at once as many as so many of the largest messages have, and from then on as one has in each second."""
_SECOND_NS: Final = 1_000_000_000


class Inflow:
    """One connection's account. Each method says what to end the connection with if that was too much.

    Args:
        largest: bytes of the largest message.
    """

    __slots__ = ("_bytes", "_frames", "_largest", "_messages")

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._frames = self._messages = self._bytes = 0  # when each is full again, in nanoseconds

    def frame(self, now_s: float) -> pusher.Close | None:
        """Count a frame."""
        after = take(FRAMES, self._frames, int(now_s * _SECOND_NS))
        self._frames = after or self._frames
        return None if after else pusher.TOO_MANY_FRAMES

    def message(self, now_s: float) -> pusher.Close | None:
        """Count a message."""
        after = take(MESSAGES, self._messages, int(now_s * _SECOND_NS))
        self._messages = after or self._messages
        return None if after else pusher.TOO_MANY_MESSAGES

    def bytes(self, count: int, now_s: float) -> pusher.Close | None:
        """Count bytes."""
        rate = Rate(per_minute=60 * self._largest, burst=LARGEST_AT_ONCE * self._largest)
        after = take(rate, self._bytes, int(now_s * _SECOND_NS), count)
        self._bytes = after or self._bytes
        return None if after else pusher.TOO_MANY_BYTES
