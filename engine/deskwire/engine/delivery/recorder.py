"""Puts what came of attempts into the store: all that has gathered in one job, again until it succeeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from deskwire.engine.delivery.schedule import Ended, Retry
from deskwire.engine.errors import Unavailable
from deskwire.engine.ports import Attempt, Delivery, Store, Transaction

log: Final = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Result:
    """What follows from an attempt, or from none if the delivery ended without one, `at` that time (ms)."""

    delivery: Delivery
    attempt: Attempt | None
    verdict: Retry | Ended
    at: int

    def record(self, tx: Transaction) -> bool:
        """Store it; False if the delivery no longer waits for it."""
        reason = self.verdict.reason if isinstance(self.verdict, Ended) else None
        if self.attempt is None:
            assert isinstance(self.verdict, Ended)
            return tx.end_delivery(self.delivery, self.verdict.status, reason or "", self.at)
        match self.verdict:
            case Retry(due_at):
                return tx.record_attempt(self.delivery, self.attempt, "pending", due_at, None)
            case Ended(status):
                return tx.record_attempt(self.delivery, self.attempt, status, self.at, reason)


class Recorder:
    """Results on their way to the store. How many there can be is bounded by what an outbox holds.

    Args:
        pause_s: how long to wait before a store that refused is tried again.
    """

    def __init__(self, store: Store, pause_s: float) -> None:
        self._store = store
        self._pause_s = pause_s
        self._results: list[Result] = []
        self._bell = trio.Event()
        self._closed = False

    def add(self, result: Result) -> None:
        """Hand in a result."""
        self._results.append(result)
        self._bell.set()

    def close(self) -> None:
        """No more results are coming."""
        self._closed = True
        self._bell.set()

    async def next(self) -> Sequence[tuple[Result, bool]]:
        """What was recorded next, each with whether its delivery still waited for it; empty at the end.

        Cancellation: what was taken may or may not be stored; if it is not, its row is still pending.
        """
        while not self._results:
            if self._closed:
                return ()
            self._bell = trio.Event()
            await self._bell.wait()
        results, self._results = self._results, []
        while True:
            try:
                kept = await self._store.write(lambda tx: [result.record(tx) for result in results])
            except Unavailable as refusal:
                log.warning("delivery.not_recorded", attempts=len(results), reason=str(refusal))
                await trio.sleep(self._pause_s)
            else:
                return list(zip(results, kept, strict=True))
