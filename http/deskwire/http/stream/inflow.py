"""The rate at which a stream connection may send: so much at once, and from then on so much a second (ADR 41).

No Pusher client comes near it: one that subscribes to all its 100 channels at once sends a hundred messages of a
kilobyte or two, and after that it pings, answers pings, and changes a channel now and then.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from deskwire.engine.core.limits.rate_limit import RateLimit, take
from deskwire.http.stream import pusher

FRAMES: Final = RateLimit(per_minute=60 * 50, burst=500)
"""Frames, each part of a message and each control frame; also a read that brings none to its end."""
MESSAGES: Final = RateLimit(per_minute=60 * 25, burst=250)
LARGEST_AT_ONCE: Final = 16
"""Messages of the largest size that may come at once; from then on the bytes of one in each second."""
_SECOND_NS: Final = 1_000_000_000


@cache  # there is one
def _bytes_rate(largest: int) -> RateLimit:
    return RateLimit(per_minute=60 * largest, burst=LARGEST_AT_ONCE * largest)


class HangUp(Exception):
    """A peer has broken a rule, and its connection ends; `goodbye` tells it why."""

    def __init__(self, goodbye: pusher.Close) -> None:
        super().__init__(goodbye.message)
        self.goodbye = goodbye


class TooMuch(HangUp):
    """A peer has sent more than it may."""


class Inflow:
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
        self._frames = _count(FRAMES, self._frames, 1, now_s, pusher.TOO_MANY_FRAMES)

    def message(self, now_s: float) -> None:
        """Count a message."""
        self._messages = _count(MESSAGES, self._messages, 1, now_s, pusher.TOO_MANY_MESSAGES)

    def bytes(self, count: int, now_s: float) -> None:
        """Count bytes."""
        self._bytes = _count(_bytes_rate(self._largest), self._bytes, count, now_s, pusher.TOO_MANY_BYTES)


def _count(rate: RateLimit, full_at_ns: int, count: int, now_s: float, refusal: pusher.Close) -> int:
    """Return when the bucket is full again after that. Raises TooMuch."""
    after = take(rate, full_at_ns, int(now_s * _SECOND_NS), count)
    if after is None:
        raise TooMuch(refusal)
    return after
