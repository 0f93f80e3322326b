"""Typing events on their way to one endpoint: from memory alone, with slots of their own (decisions 4; ADR 9).

They follow the rules of stored deliveries: signature, headers, ids, retries, the order of first attempts in
a conversation. The difference is that nothing waits for them. They have their own requests and connections,
so no stored delivery is late or lost because of them; and when too many wait, the oldest is dropped.
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

SLOTS_MAX: Final = 4
"""Requests under way to one endpoint, besides those of stored deliveries. Ours: ADR 9."""

QUEUE_MAX: Final = 256
"""Deliveries that wait for one endpoint, those between two attempts included. Ours: ADR 9."""


class EphemeralDelivery(Struct, frozen=True):
    """One typing event on its way to one endpoint; see `delivery.Delivery`.

    Args:
        number: its place in the order of the endpoint's deliveries.
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
    previous: None = None  # typing has no sequence (contract 2.10)

    @property
    def ordering_key(self) -> int:
        """The conversation."""
        return self.event.conversation


class EphemeralQueue:
    """The ephemeral deliveries of one endpoint; it says which may start now. No waiting, no I/O.

    Args:
        memory: the number of deliveries that may wait.
    """

    def __init__(self, memory: int = QUEUE_MAX) -> None:
        self._memory = memory
        self._waiting: dict[int, EphemeralDelivery] = {}
        self._under_way: dict[int, EphemeralDelivery] = {}

    def __len__(self) -> int:
        """Return the number of deliveries that wait."""
        return len(self._waiting)

    def put(self, delivery: EphemeralDelivery) -> bool:
        """Let a delivery wait for its first or its next attempt; return False if the oldest one was dropped for it."""
        self._under_way.pop(delivery.number, None)
        self._waiting[delivery.number] = delivery
        if len(self._waiting) <= self._memory:
            return True
        del self._waiting[min(self._waiting)]
        return False

    def take_next(self, now: int) -> EphemeralDelivery | None:
        """Return the oldest delivery that may start at `now` (ms), if any; `ended` or `retry` must follow."""
        delivery = next(self._startable(now), None)
        if delivery is not None:
            self._under_way[delivery.number] = self._waiting.pop(delivery.number)
        return delivery

    def next_due(self) -> int | None:
        """Return the time at which the next retry is due, in milliseconds since the epoch; None if there is none."""
        return min(
            (delivery.due_at for delivery in self._waiting.values() if delivery.attempts), default=None
        )

    def ended(self, delivery: EphemeralDelivery) -> None:
        """Take note that a delivery is over."""
        self._under_way.pop(delivery.number, None)

    def retry(self, delivery: EphemeralDelivery, again: Retry) -> bool:
        """Let a delivery wait for its next attempt; see `put`. One that was forgotten is over."""
        return delivery.number not in self._under_way or self.put(again.applied_to(delivery))

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations; attempts of which something was sent may still end."""
        for held in (self._waiting, self._under_way):
            for delivery in [each for each in held.values() if each.event.conversation in conversations]:
                del held[delivery.number]

    def is_erased(self, delivery: EphemeralDelivery) -> bool:
        """Tell whether a delivery that was taken is of a conversation that was erased since."""
        return delivery.number not in self._under_way

    def _startable(self, now: int) -> Iterator[EphemeralDelivery]:
        """Yield the deliveries that may start, oldest first; of each conversation one first attempt at a time."""
        busy = {each.event.conversation for each in self._under_way.values() if not each.attempts}
        for number in sorted(self._waiting):
            delivery = self._waiting[number]
            if delivery.due_at <= now if delivery.attempts else delivery.event.conversation not in busy:
                yield delivery


class EphemeralWorker(BaseWorker):
    """The worker that delivers typing events to one endpoint. `offer` and `forget` never wait.

    `run`, when cancelled, ends at once, in mid-attempt too; what waits is gone.
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
        """Take in an event that the endpoint wants."""
        self._offered += 1
        now = self._context.clock()
        self._count_dropped(
            self._queue.put(EphemeralDelivery(self._offered, new_id("dlv", now), event, now, now))
        )

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations."""
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
        """Make an attempt, unless the delivery is too old or the circuit holds it back; return what follows."""
        now = self._context.clock()
        too_late = self._context.schedule.too_late(delivery.created_at, now)
        if too_late is not None:
            return too_late
        crowded = self._slots - self._free > self.breaker.room
        if crowded or self.breaker.gate(now) == "hold":  # typing waits for nothing: not even for a probe
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
        return DeliveryEnd("skipped") if paused else follows  # typing waits for nothing

    def _count_dropped(self, fitted: bool) -> None:
        self._context.counters.typing_dropped += not fitted
        self._wakeup.set()


_EPHEMERAL_TYPES: Final = frozenset(kind.type for kind in CATALOG.values() if kind.opt_in)


class EphemeralDispatcher:
    """Delivers typing events to the endpoints that it was given; a part of `Dispatcher`."""

    def __init__(self, context: DeliveryContext) -> None:
        self._context = context
        self._workers: dict[int, SupervisedWorker[EphemeralWorker]] = {}
        self._projects: dict[int, dict[int, SupervisedWorker[EphemeralWorker]]] = {}

    @property
    def held(self) -> int:
        """The number of deliveries that wait, over all endpoints."""
        return sum(supervised.worker.held for supervised in self._workers.values())

    @property
    def projects(self) -> Collection[int]:
        """The projects with an endpoint that lists such a type, by their storage keys."""
        return [project for project, workers in self._projects.items() if workers]

    def add(self, endpoint: Endpoint, breaker: CircuitBreaker, nursery: trio.Nursery) -> None:
        """Deliver to an endpoint if it lists typing, and drop what waits for it as it was before."""
        self.remove(endpoint.rowid)
        if not endpoint.events & _EPHEMERAL_TYPES:
            return
        supervised = SupervisedWorker(EphemeralWorker(endpoint, self._context, breaker))
        self._workers[endpoint.rowid] = supervised
        self._projects.setdefault(endpoint.project, {})[endpoint.rowid] = supervised
        supervised.start(nursery)

    def change(self, endpoint: Endpoint, breaker: CircuitBreaker, nursery: trio.Nursery) -> None:
        """Go on with an endpoint's changed fields; its URL must be the same."""
        supervised = self._workers.get(endpoint.rowid)
        if supervised is None or not endpoint.events & _EPHEMERAL_TYPES:
            self.add(endpoint, breaker, nursery)
        else:
            supervised.worker.change(endpoint)

    def remove(self, endpoint_rowid: int) -> None:
        """Stop delivering to an endpoint at once."""
        supervised = self._workers.pop(endpoint_rowid, None)
        if supervised is not None:
            del self._projects[supervised.worker.endpoint.project][endpoint_rowid]
            supervised.cancel()

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations."""
        for supervised in self._workers.values():
            supervised.worker.forget(conversations)

    def offer(self, event: EphemeralEvent) -> None:
        """Give an event to the endpoints of its project that list its type."""
        for supervised in self._projects.get(event.project, {}).values():
            if matches(supervised.worker.endpoint.events, event.type):
                supervised.worker.offer(event)

    def clear(self) -> None:
        """Stop delivering to all endpoints."""
        for endpoint_rowid in list(self._workers):
            self.remove(endpoint_rowid)
