"""Deliveries that wait for an attempt, in the order of their conversations; no waiting, no I/O.

Of each lane (a conversation) one is ready or under way at a time, in the order in which they were added; the next one is
ready when its attempt has ended. Other lanes, and deliveries without one, do not wait for it.
"""

from __future__ import annotations

from collections import deque

from deskwire.engine.webhooks.delivery import Delivery


class OrderedDeliveries:
    """The order of deliveries to one endpoint.

    Attributes:
        held: all that were added and have not ended, by position.
    """

    def __init__(self) -> None:
        self.held: dict[int, Delivery] = {}
        self._ready: deque[Delivery] = deque()
        self._waiting: dict[int, deque[Delivery]] = {}
        self._blocks: dict[int, int] = {}

    def __bool__(self) -> bool:
        """Say whether there is anything to start."""
        return bool(self._ready)

    def add(self, delivery: Delivery) -> None:
        """Take in a delivery; it is ready if none of its lane is before it."""
        self.held[delivery.position] = delivery
        lane = delivery.lane
        if lane is None:
            self._ready.append(delivery)
        elif (waiting := self._waiting.get(lane)) is not None:
            waiting.append(delivery)
        else:
            self._waiting[lane] = deque()
            self._ready.append(delivery)

    def first(self) -> Delivery | None:
        """The delivery that has been ready longest."""
        return self._ready[0] if self._ready else None

    def take(self) -> Delivery:
        """Take the delivery that has been ready longest; `ended` or `put_back` must follow for its lane."""
        return self._ready.popleft()

    def put_back(self, delivery: Delivery) -> None:
        """Make a delivery ready again whose attempt is to be repeated; its lane goes on waiting for it."""
        if delivery.position in self.held:
            self.held[delivery.position] = delivery
            self._ready.appendleft(delivery)

    def ended(self, lane: int | None) -> None:
        """Let the next delivery of the lane start: the attempt that it waited for has ended."""
        if lane is None:
            return
        waiting = self._waiting.get(lane)
        if waiting is None:
            return  # forgotten meanwhile
        if self._blocks and (blocks := self._blocks.pop(lane, 1)) > 1:
            self._blocks[lane] = blocks - 1
        elif waiting:
            self._ready.append(waiting.popleft())
        else:
            del self._waiting[lane]

    def block(self, lane: int) -> None:
        """Let the lane wait for one `ended` more."""
        if lane in self._waiting:
            self._blocks[lane] = self._blocks.get(lane, 1) + 1
        else:
            self._waiting[lane] = deque()

    def forget(self, positions: frozenset[int], lanes: frozenset[int]) -> None:
        """Let go of these deliveries, which are of these lanes, and of what the lanes wait for."""
        for position in positions:
            self.held.pop(position, None)
        self._ready = deque(delivery for delivery in self._ready if delivery.position not in positions)
        for lane in lanes:
            waiting = self._waiting.pop(lane, ())
            self._blocks.pop(lane, None)
            for delivery in waiting:  # its deletion, if a page has brought that already
                if delivery.position not in positions:
                    self.add(delivery)
