"""Recorder of attempt results: collects a batch and stores it, with retries.

If the process is killed before a result is stored, the delivery is sent again. At-least-once delivery allows
this (contract 6.4.4, ADR 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog
import trio
from msgspec import Struct

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.webhooks.delivery import Attempt, Delivery, DeliveryStatus
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ports import DeliveryReader, DeliveryTransaction
from deskwire.engine.webhooks.publish import HealthTransaction, save_circuit
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit, CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import DeliveryEnd, Retry

log: Final = structlog.get_logger(__name__)

# Results are collected for this long, because one commit costs more than one delivery.
BATCH_INTERVAL_S: Final = 0.02

# With this many results, the batch is stored at once.
_BATCH_SIZE: Final = 32

# Up to this many results are written without a thread (`InlineJob`). It leaves room for results that arrive
# during a commit.
_BRIEF_MAX: Final = 2 * _BATCH_SIZE

# Maximum results per commit if nodes share the store. Its batches write all of them in two exchanges, without
# a thread.
_SHARED_BATCH_SIZE: Final = 128


class AttemptResult(Struct, frozen=True):
    """The result of an attempt at time `at` (ms).

    `attempt` is None if the delivery ended without an attempt.
    """

    delivery: Delivery
    attempt: Attempt | None
    verdict: Retry | DeliveryEnd
    at: int

    @property
    def delivered(self) -> bool:
        """True if the receiver has accepted the delivery."""
        return isinstance(self.verdict, DeliveryEnd) and self.verdict.status == "delivered"

    def record(self, tx: DeliveryTransaction) -> bool:
        """Store the result; return False if the delivery no longer waits for it."""
        match self.verdict, self.attempt:
            case DeliveryEnd(status, reason), None:
                return tx.end_delivery(self.delivery, status, reason or "", self.at)
            case DeliveryEnd(status, reason, missed), Attempt() as attempt:
                return tx.record_end(self.delivery, attempt, status, reason, missed=missed)
            case Retry(), Attempt() as attempt:
                return tx.record_retry(self.planned(), attempt)
        raise AssertionError("a retry follows an attempt")

    def planned(self) -> Delivery:
        """Return the delivery with its next attempt. Only for a `Retry`."""
        assert isinstance(self.verdict, Retry)
        return self.verdict.applied_to(self.delivery)


class Recorded(Struct, frozen=True):
    """Results stored in one commit.

    Args:
        results: each with whether its delivery was still waiting for it.
        released: position of the last delivery that the circuit held, if the commit stored that the circuit
            is closed.
    """

    results: Sequence[tuple[AttemptResult, bool]]
    released: int | None


class Superseded(Exception):
    """Another node has taken over the endpoint; nothing was stored."""


class Recorder:
    """Stores the results of one endpoint's attempts.

    The outbox limits how many deliveries are running, and so the results in memory.

    Args:
        endpoint: the endpoint as it was when the worker started.
        clock: gives the time of a circuit's transitions.
        breaker: its circuit is stored with the results, or alone if only the circuit has changed.
        store_retry_delay_s: delay before a failed commit is retried.
        generation: generation of the endpoint's lease, None without a lease.
        batch_size: with this many results, the batch is stored at once.
    """

    def __init__(
        self,
        store: Store[DeliveryReader, HealthTransaction],
        endpoint: Endpoint,
        breaker: CircuitBreaker,
        store_retry_delay_s: float,
        clock: Clock,
        generation: int | None = None,
        batch_size: int = _BATCH_SIZE,
    ) -> None:
        self._generation = generation
        self._batch_size = min(batch_size, _BATCH_SIZE)
        self._store = store
        self._endpoint = endpoint
        self._breaker = breaker
        self._pause_s = store_retry_delay_s
        self._clock = clock
        self._results: list[AttemptResult] = []
        self._wakeup = trio.Event()
        self._batch_full = trio.Event()
        self._closed = False

    def add(self, result: AttemptResult) -> None:
        """Add a result to the next batch."""
        self._results.append(result)
        if len(self._results) == 1:
            self._wakeup.set()
        if len(self._results) >= self._batch_size:
            self._batch_full.set()

    def wake(self) -> None:
        """Check whether the circuit has changed. A closed circuit is stored at once."""
        self._wakeup.set()
        if self._breaker.release_due:
            self._batch_full.set()

    def close(self) -> None:
        """Signal that no more results will be added."""
        self._closed = True
        self._wakeup.set()
        self._batch_full.set()

    async def next(self) -> Recorded | None:
        """Store the next batch and return it; None at the end. Raises Superseded.

        Cancellation: the batch may or may not be stored. If it is not, its rows are still pending.
        """
        while not self._results and self._breaker.unsaved is None:
            if self._closed:
                return None
            self._wakeup = trio.Event()
            await self._wakeup.wait()
        with trio.move_on_after(BATCH_INTERVAL_S):
            await self._batch_full.wait()
        if not self._closed:
            self._batch_full = trio.Event()
        results = self._taken()
        while True:
            circuit, released = self._breaker.unsaved, self._breaker.release_due
            try:
                job = self._job(results, circuit, released)
                brief = self._generation is not None or len(results) <= _BRIEF_MAX
                kept, upto = await self._store.write(InlineJob(job) if brief else job)
            except Unavailable as refusal:
                log.warning("delivery.not_recorded", attempts=len(results), reason=str(refusal))
                await trio.sleep(self._pause_s)
            else:
                if circuit is not None:
                    self._breaker.saved(circuit, upto)
                return Recorded(list(zip(results, kept, strict=True)), upto)

    def _taken(self) -> Sequence[AttemptResult]:
        """Take the next batch of results; the others follow without a delay."""
        count = len(self._results) if self._generation is None else _SHARED_BATCH_SIZE
        taken, self._results = self._results[:count], self._results[count:]
        if self._results:
            self._batch_full.set()
        return taken

    def _job(
        self, results: Sequence[AttemptResult], circuit: Circuit | None, released: bool
    ) -> Callable[[HealthTransaction], tuple[Sequence[bool], int | None]]:
        succeeded_at, release_upto = self._breaker.succeeded_at, self._breaker.release_upto
        endpoint, generation, before = self._endpoint, self._generation, self._breaker.stored
        now, deliveries = self._clock(), [result.delivery for result in results]

        def record(tx: HealthTransaction) -> tuple[Sequence[bool], int | None]:
            if generation is not None:
                tx.prefetch_results(endpoint.rowid, deliveries)
                if tx.endpoint_lease_generation(endpoint.rowid) != generation:
                    raise Superseded
            kept = [result.record(tx) for result in results]
            last = _last_ended(results, kept)
            if last is not None:
                tx.record_last_delivery(endpoint.rowid, *last, succeeded_at)
            if circuit is not None:
                save_circuit(tx, endpoint, before, circuit, now)
            return kept, tx.release_held(endpoint.rowid, release_upto) if released else None

        return record


def _last_ended(results: Sequence[AttemptResult], kept: Sequence[bool]) -> tuple[int, DeliveryStatus] | None:
    for result, was_kept in zip(reversed(results), reversed(kept), strict=True):
        if was_kept and isinstance(result.verdict, DeliveryEnd):
            return result.at, result.verdict.status
    return None
