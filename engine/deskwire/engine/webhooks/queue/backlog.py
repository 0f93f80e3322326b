"""Backlog of deliveries after an outage, sent beside new ones; no I/O (ADR 10).

The backlog has three kinds of deliveries and sends them in this order: existing redeliveries; missed
deliveries, for which redeliveries are made in batches; and held deliveries, up to the position at which the
circuit closed. Each conversation has at most one delivery of the backlog running, whatever its kind.

The rate is limited and grows while attempts succeed (`limits.BacklogRate`). The backlog uses a share of the
endpoint's slots, so that it does not delay new events and new events do not starve it.
"""

from __future__ import annotations

from typing import Final, Literal, assert_never

from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.queue.limits import BacklogRate
from deskwire.engine.webhooks.queue.ordering import OrderedDeliveries

BacklogKind = Literal["redeliveries", "missed", "held"]

# Deliveries in memory.
_MEMORY_MAX: Final = 500

# Redeliveries of missed deliveries made by one commit; a few milliseconds of the writer's time.
_REDELIVERY_BATCH_SIZE: Final = 100


class Backlog:
    """Backlog of one endpoint.

    Args:
        most_per_s: maximum attempts per second.
        share: maximum concurrent attempts.
        room: maximum deliveries in memory.

    Attributes:
        ordered: the deliveries in memory.
        held_after, held_upto: range of positions of held deliveries that are not read yet.
        redelivered_after: position after which redeliveries are not read yet.
        missed: whether there may be missed deliveries to redeliver.
        started: number of attempts since the backlog was last empty.
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
        """The maximum number of deliveries in memory."""
        return self._room

    @property
    def room(self) -> int:
        """The number of deliveries that can still be added."""
        return self._room - len(self.ordered.held)

    def room_for(self, kind: BacklogKind) -> int:
        """Return the batch size for this kind."""
        return min(self.room, _REDELIVERY_BATCH_SIZE) if kind == "missed" else self.room

    @property
    def empty(self) -> bool:
        """True if all of the backlog was sent, as far as known."""
        return self._wants() is None and not self.ordered.held

    def clear(self) -> None:
        """Drop all deliveries, because the circuit has opened."""
        self.ordered = OrderedDeliveries()
        self.held_after = self.held_upto = self.redelivered_after = 0
        self._redeliveries = False

    def begin_catch_up(self, upto: int) -> None:
        """Start catching up.

        The backlog contains all pending redeliveries and the held deliveries up to this position.
        """
        self.clear()
        self._rate.reset()
        self.held_upto, self._redeliveries = upto, True

    def note_redelivery(self) -> None:
        """Record that there are redeliveries to read."""
        self._redeliveries = True

    @property
    def wants_rows(self) -> bool:
        """True if there is a batch to read, and enough room for a query.

        Enough is three quarters of the capacity, or an eighth if no delivery is ready to start.
        """
        # Deliveries behind a postponed one stay in memory. They must not keep other conversations out.
        needed = self._room - self._room // 4 if self.ordered else max(1, self._room // 8)
        return self.room >= needed and self._wants() is not None

    def begin_batch(self) -> BacklogKind | None:
        """Return the kind of batch to read now, None for no batch.

        Call `end_batch` or `give_up_batch` afterwards.
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
        """Record that a batch was read.

        Args:
            last: its last position if there may be more rows, else None.
        """
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
        """Record that rows of this kind are still to be read."""
        self._redeliveries = self._redeliveries or kind == "redeliveries"
        self.missed = self.missed or kind == "missed"

    def next_at(self) -> float | None:
        """Return when the next attempt may start, in Trio's seconds; None if none may."""
        return self._rate.next_at if self.ordered and len(self._under_way) < self._share else None

    def urgent(self, at: float) -> bool:
        """Return whether to send one before other deliveries at `at` (Trio's seconds).

        This is so if none of the backlog is running, so that new deliveries do not starve it.
        """
        return bool(self.ordered) and not self._under_way and self._rate.next_at <= at

    def may_start(self, at: float) -> bool:
        """Return whether an attempt may start at `at` (Trio's seconds)."""
        next_at = self.next_at()
        return next_at is not None and next_at <= at

    def take(self, at: float) -> Delivery:
        """Take the next delivery at `at` (Trio's seconds); call `ended` afterwards."""
        delivery = self.ordered.take()
        self._rate.begin(at)
        self._under_way.add(delivery.position)
        self.started += 1
        return delivery

    def note_result(self, position: int, at: float, *, well: bool) -> None:
        """Adjust the rate after an attempt has ended at `at` (Trio's seconds).

        Successes count only for the backlog's own deliveries, failures for all.
        """
        if not well:
            self._rate.failed(at)
        elif position in self._under_way:
            self._rate.succeeded()

    def ended(self, position: int) -> None:
        """Record that an attempt has ended. Other deliveries are ignored."""
        self._under_way.discard(position)

    def _wants(self) -> BacklogKind | None:
        if self._redeliveries:
            return "redeliveries"
        if self.missed:
            return "missed"
        return "held" if self.held_after < self.held_upto else None
