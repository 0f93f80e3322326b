"""The deliveries that an outage left behind, sent beside new ones; no waiting, no I/O (ADR 10).

There are three kinds, sent in this order: redeliveries that are there already; those that the outage made use up their
attempts, of which redeliveries are made batch by batch; and those that were held, up to the position at which the circuit
was closed. Of each conversation one is under way at a time, whichever kind it is.

They go at a bounded rate, which grows while all goes well (`pace`), and take a share of the endpoint's places: new events do not wait for them, nor they for ever.
"""

from __future__ import annotations

from typing import Final, Literal, assert_never

from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.queue.limits import BacklogRate
from deskwire.engine.webhooks.queue.ordering import OrderedDeliveries

BacklogKind = Literal["redeliveries", "missed", "held"]

_MEMORY_MAX: Final = 500
"""Bound on the deliveries in memory."""

_REDELIVERY_BATCH_SIZE: Final = 100
"""Redeliveries of missed ones that one commit makes; a few milliseconds of the writer's time."""


class Backlog:
    """One endpoint's backlog.

    Args:
        most_per_s: attempts that begin in a second at most.
        share: attempts that are under way at the same time at most.
        room: deliveries that are in memory at most.

    Attributes:
        ordered: the deliveries in memory.
        held_after, held_upto: the positions between which held deliveries are still to be read.
        redelivered_after: the position behind which redeliveries are still to be read.
        missed: whether there may be missed deliveries whose redeliveries are still to be made.
        started: number of attempts that were begun since the backlog last was empty.
    """

    def __init__(self, most_per_s: float, share: int, room: int) -> None:
        self.ordered = OrderedDeliveries()
        self.held_after = 0
        self.held_upto = 0
        self.redelivered_after = 0
        self.missed = False
        self.started = 0
        self._redeliveries = False
        self._rate = BacklogRate(most_per_s)
        self._share = share
        self._room = min(room, _MEMORY_MAX)
        self._under_way: set[int] = set()

    @property
    def capacity(self) -> int:
        """The number of deliveries that are in memory at most."""
        return self._room

    @property
    def room(self) -> int:
        """The number of deliveries that may still be taken in."""
        return self._room - len(self.ordered.held)

    def room_for(self, kind: BacklogKind) -> int:
        """Return how many rows a batch of this kind may have."""
        return min(self.room, _REDELIVERY_BATCH_SIZE) if kind == "missed" else self.room

    @property
    def empty(self) -> bool:
        """Return whether all was sent, as far as is known."""
        return self._wants() is None and not self.ordered.held

    def clear(self) -> None:
        """Let go of all: the circuit was opened."""
        self.ordered = OrderedDeliveries()
        self.held_after = self.held_upto = self.redelivered_after = 0
        self._redeliveries = False

    def begin_catch_up(self, upto: int) -> None:
        """Begin anew, with all pending redeliveries and the deliveries that were held up to this position."""
        self.clear()
        self._rate.reset()
        self.held_upto, self._redeliveries = upto, True

    def note_redelivery(self) -> None:
        """Take note that there are redeliveries to be read."""
        self._redeliveries = True

    @property
    def wants_rows(self) -> bool:
        """Return whether there is a batch to read now, and room for it.

        Room for three quarters of the deliveries makes a query worth it; for an eighth, when nothing is ready to start.
        """
        # Deliveries that wait for a postponed one stay in memory, and must not keep other conversations out of it.
        needed = self._room - self._room // 4 if self.ordered else max(1, self._room // 8)
        return self.room >= needed and self._wants() is not None

    def begin_batch(self) -> BacklogKind | None:
        """Return the kind of batch to read now, None if there is none or no room for one.

        `end_batch` or `give_up_batch` must follow.
        """
        kind = self._wants() if self.wants_rows else None
        match kind:
            case "redeliveries":
                self._redeliveries = False
            case "missed":
                self.missed = False
            case "held" | None:
                pass
            case _:
                assert_never(kind)
        return kind

    def end_batch(self, kind: BacklogKind, last: int | None) -> None:
        """Take note of a batch of this kind; `last` is its last position if there may be more, else None."""
        match kind:
            case "redeliveries":
                self.redelivered_after = max(self.redelivered_after, last or 0)
            case "held":
                self.held_after = self.held_upto if last is None else last
            case "missed":
                pass
            case _:
                assert_never(kind)
        if last is not None:
            self.give_up_batch(kind)

    def give_up_batch(self, kind: BacklogKind) -> None:
        """Take note that there is still something to be read of this kind."""
        self._redeliveries = self._redeliveries or kind == "redeliveries"
        self.missed = self.missed or kind == "missed"

    def next_at(self) -> float | None:
        """Return the time at which the next attempt may begin, in Trio's seconds; None if none may."""
        return self._rate.next_at if self.ordered and len(self._under_way) < self._share else None

    def urgent(self, at: float) -> bool:
        """Return whether one is to be sent at `at` (Trio's seconds) before anything else, as none is under way."""
        return bool(self.ordered) and not self._under_way and self._rate.next_at <= at

    def may_start(self, at: float) -> bool:
        """Return whether one may be sent at `at` (Trio's seconds)."""
        next_at = self.next_at()
        return next_at is not None and next_at <= at

    def take(self, at: float) -> Delivery:
        """Take the next one, at `at` (Trio's seconds); `ended` must follow."""
        delivery = self.ordered.take()
        self._rate.begin(at)
        self._under_way.add(delivery.position)
        self.started += 1
        return delivery

    def note_result(self, position: int, at: float, *, well: bool) -> None:
        """Take note of how an attempt has ended at `at` (Trio's seconds); its own set the pace, and all failures do."""
        if not well:
            self._rate.failed(at)
        elif position in self._under_way:
            self._rate.succeeded()

    def ended(self, position: int) -> None:
        """Take note that an attempt has ended; without effect if it was none of the backlog's."""
        self._under_way.discard(position)

    def _wants(self) -> BacklogKind | None:
        if self._redeliveries:
            return "redeliveries"
        if self.missed:
            return "missed"
        return "held" if self.held_after < self.held_upto else None
