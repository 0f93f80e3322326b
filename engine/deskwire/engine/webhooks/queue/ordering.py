"""Deliveries waiting for an attempt, in the order of their conversations; no I/O.

Of the deliveries with one ordering key (one conversation), at most one is ready or running, in the order in
which they were added. The next is ready when the attempt has ended. Deliveries with another key, or without
one, do not wait for it.

A delivery whose receiver asked for a pause is *postponed*: it keeps its place in its conversation and is
ready again when it is due, after the deliveries that are ready by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.delivery import Delivery, with_event
from deskwire.engine.webhooks.retry.circuit_breaker import PAUSE_MAX_MS


class OrderedDeliveries:
    """Ordered deliveries to one endpoint.

    Attributes:
        held: all deliveries that were added and have not ended, by position.
    """

    def __init__(self) -> None:
        self.held: dict[int, Delivery] = {}
        self._ready: deque[Delivery] = deque()
        self._waiting: dict[int, deque[Delivery]] = {}
        self._blocks: dict[int, int] = {}
        self._postponed: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        """Return whether a delivery is ready to start."""
        return bool(self._ready)

    def add(self, delivery: Delivery) -> None:
        """Add a delivery. It is ready if no earlier one has its key."""
        self.held[delivery.position] = delivery
        key = delivery.ordering_key
        if key is None:
            self._make_ready(delivery)
        elif (waiting := self._waiting.get(key)) is not None:
            waiting.append(delivery)
        else:
            self._waiting[key] = deque()
            self._make_ready(delivery)

    def first(self) -> Delivery | None:
        """Return the delivery that has been ready longest, None if none is ready."""
        return self._ready[0] if self._ready else None

    def take(self) -> Delivery:
        """Take the delivery that has been ready longest.

        Call `ended` or `postpone` afterwards.
        """
        return self._ready.popleft()

    def postpone(self, delivery: Delivery) -> None:
        """Keep a delivery until it is due again; later ones with its key keep waiting."""
        if delivery.position in self.held:
            self.held[delivery.position] = delivery
            heappush(self._postponed, (delivery.due_at, delivery.position))

    @property
    def next_due(self) -> int | None:
        """The time at which the first postponed delivery is due (ms), or None."""
        return self._postponed[0][0] if self._postponed else None

    def resume(self, now: int) -> None:
        """Make the postponed deliveries ready that are due at `now` (ms).

        A delivery due later than after the longest pause was postponed before the clock was set back, so it
        is due too.
        """
        while self._postponed and not 0 < self._postponed[0][0] - now <= PAUSE_MAX_MS:
            self._ready.append(self.held[heappop(self._postponed)[1]])

    def evict_postponed(self) -> Sequence[Delivery]:
        """Remove and return the postponed deliveries.

        The next deliveries of their conversations become ready.
        """
        given_up = [self.held.pop(position) for _, position in self._postponed]
        self._postponed.clear()
        for each in given_up:
            self.ended(each.ordering_key)
        return given_up

    def ended(self, key: int | None) -> None:
        """Make the next delivery with this key ready, because an attempt has ended."""
        if key is None:
            return
        waiting = self._waiting.get(key)
        if waiting is None:
            return  # the key was removed while the attempt ran
        if self._blocks and (blocks := self._blocks.pop(key, 1)) > 1:
            self._blocks[key] = blocks - 1
        elif waiting:
            self._make_ready(waiting.popleft())
        else:
            del self._waiting[key]

    def block(self, key: int) -> None:
        """Make the deliveries with this key wait for one more `ended`."""
        if key in self._waiting:
            self._blocks[key] = self._blocks.get(key, 1) + 1
        else:
            self._waiting[key] = deque()

    def rewrite(self, events: Mapping[int, StoredEvent]) -> None:
        """Replace the events of the deliveries by these, given by position."""
        for held in self.held.values():
            if held.event.position in events:
                break
        else:
            return
        self.held = {position: with_event(each, events) for position, each in self.held.items()}
        self._ready = deque(with_event(each, events) for each in self._ready)
        self._waiting = {
            key: deque(with_event(each, events) for each in waiting) for key, waiting in self._waiting.items()
        }

    def forget(self, positions: frozenset[int], keys: frozenset[int]) -> None:
        """Remove these deliveries, which have these keys.

        Other deliveries with the keys stay, and the first of them is ready.
        """
        for position in positions:
            self.held.pop(position, None)
        self._ready = deque(delivery for delivery in self._ready if delivery.position not in positions)
        self._postponed = [entry for entry in self._postponed if entry[1] not in positions]
        heapify(self._postponed)
        for key in keys:
            waiting = self._waiting.pop(key, ())
            self._blocks.pop(key, None)
            for delivery in waiting:  # may contain the conversation's deletion event
                if delivery.position not in positions:
                    self.add(delivery)

    def _make_ready(self, delivery: Delivery) -> None:
        """Queue a delivery as ready, or as postponed if its row has refusals."""
        if delivery.refusals:
            heappush(self._postponed, (delivery.due_at, delivery.position))
        else:
            self._ready.append(delivery)
