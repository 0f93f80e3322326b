"""Retries of one endpoint's deliveries; no I/O.

Memory holds the retries that are due first, as far as there is room. The others are *parked*: they stay in
the database and are read when the first of them is due, or when there is room for many.

If the clock is set back, the due times move back with it. A retry is then late by at most the time between
two checks of the clock, not by the size of the jump.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.delivery import Delivery, with_event


class Retries:
    """Retries of one endpoint.

    Args:
        room: maximum number of deliveries in memory.
        ahead_max_ms: maximum time from now to a planned retry. A later time in a row was written before the
            clock was set back.

    Attributes:
        held: the deliveries in memory by position, including those with a running attempt.
    """

    def __init__(self, room: int, ahead_max_ms: int) -> None:
        self.held: dict[int, Delivery] = {}
        self._room = room
        self._ahead_max_ms = ahead_max_ms
        self._heap: list[tuple[int, int]] = []
        self._parked_due: int | None = None
        self._seen_at = 0

    def add(self, delivery: Delivery, now: int) -> None:
        """Keep a delivery until its `due_at`, or park it if there is no room."""
        if len(self.held) < self._room:
            self._keep(delivery, now)
        else:
            self._park(delivery.due_at)

    def next_due(self) -> int | None:
        """Return when the next retry is due, in ms since the epoch.

        None if there is none, or no room to read it.
        """
        first = self._heap[0][0] if self._heap else None
        if self._parked_due is None or not self._may_read():
            return first
        return self._parked_due if first is None else min(first, self._parked_due)

    def first(self, now: int) -> Delivery | None:
        """Return the delivery that has been due longest at `now` (ms), if any."""
        return self.held[self._heap[0][1]] if self._heap and self._heap[0][0] <= now else None

    def take(self) -> Delivery:
        """Take the delivery that is due first."""
        return self.held[heappop(self._heap)[1]]

    def make_due(self, position: int, now: int) -> None:
        """Make a delivery due at `now` (ms), if it waits in memory."""
        if any(entry[1] == position for entry in self._heap):
            self._heap = [entry for entry in self._heap if entry[1] != position]
            self._heap.append((now, position))
            heapify(self._heap)

    def wants_rows(self, now: int) -> bool:
        """Return whether to read parked retries at `now` (ms).

        False while retries in memory are due before them, because the query would return the same ones.
        """
        if self._parked_due is None or not self._may_read():
            return False
        if len(self.held) <= self._room // 4:
            return True
        return self._parked_due <= now and (not self._heap or self._parked_due < self._heap[0][0])

    def begin_reading(self) -> int:
        """Remove the waiting retries from memory; return the room for rows.

        The query returns them again, together with parked ones that are due earlier.
        """
        for _, position in self._heap:
            del self.held[position]
        self._heap.clear()
        self._parked_due = None
        return self._room - len(self.held)

    def end_reading(self, rows: Sequence[Delivery], *, more: bool, now: int) -> None:
        """Add as many of these rows as there is room for, the first due ones first.

        Args:
            more: whether there may be further rows.
        """
        room = max(0, self._room - len(self.held))
        for row in rows[:room]:
            self._keep(row, now)
        if more or len(rows) > room:
            self._park(min((row.due_at for row in rows[room:]), default=now + 1))

    def give_up_reading(self, now: int) -> None:
        """Record that the rows could not be read and must be read again."""
        self._park(now)

    def adjust_clock(self, now: int) -> None:
        """Move all due times if the clock was set back since the last call."""
        if (back := self._seen_at - now) > 0:
            self._heap = [(due_at - back, position) for due_at, position in self._heap]  # still a heap
            if self._parked_due is not None:
                self._parked_due -= back
        self._seen_at = now

    def rewrite(self, events: Mapping[int, StoredEvent]) -> None:
        """Replace the events of the deliveries by these, given by position."""
        self.held = {position: with_event(each, events) for position, each in self.held.items()}

    def forget(self, positions: frozenset[int], _keys: frozenset[int]) -> None:
        """Remove the deliveries at these positions."""
        for position in positions:
            self.held.pop(position, None)
        self._heap = [entry for entry in self._heap if entry[1] not in positions]
        heapify(self._heap)

    def clear(self) -> None:
        """Remove all deliveries."""
        self.held.clear()
        self._heap.clear()
        self._parked_due = None

    def _keep(self, delivery: Delivery, now: int) -> None:
        due_at = min(delivery.due_at, now + self._ahead_max_ms)
        self.held[delivery.position] = delivery
        heappush(self._heap, (due_at, delivery.position))

    def _may_read(self) -> bool:
        """Return whether there is room for a row beside those with a running attempt."""
        return len(self.held) - len(self._heap) < self._room

    def _park(self, due_at: int) -> None:
        self._parked_due = due_at if self._parked_due is None else min(self._parked_due, due_at)
