"""Lets go of what has left its window: stored events, finished deliveries, replaced secrets (decisions 8).

In small batches with room between them, so that no commit waits long behind one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
import trio

from deskwire.engine.clock import Clock
from deskwire.engine.errors import Unavailable
from deskwire.engine.ports import Store, Transaction

log: Final = structlog.get_logger(__name__)

BATCH: Final = 500
"""Rows removed in one commit; about a millisecond of the writer's time."""


async def run_retention(
    store: Store, clock: Clock, *, interval_s: float, event_window_s: float, delivery_log_s: float
) -> None:
    """Prune at the start and then every `interval_s` seconds, until cancelled."""
    while True:
        now = clock()
        try:
            await _prune(store, _events(int(now - event_window_s * 1000), now))
            await _prune(store, _deliveries(int(now - delivery_log_s * 1000)))
            await store.write(_secrets(now))
        except Unavailable as error:
            log.warning("retention.delayed", reason=error.reason)
        await trio.sleep(interval_s)


def _events(older_than: int, now: int) -> Callable[[Transaction], int]:
    return lambda tx: tx.prune_events(older_than, BATCH, now)


def _secrets(now: int) -> Callable[[Transaction], int]:
    return lambda tx: tx.forget_old_secrets(now)


def _deliveries(older_than: int) -> Callable[[Transaction], int]:
    return lambda tx: tx.prune_deliveries(older_than, BATCH)


async def _prune(store: Store, batch: Callable[[Transaction], int]) -> None:
    while await store.write(batch) == BATCH:
        await trio.lowlevel.checkpoint()
