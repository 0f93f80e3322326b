"""A simulated endpoint with real outbox, circuit breaker and schedule.

Receiver and time are simulated, so that an hour takes a moment.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, nsmallest
from itertools import islice

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt, Delivery
from deskwire.engine.webhooks.queue.backlog import Backlog
from deskwire.engine.webhooks.queue.limits import AttemptSlots
from deskwire.engine.webhooks.queue.outbox import Outbox
from deskwire.engine.webhooks.queue.retries import Retries
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import DEFAULT_RETRY_DELAYS_S, DeliveryEnd, Retry, Schedule
from deskwire.engine.webhooks.retry.verdict import verdict
from tests.support.sockets.receivers import EPOCH_MS, delivery

SCHEDULE = Schedule(DEFAULT_RETRY_DELAYS_S, 0.2, 86_400.0)

# Returns the seconds of a `Retry-After` for a delivery, None for a success; at a time in seconds.
Answers = Callable[[Delivery, float], int | None]


@dataclass(frozen=True)
class Made:
    """An event created at a time in seconds."""

    at: float
    number: int
    conversation: int


@dataclass
class Course:
    """Results of the events, by number; times in seconds.

    Attributes:
        arrived, ended: when each was accepted, and when each was dropped.
        attempts: when each was sent.
    """

    arrived: dict[int, float] = field(default_factory=dict)
    ended: dict[int, float] = field(default_factory=dict)
    missed: set[int] = field(default_factory=set)
    attempts: dict[int, list[float]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)

    def requests_until(self, at: float) -> int:
        """Return the number of requests sent before a time."""
        return sum(each < at for times in self.attempts.values() for each in times)


class Simulation:
    """One endpoint with a receiver, from the first event on."""

    def __init__(
        self, answers: Answers, *, latency_s: float = 0.02, slots: int = 16, memory: int = 1000, seed: int = 1
    ) -> None:
        self.answers = answers
        self.latency_s = latency_s
        self.random = random.Random(seed)
        self.breaker = CircuitBreaker(CLOSED)
        self.memory = memory
        self.outbox = self._new_outbox()
        self._slot_count = slots
        self.slots = AttemptSlots(slots, 96)
        self._life = 0
        self.rows: dict[int, Delivery] = {}
        self.course = Course()
        self.now = 0.0
        self._moves: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._woken: set[int] = set()

    def _new_outbox(self) -> Outbox:
        retries = Retries(self.memory, SCHEDULE.ahead_max_ms)
        return Outbox(self.memory, 4, retries, Backlog(10_000, 8, self.memory))

    def _restart(self) -> None:
        """Continue from the stored state; running attempts are lost."""
        self._life += 1
        self.breaker = CircuitBreaker(self.breaker.circuit, succeeded_at=self.breaker.succeeded_at)
        self.outbox = self._new_outbox()
        self.slots = AttemptSlots(self._slot_count, 96)

    def run(self, events: Sequence[Made], until: float, *, restarts: Sequence[float] = ()) -> Course:
        """Run until this time, with a restart at each of these times."""
        for at in restarts:
            self._plan(at, self._restart)
        for event in events:
            self._plan(event.at, lambda event=event: self._offer(event))  # type: ignore[misc]
        self._read()
        self._tick()
        while self._moves and self._moves[0][0] <= until:
            self.now, _, move = heappop(self._moves)
            move()
            self._read()
            self._start()
        return self.course

    def _plan(self, at: float, move: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._moves, (at, self._count, move))

    def _tick(self) -> None:
        """Look for work each second while there are deliveries to send."""
        if self.rows or self._moves:
            self._plan(self.now + 1, self._tick)

    @property
    def wall(self) -> int:
        return EPOCH_MS + round(self.now * 1000)

    def _offer(self, event: Made) -> None:
        made = delivery(event.number, event.conversation, due_at=self.wall)
        made = replace(made, created_at=self.wall)
        self.rows[made.position] = made
        self.outbox.offer(made)

    def _read(self) -> None:
        while (batch := self.outbox.wants_batch(self.wall)) is not None:
            found: list[Delivery] = []
            if batch.part == "retries":
                rows = (each for each in self.rows.values() if each.planned_from)
                found = nsmallest(batch.limit, rows, key=lambda row: row.due_at)
            elif batch.part == "live":  # rows are ordered by position
                rows = (each for each in self.rows.values() if batch.after < each.position <= batch.upto)
                found = [*islice(rows, batch.limit)]
            self.outbox.end_batch(batch, found, self.wall, more=len(found) == batch.limit)

    def _start(self) -> None:
        self.slots.relieve(self.now)
        while self._may_start():
            taken = self.outbox.take_next(self.wall, self.now)
            if taken is None:
                break
            self.slots.begin(taken.position, self.now)
            self._begin(taken)
        due = self.outbox.next_due()
        if self.breaker.gate(self.wall) != "go":
            due = self.breaker.opens_at(self.wall)
        if due is not None and due > self.wall and due not in self._woken:
            self._woken.add(due)
            self._plan((due - EPOCH_MS) / 1000, lambda: None)

    def _may_start(self) -> bool:
        self.slots.narrow(self.breaker.room)
        return self.slots.free and self.breaker.gate(self.wall) == "go"

    def _begin(self, taken: Delivery) -> None:
        began, wait_s = self.now, self.answers(taken, self.now)
        self.course.attempts.setdefault(taken.position, []).append(began)
        latency_s = self.latency_s * self.random.uniform(0.5, 1.5)
        life = self._life

        def end() -> None:
            if life == self._life:
                self._end(taken, began, wait_s)

        self._plan(began + latency_s, end)

    def _end(self, taken: Delivery, began: float, wait_s: int | None) -> None:
        at, number = EPOCH_MS + round(began * 1000), taken.attempts + 1
        took = self.wall - at
        attempt = Attempt(number, at, took, 204, None, b"")
        if wait_s is not None:
            attempt = Attempt(number, at, took, 429, "status 429", b"", wait_ms=wait_s * 1000)
        succeeded_at = self.breaker.succeeded_at
        follows = verdict(
            attempt,
            taken,
            SCHEDULE,
            self.breaker,
            fraction=self.random.random(),
            succeeded_at=succeeded_at,
            probe=False,
        )
        self.slots.end(taken.position)
        match follows:
            case Retry():
                planned = self.rows[taken.position] = follows.applied_to(taken)
                if follows.blocks_conversation:
                    self.outbox.repeat(planned, self.wall)
                else:
                    self.outbox.attempt_ended(taken)
                    self.outbox.retry(planned, self.wall)
            case DeliveryEnd(status):
                self.outbox.attempt_ended(taken)
                self.outbox.end(taken)
                del self.rows[taken.position]
                if status == "delivered":
                    self.course.arrived[taken.position] = self.now
                    self.course.order.append(taken.position)
                else:
                    self.course.ended[taken.position] = self.now
                    if follows.missed:
                        self.course.missed.add(taken.position)
