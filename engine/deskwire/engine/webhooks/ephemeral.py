"""Delivery of typing events, from memory only (decisions 4; ADR 5).

Typing events follow the rules of stored deliveries: signature, headers, ids, retries, order of first attempts
within a conversation. They use their own requests and connections, so that they cannot delay or lose a stored
delivery. Nothing waits for a typing event, and if too many wait, the oldest is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final, assert_never

import trio
from msgspec import Struct

from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import CATALOG, EphemeralEvent, matches
from deskwire.engine.webhooks.base_worker import BaseWorker, SupervisedWorker
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import DeliveryEnd, Retry

# Concurrent requests to one endpoint, in addition to those for stored deliveries. Our choice: ADR 5.
SLOTS_MAX: Final = 4

# Deliveries that wait for one endpoint, including those between two attempts. Our choice: ADR 5.
QUEUE_MAX: Final = 256


class EphemeralDelivery(Struct, frozen=True):
    """One typing event to be sent to one endpoint; see `delivery.Delivery`.

    Args:
        number: its position in the order of the endpoint's typing events.
    """

    number: int
    id: str
    event: EphemeralEvent
    created_at: int
    due_at: int
    attempts: int = 0
    planned_from: int | None = None
    failing_since: int | None = None
    refusals: int = 0
    previous: None = None  # typing events have no sequence (contract 2.10)

    @property
    def ordering_key(self) -> int:
        """The conversation."""
        return self.event.conversation


class EphemeralQueue:
    """Queue of one endpoint's typing events, without waiting or I/O.

    Args:
        memory: maximum number of waiting deliveries.
    """

    def __init__(self, memory: int = QUEUE_MAX) -> None:
        self._memory = memory
        self._waiting: dict[int, EphemeralDelivery] = {}
        self._under_way: dict[int, EphemeralDelivery] = {}

    def __len__(self) -> int:
        """Return the number of waiting deliveries."""
        return len(self._waiting)

    def put(self, delivery: EphemeralDelivery) -> bool:
        """Enqueue a delivery; return False if the oldest one was evicted for it."""
        self._under_way.pop(delivery.number, None)
        self._waiting[delivery.number] = delivery
        if len(self._waiting) <= self._memory:
            return True
        del self._waiting[min(self._waiting)]
        return False

    def take_next(self, now: int) -> EphemeralDelivery | None:
        """Return the oldest delivery that may start at `now` (ms), if any.

        Call `ended` or `retry` afterwards.
        """
        delivery = next(self._startable(now), None)
        if delivery is not None:
            self._under_way[delivery.number] = self._waiting.pop(delivery.number)
        return delivery

    def next_due(self) -> int | None:
        """Return when the next retry is due, in milliseconds since the epoch, or None."""
        return min(
            (delivery.due_at for delivery in self._waiting.values() if delivery.attempts), default=None
        )

    def ended(self, delivery: EphemeralDelivery) -> None:
        """Remove a delivery that has ended."""
        self._under_way.pop(delivery.number, None)

    def retry(self, delivery: EphemeralDelivery, again: Retry) -> bool:
        """Enqueue a delivery for its next attempt; see `put`.

        An erased delivery is ignored.
        """
        return delivery.number not in self._under_way or self.put(again.applied_to(delivery))

    def forget(self, conversations: frozenset[int]) -> None:
        """Remove deliveries of erased conversations.

        Attempts that have sent bytes may finish.
        """
        for held in (self._waiting, self._under_way):
            for delivery in [each for each in held.values() if each.event.conversation in conversations]:
                del held[delivery.number]

    def is_erased(self, delivery: EphemeralDelivery) -> bool:
        """Return whether the conversation of a running delivery was erased."""
        return delivery.number not in self._under_way

    def _startable(self, now: int) -> Iterator[EphemeralDelivery]:
        """Yield the deliveries that may start, oldest first.

        Each conversation has at most one first attempt running.
        """
        busy = {each.event.conversation for each in self._under_way.values() if not each.attempts}
        for number in sorted(self._waiting):
            delivery = self._waiting[number]
            if delivery.due_at <= now if delivery.attempts else delivery.event.conversation not in busy:
                yield delivery


class EphemeralWorker(BaseWorker):
    """Sends typing events to one endpoint. `offer` and `forget` never wait.

    `run`, when cancelled, cancels running attempts and drops the queue.
    """

    _failure_event = "delivery.typing_failed"

    def __init__(self, endpoint: Endpoint, context: DeliveryContext, breaker: CircuitBreaker) -> None:
        super().__init__(endpoint, context, breaker)
        self._queue = EphemeralQueue()
        self._slots = self._free = min(SLOTS_MAX, context.concurrency)
        self._offered = 0

    @property
    def held(self) -> int:
        """The number of deliveries that wait for an attempt."""
        return len(self._queue)

    def offer(self, event: EphemeralEvent) -> None:
        """Enqueue an event that the endpoint lists."""
        self._offered += 1
        now = self._context.clock()
        self._count_dropped(
            self._queue.put(EphemeralDelivery(self._offered, new_id("dlv", now), event, now, now))
        )

    def forget(self, conversations: frozenset[int]) -> None:
        """Stop sending events of erased conversations."""
        self._queue.forget(conversations)

    async def _serve(self) -> None:
        async with trio.open_nursery() as attempts:
            while True:
                self._wakeup = trio.Event()
                self._start(attempts)
                await self._wait(self._due_s(), working=lambda: self._free < self._slots)

    def _start(self, attempts: trio.Nursery) -> None:
        while self._free and (delivery := self._queue.take_next(self._context.clock())) is not None:
            self._free -= 1
            attempts.start_soon(self._work, delivery)

    def _due_s(self) -> float:
        due = self._queue.next_due() if self._free else None
        return float("inf") if due is None else max(0, due - self._context.clock()) / 1000

    async def _work(self, delivery: EphemeralDelivery) -> None:
        follows = await self._send(delivery)
        self._free += 1
        match follows:
            case Retry() as again:
                self._count_dropped(self._queue.retry(delivery, again))
            case DeliveryEnd(status):
                self._queue.ended(delivery)
                self._context.counters.typing_delivered += status == "delivered"
                self._context.counters.typing_dropped += status != "delivered"
                self._wakeup.set()
            case _:
                assert_never(follows)

    async def _send(self, delivery: EphemeralDelivery) -> Retry | DeliveryEnd:
        """Make an attempt and return the verdict.

        A delivery that is too old, or that the circuit would hold, is skipped.
        """
        now = self._context.clock()
        too_late = self._context.schedule.too_late(delivery.created_at, now)
        if too_late is not None:
            return too_late
        crowded = self._slots - self._free > self.breaker.room
        # A typing event is skipped rather than held, even for a probe.
        if crowded or self.breaker.gate(now) == "hold":
            return DeliveryEnd("skipped")
        erased = partial(self._queue.is_erased, delivery)
        made = await self._attempt(lambda: delivery, erased, probe=self.breaker.begin(now))
        if made is None:
            return DeliveryEnd("skipped")
        attempt, follows = made
        counters = self._context.counters
        counters.typing_attempts += 1
        paused = attempt.wait_ms is not None
        counters.typing_paused_attempts += paused
        counters.typing_failed_attempts += attempt.error is not None and not paused
        return DeliveryEnd("skipped") if paused else follows  # a typing event is not worth a pause

    def _count_dropped(self, fitted: bool) -> None:
        self._context.counters.typing_dropped += not fitted
        self._wakeup.set()


_EPHEMERAL_TYPES: Final = frozenset(kind.type for kind in CATALOG.values() if kind.opt_in)


class EphemeralDispatcher:
    """Workers for typing events, one for each endpoint that lists them.

    It is a part of `Dispatcher`.
    """

    def __init__(self, context: DeliveryContext) -> None:
        self._context = context
        self._workers: dict[int, SupervisedWorker[EphemeralWorker]] = {}
        self._projects: dict[int, dict[int, SupervisedWorker[EphemeralWorker]]] = {}

    @property
    def held(self) -> int:
        """The number of waiting deliveries at all endpoints."""
        return sum(supervised.worker.held for supervised in self._workers.values())

    @property
    def projects(self) -> Collection[int]:
        """Projects with an endpoint that lists typing events, by storage key."""
        return [project for project, workers in self._projects.items() if workers]

    def add(self, endpoint: Endpoint, breaker: CircuitBreaker, nursery: trio.Nursery) -> None:
        """Start to deliver to an endpoint if it lists typing events.

        Events that wait for its previous worker are dropped.
        """
        self.remove(endpoint.rowid)
        if not endpoint.events & _EPHEMERAL_TYPES:
            return
        supervised = SupervisedWorker(EphemeralWorker(endpoint, self._context, breaker))
        self._workers[endpoint.rowid] = supervised
        self._projects.setdefault(endpoint.project, {})[endpoint.rowid] = supervised
        supervised.start(nursery)

    def change(self, endpoint: Endpoint, breaker: CircuitBreaker, nursery: trio.Nursery) -> None:
        """Apply an endpoint's changed fields; its URL must be the same."""
        supervised = self._workers.get(endpoint.rowid)
        if supervised is None or not endpoint.events & _EPHEMERAL_TYPES:
            self.add(endpoint, breaker, nursery)
        else:
            supervised.worker.change(endpoint)

    def remove(self, endpoint_rowid: int) -> None:
        """Stop deliveries to an endpoint at once."""
        supervised = self._workers.pop(endpoint_rowid, None)
        if supervised is not None:
            del self._projects[supervised.worker.endpoint.project][endpoint_rowid]
            supervised.cancel()

    def forget(self, conversations: frozenset[int]) -> None:
        """Stop sending events of erased conversations."""
        for supervised in self._workers.values():
            supervised.worker.forget(conversations)

    def offer(self, event: EphemeralEvent) -> None:
        """Enqueue an event at the endpoints of its project that list its type."""
        for supervised in self._projects.get(event.project, {}).values():
            if matches(supervised.worker.endpoint.events, event.type):
                supervised.worker.offer(event)

    def clear(self) -> None:
        """Stop deliveries to all endpoints."""
        for endpoint_rowid in list(self._workers):
            self.remove(endpoint_rowid)
