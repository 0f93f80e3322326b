"""Typing events on their way to one endpoint: from memory alone, with slots of their own (decisions 4; ADR 9).

They follow the rules of stored deliveries: signature, headers, ids, retries, the order of first attempts in
a conversation. What is different is that nothing waits for them. They have their own requests and
connections, so no stored delivery comes later or goes for them; and when too many wait, the oldest is
dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog
import trio

from deskwire.engine.core.failure import contained
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.isolation import broken
from deskwire.engine.webhooks.retry.breaker import Breaker
from deskwire.engine.webhooks.retry.outcome import verdict
from deskwire.engine.webhooks.retry.schedule import Ended, Retry
from deskwire.engine.webhooks.signature import SigningSecrets
from deskwire.engine.webhooks.waiting import wait_for_work

log: Final = structlog.get_logger(__name__)

SLOTS: Final = 4
"""Requests under way to one endpoint, besides those of stored deliveries. Ours: ADR 9."""

MEMORY: Final = 256
"""Deliveries that wait for one endpoint, those between two attempts included. Ours: ADR 9."""

_CLOSE_S: Final = 1.0
"""Bound for closing connections at the end; it needs no network, so this is only for bugs."""


@dataclass(frozen=True, slots=True)
class EphemeralDelivery:
    """One typing event on its way to one endpoint; see `ports.Delivery`.

    Args:
        number: grows with each that is made for the endpoint.
    """

    number: int
    id: str
    event: EphemeralEvent
    created_at: int
    due_at: int
    attempts: int = 0
    planned_from: int | None = None
    failing_since: int | None = None
    previous: None = None  # typing has no sequence (contract 2.10)


class EphemeralQueue:
    """Which of them may start now; no waiting, no I/O.

    Args:
        memory: how many may wait.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._waiting: dict[int, EphemeralDelivery] = {}
        self._under_way: dict[int, EphemeralDelivery] = {}

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def put(self, delivery: EphemeralDelivery) -> bool:
        """Let a delivery wait for its first attempt, or its next; False if the oldest had to go for it."""
        self._under_way.pop(delivery.number, None)
        self._waiting[delivery.number] = delivery
        if len(self._waiting) <= self._memory:
            return True
        del self._waiting[min(self._waiting)]
        return False

    def take_next(self, now: int) -> EphemeralDelivery | None:
        """The oldest that may start, if any, at `now` (ms); `ended` or `retry` must follow."""
        found = next(self._startable(now), None)
        if found is not None:
            self._under_way[found.number] = self._waiting.pop(found.number)
        return found

    def next_due(self) -> int | None:
        """When the next retry is due, in milliseconds since the epoch; None if there is none."""
        return min((each.due_at for each in self._waiting.values() if each.attempts), default=None)

    def ended(self, delivery: EphemeralDelivery) -> None:
        """The delivery is over."""
        self._under_way.pop(delivery.number, None)

    def retry(self, delivery: EphemeralDelivery, again: Retry) -> bool:
        """Let the delivery wait for its next attempt; see `put`. One that was forgotten is over."""
        if delivery.number not in self._under_way:
            return True
        return self.put(
            replace(
                delivery,
                attempts=delivery.attempts + (not again.repeats),
                due_at=again.due_at,
                planned_from=again.planned_from,
                failing_since=again.failing_since,
            )
        )

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations; attempts under way may still end."""
        for held in (self._waiting, self._under_way):
            for number in [n for n, each in held.items() if each.event.conversation in conversations]:
                del held[number]

    def _startable(self, now: int) -> Iterator[EphemeralDelivery]:
        """In the order of their events; of each conversation one first attempt at a time."""
        busy = {each.event.conversation for each in self._under_way.values() if not each.attempts}
        for number in sorted(self._waiting):
            delivery = self._waiting[number]
            if delivery.due_at <= now if delivery.attempts else delivery.event.conversation not in busy:
                yield delivery


class EphemeralWorker:
    """Delivers typing events to one endpoint. `offer` and `forget` never wait; `run` does the work."""

    def __init__(self, endpoint: Endpoint, means: DeliveryContext, breaker: Breaker) -> None:
        self.endpoint = endpoint
        self.breaker: Final = breaker
        self._means = means
        self._box = EphemeralQueue()
        self._free = min(SLOTS, means.concurrency)
        self._client: Final = means.client(endpoint.url)
        self._signing: SigningSecrets | None = None
        self._bell = trio.Event()
        self._made = 0

    @property
    def held(self) -> int:
        """How many deliveries wait for an attempt."""
        return len(self._box)

    def offer(self, event: EphemeralEvent) -> None:
        """Take in an event that the endpoint wants."""
        self._made += 1
        now = self._means.clock()
        self._keep(self._box.put(EphemeralDelivery(self._made, new_id("dlv", now), event, now, now)))

    def change(self, endpoint: Endpoint) -> None:
        """See `EndpointWorker.change`."""
        self._signing = self._means.signing(endpoint)
        self.endpoint = endpoint

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations."""
        self._box.forget(conversations)

    async def run(self) -> None:
        """Deliver until cancelled.

        Raises SealBroken if the endpoint's secret can't be opened.

        Cancellation: at once, in mid-attempt too; what waits is gone.
        """
        self._signing = self._means.signing(self.endpoint)
        try:
            async with trio.open_nursery() as attempts:
                while True:
                    self._bell = trio.Event()
                    self._start(attempts)
                    await self._wait()
        finally:
            with trio.move_on_after(_CLOSE_S, shield=True):
                await self._client.aclose()

    def _start(self, attempts: trio.Nursery) -> None:
        while self._free and (delivery := self._box.take_next(self._means.clock())) is not None:
            self._free -= 1
            attempts.start_soon(self._attempt, delivery)

    async def _wait(self) -> None:
        """Return when there may be something to do; close connections that nobody has used for long."""
        due = self._box.next_due() if self._free else None
        due_s = float("inf") if due is None else max(0, due - self._means.clock()) / 1000
        working = self._free < min(SLOTS, self._means.concurrency)
        await wait_for_work(self._bell, due_s, self._client, working=working)

    async def _attempt(self, delivery: EphemeralDelivery) -> None:
        follows = await self._verdict(delivery)
        self._free += 1
        match follows:
            case Retry() as again:
                self._keep(self._box.retry(delivery, again))
            case Ended(status):
                self._box.ended(delivery)
                self._means.counters.typing_delivered += status == "delivered"
                self._means.counters.typing_dropped += status != "delivered"
                self._bell.set()

    async def _verdict(self, delivery: EphemeralDelivery) -> Retry | Ended:
        """Post it, unless its window has passed or the circuit does not let it through; what follows."""
        schedule, now = self._means.schedule, self._means.clock()
        late = schedule.too_late(delivery.created_at, now)
        if late is not None:
            return late
        if self.breaker.gate(now) == "hold":  # typing waits for nothing: not even for a probe
            return Ended("skipped")
        probe, succeeded_at = self.breaker.begin(now), self.breaker.succeeded_at
        try:
            attempt = await self._post(delivery, now)
        finally:
            if probe:
                self.breaker.probe_over()
        fraction = self._means.rng.random()
        return verdict(
            attempt,
            delivery,
            schedule,
            self.breaker,
            fraction=fraction,
            succeeded_at=succeeded_at,
            probe=probe,
        )

    async def _post(self, delivery: EphemeralDelivery, now: int) -> Attempt:
        assert self._signing is not None, "the courier runs"
        began, attempt = trio.current_time(), None
        with contained(partial(self._tell, delivery)):
            attempt = await self._client.post(delivery, self._signing.at(now))
        attempt = attempt or broken(delivery.attempts + 1, now, began)
        counters = self._means.counters
        counters.typing_attempts += 1
        counters.typing_paused_attempts += attempt.wait_ms is not None
        counters.typing_failed_attempts += attempt.error is not None and attempt.wait_ms is None
        return attempt

    def _tell(self, delivery: EphemeralDelivery, failure: BaseException) -> None:
        log.error("delivery.typing_failed", endpoint=self.endpoint.id, delivery=delivery.id, exc_info=failure)

    def _keep(self, fitted: bool) -> None:
        self._means.counters.typing_dropped += not fitted
        self._bell.set()
