"""Deliveries that wait for an attempt, in the order of their conversations; no waiting, no I/O.

Of the deliveries with one ordering key (of one conversation) one is ready or under way at a time, in the order in which
they were added; the next one is ready when the attempt has ended. Deliveries with another key or none do not wait for it.

A delivery whose receiver has asked for a pause is *postponed*: it keeps its place in its conversation, and is ready again once it is
due, after all that are ready then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.delivery import Delivery, with_event
from deskwire.engine.webhooks.retry.circuit_breaker import PAUSE_MAX_MS


class OrderedDeliveries:
    """The order of deliveries to one endpoint.

    Attributes:
        held: the deliveries that were added and have not ended, by position.
    """

    def __init__(self) -> None:
        self.held: dict[int, Delivery] = {}
        self._ready: deque[Delivery] = deque()
        self._waiting: dict[int, deque[Delivery]] = {}
        self._blocks: dict[int, int] = {}
        self._postponed: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        """Return whether there is anything to start."""
        return bool(self._ready)

    def add(self, delivery: Delivery) -> None:
        """Take in a delivery; it is ready if no other one with its key is before it."""
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
        """Take the delivery that has been ready longest; `ended` or `postpone` must follow."""
        return self._ready.popleft()

    def postpone(self, delivery: Delivery) -> None:
        """Keep a delivery until it is due whose attempt is to be repeated; others with its key go on waiting for it."""
        if delivery.position in self.held:
            self.held[delivery.position] = delivery
            heappush(self._postponed, (delivery.due_at, delivery.position))

    @property
    def next_due(self) -> int | None:
        """The time at which a postponed delivery is due first (ms), None if none is postponed."""
        return self._postponed[0][0] if self._postponed else None

    def resume(self, now: int) -> None:
        """Make the postponed deliveries ready that are due at `now` (ms). One due later than after any pause is from a clock set back."""
        while self._postponed and not 0 < self._postponed[0][0] - now <= PAUSE_MAX_MS:
            self._ready.append(self.held[heappop(self._postponed)[1]])

    def evict_postponed(self) -> Sequence[Delivery]:
        """Return the postponed deliveries, which are no longer held: what waits for them is ready."""
        given_up = [self.held.pop(position) for _, position in self._postponed]
        self._postponed.clear()
        for each in given_up:
            self.ended(each.ordering_key)
        return given_up

    def ended(self, key: int | None) -> None:
        """Let the next delivery with this key start: the attempt that it waited for has ended."""
        if key is None:
            return
        waiting = self._waiting.get(key)
        if waiting is None:
            return  # it was forgotten meanwhile
        if self._blocks and (blocks := self._blocks.pop(key, 1)) > 1:
            self._blocks[key] = blocks - 1
        elif waiting:
            self._make_ready(waiting.popleft())
        else:
            del self._waiting[key]

    def block(self, key: int) -> None:
        """Let the deliveries with this key wait for one more `ended`."""
        if key in self._waiting:
            self._blocks[key] = self._blocks.get(key, 1) + 1
        else:
            self._waiting[key] = deque()

    def rewrite(self, events: Mapping[int, StoredEvent]) -> None:
        """Have these events, by their positions, in the place of those of the deliveries."""
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
        """Let go of these deliveries, which have these keys, and of what the keys wait for."""
        for position in positions:
            self.held.pop(position, None)
        self._ready = deque(delivery for delivery in self._ready if delivery.position not in positions)
        self._postponed = [entry for entry in self._postponed if entry[1] not in positions]
        heapify(self._postponed)
        for key in keys:
            waiting = self._waiting.pop(key, ())
            self._blocks.pop(key, None)
            for delivery in waiting:  # its deletion, if a batch has brought that already
                if delivery.position not in positions:
                    self.add(delivery)

    def _make_ready(self, delivery: Delivery) -> None:
        """Have a delivery start next; one that a row says was refused waits until it is due."""
        if delivery.refusals:
            heappush(self._postponed, (delivery.due_at, delivery.position))
        else:
            self._ready.append(delivery)
