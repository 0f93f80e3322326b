"""Lets go of what has left its window: events, finished deliveries, kept answers, old secrets (decisions 8).

In small batches with room between them, so that no commit waits long behind one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
import trio

from deskwire.engine.clock import Clock
from deskwire.engine.errors import Unavailable
from deskwire.engine.ports import Store, Transaction

log: Final = structlog.get_logger(__name__)

BATCH: Final = 500
"""Rows removed in one commit; about a millisecond of the writer's time."""


@dataclass(slots=True)
class Pruned:
    """How many rows were let go of since the start, and when (ms) that was last done; None for never."""

    rows: dict[str, int] = field(default_factory=lambda: {"events": 0, "deliveries": 0, "answers": 0})
    done_at: int | None = None


async def run_retention(
    store: Store,
    clock: Clock,
    *,
    interval_s: float,
    event_window_s: float,
    delivery_log_s: float,
    idempotency_s: float,
    pruned: Pruned,
) -> None:
    """Prune at the start and then every `interval_s` seconds, until cancelled; counted in `pruned`."""
    while True:
        now = clock()
        try:
            await _prune(store, _events(int(now - event_window_s * 1000), now), pruned, "events")
            await _prune(store, _deliveries(int(now - delivery_log_s * 1000)), pruned, "deliveries")
            await _prune(store, _answers(int(now - idempotency_s * 1000)), pruned, "answers")
            await store.write(_secrets(now))
            pruned.done_at = clock()
        except Unavailable as error:
            log.warning("retention.delayed", reason=error.reason)
        await trio.sleep(interval_s)


def _events(older_than: int, now: int) -> Callable[[Transaction], int]:
    return lambda tx: tx.prune_events(older_than, BATCH, now)


def _secrets(now: int) -> Callable[[Transaction], int]:
    return lambda tx: tx.forget_old_secrets(now)


def _deliveries(older_than: int) -> Callable[[Transaction], int]:
    return lambda tx: tx.prune_deliveries(older_than, BATCH)


def _answers(older_than: int) -> Callable[[Transaction], int]:
    return lambda tx: tx.prune_answers(older_than, BATCH)


async def _prune(store: Store, batch: Callable[[Transaction], int], pruned: Pruned, what: str) -> None:
    while True:
        count = await store.write(batch)
        pruned.rows[what] += count
        if count < BATCH:
            return
