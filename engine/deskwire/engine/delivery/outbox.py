"""Which deliveries to one endpoint may start now; no waiting, no I/O.

Order. First attempts of one lane (a conversation) start in the order of their positions, each when the
previous one's first attempt has ended, well or badly. Other lanes and events without one do not wait for it.
Retries start when they are due, in no order. Of all that may start, what has been due longest comes first.

A clock that is set back takes the retries' times with it, as far as it is noticed: when the outbox is asked, by
the time at which it was asked before. A retry then comes late by what lay between the two at most, not by the jump.

Memory. A delivery is *held* from the moment it is taken in until it has ended; while it waits for a retry,
too. At most `memory` are held. The cursor is the position up to which all deliveries were taken in, erased
or ended. As long as the cursor is at the newest known position, new deliveries are taken in as they are
offered. Once there is no room for one, or at the start, the outbox is *behind*: what is offered then is only
noted, and the rows behind the cursor are read, page by page, until a page brings the cursor to the newest
known position again. Positions only grow, so each delivery is taken in once: one at or before the cursor is
held or over, one behind it is still a row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from deskwire.engine.deliveries import Delivery


@dataclass(slots=True)
class Reading:
    """A page that is being read: pending rows `after` this position, at most `limit` of them."""

    after: int
    limit: int
    newest: int
    erased: set[int] = field(default_factory=set)


class Outbox:
    """One endpoint's deliveries in memory.

    Args:
        memory: how many are held at most.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._cursor = 0
        self._newest = 0
        self._behind = True
        self._reading: Reading | None = None
        self._held: dict[int, Delivery] = {}
        self._ready: deque[Delivery] = deque()
        self._lanes: dict[int, deque[Delivery]] = {}
        self._retries: list[tuple[int, int]] = []
        self._asked_at = 0

    @property
    def held(self) -> int:
        """How many deliveries are in memory."""
        return len(self._held)

    def offer(self, delivery: Delivery) -> None:
        """Take in a delivery that was just committed, or note that its row is to be read later."""
        if delivery.position <= self._cursor:
            return  # a page has brought it already
        self._newest = max(self._newest, delivery.position)
        if self._behind or len(self._held) >= self._memory:
            self._behind = True
        else:
            self._take_in(delivery)

    @property
    def wants_rows(self) -> bool:
        """Whether a page should be read: there may be rows, and enough room to make it worth a query.

        Half the memory is enough; an eighth, when nothing is ready to start.
        """
        if not self._behind or self._reading is not None:
            return False
        needed = self._memory // (2 if self._ready else 8)
        return self._memory - len(self._held) >= max(1, needed)

    def begin_reading(self) -> Reading:
        """What to read now; to be followed by `end_reading` or `give_up_reading`."""
        self._reading = Reading(self._cursor, self._memory - len(self._held), self._newest)
        return self._reading

    def end_reading(self, rows: Sequence[Delivery]) -> None:
        """Take in the rows that a reading has found."""
        reading, self._reading = self._reading, None
        assert reading is not None
        for row in rows:
            if row.lane in reading.erased:
                self._cursor = row.position
            else:
                self._take_in(row)
        if len(rows) < reading.limit:  # all that was known when the reading began is in it, or is gone
            self._cursor = max(self._cursor, reading.newest)
            self._newest = max(self._newest, self._cursor)
            self._behind = self._newest > self._cursor

    def give_up_reading(self) -> None:
        """The page could not be read; its rows are still to be read."""
        self._reading = None

    def take_next(self, now: int) -> Delivery | None:
        """The delivery whose next attempt may start now, if any; `now` in milliseconds since the epoch.

        For a first attempt, `first_attempt_ended` must follow; for each, `retry` or `end`.
        """
        self.heed_clock(now)
        due = self._due_retry(now)
        if due is None or (self._ready and self._ready[0].due_at < due.due_at):
            return self._ready.popleft() if self._ready else None
        heappop(self._retries)
        return due

    def next_due(self) -> int | None:
        """When there is something to start, in milliseconds since the epoch: 0 for at once, None for never."""
        if self._ready:
            return 0
        return self._retries[0][0] if self._retries else None

    def first_attempt_ended(self, delivery: Delivery) -> None:
        """Let the next delivery of the lane start."""
        if delivery.lane is None:
            return
        waiting = self._lanes.get(delivery.lane)
        if waiting is None:
            return  # erased meanwhile
        if waiting:
            self._ready.append(waiting.popleft())
        else:
            del self._lanes[delivery.lane]

    def retry(self, delivery: Delivery) -> None:
        """Keep a delivery whose attempt is recorded until its new `due_at`."""
        if delivery.position in self._held:
            self._held[delivery.position] = delivery
            heappush(self._retries, (delivery.due_at, delivery.position))

    def end(self, delivery: Delivery) -> None:
        """Let go of a delivery that is over."""
        self._held.pop(delivery.position, None)

    def forget(self, conversations: frozenset[int]) -> None:
        """Let go of all deliveries of erased conversations; attempts under way may still end."""
        if self._reading is not None:
            self._reading.erased |= conversations
        gone = {position for position, delivery in self._held.items() if delivery.lane in conversations}
        if not gone:
            return
        for position in gone:
            del self._held[position]
        for lane in conversations:
            self._lanes.pop(lane, None)
        self._ready = deque(delivery for delivery in self._ready if delivery.position not in gone)
        self._retries = [entry for entry in self._retries if entry[1] not in gone]
        heapify(self._retries)

    def _take_in(self, delivery: Delivery) -> None:
        self._cursor = delivery.position
        self._newest = max(self._newest, delivery.position)
        self._held[delivery.position] = delivery
        if delivery.attempts:
            heappush(self._retries, (delivery.due_at, delivery.position))
        elif delivery.lane is None:
            self._ready.append(delivery)
        elif (waiting := self._lanes.get(delivery.lane)) is not None:
            waiting.append(delivery)
        else:
            self._lanes[delivery.lane] = deque()
            self._ready.append(delivery)

    def heed_clock(self, now: int) -> None:
        """Move the retries with a clock that was set back since the outbox was asked."""
        if (back := self._asked_at - now) > 0:
            self._retries = [(due_at - back, position) for due_at, position in self._retries]  # still a heap
        self._asked_at = now

    def _due_retry(self, now: int) -> Delivery | None:
        if not self._retries or self._retries[0][0] > now:
            return None
        return self._held[self._retries[0][1]]
