"""The pings on the wire, and the proof in their pongs; no I/O (RFC 6455 5.5.2, 5.5.3; decisions 5).

A pong proves that the peer lives. A pong to one of our pings proves more: the peer's library answers in
order, so everything written before that ping has arrived. Nothing else that clients send is proof.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from msgspec import Struct

from deskwire.engine.stream.subscription import Subscription

CONFIRM_S: Final = 1.0
"""The shortest time between two pings that ask for a confirmation."""
GRACE_S: Final = 0.25
"""How much longer such a ping waits for frames to go along with, as a write of its own costs as much as they do."""
_UNANSWERED: Final = 2
"""Heartbeats without a pong after which the peer is taken for gone."""
_MARKS: Final = 128
"""Pings whose pongs are remembered; a pong stands for all before it, so losing the oldest loses nothing."""
_DIGITS: Final = 20


class _Mark(Struct, frozen=True):
    """A ping on the wire, and the positions that were reached before it."""

    number: int
    reached: tuple[tuple[Subscription, int], ...]


class Heartbeat:
    """The pings of one connection. Times are in seconds on Trio's clock.

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
        """Return when the next ping is to be sent."""
        return min(self._beat, self._last + CONFIRM_S + GRACE_S) if self._wanted else self._beat

    def may_go_along(self, now: float) -> bool:
        """Return whether a ping may follow the frames that are written now."""
        return now >= self._last + CONFIRM_S

    def want(self) -> None:
        """Ask for a confirmation of what was written."""
        self._wanted = True

    def beat(self, now: float) -> bool:
        """Count a heartbeat if one is due; return False if the peer has left too many without a pong."""
        if now >= self._beat:
            if self._unanswered >= _UNANSWERED:
                return False
            self._unanswered += 1
            self._beat = now + self._every_s
        return True

    def next(self, subscriptions: Iterable[Subscription], now: float) -> bytes:
        """Return the payload of a ping that is written now, behind all that these subscriptions have reached."""
        self._wanted = False
        self._number += 1
        self._last = now
        reached = tuple((subscription, subscription.reached) for subscription in subscriptions)
        self._marks = [*self._marks, _Mark(self._number, reached)][-_MARKS:]
        return str(self._number).encode()

    def pong(self, payload: bytes) -> list[tuple[Subscription, int]]:
        """Return the positions of subscriptions that a pong confirms. It stands for all pings before its own."""
        self._unanswered = 0
        confirmed: list[tuple[Subscription, int]] = []
        if payload.isdigit() and len(payload) < _DIGITS:
            while self._marks and self._marks[0].number <= int(payload):
                confirmed += self._marks.pop(0).reached
        return confirmed
