"""What keeps one courier's failure from everything else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio

from deskwire.engine.core.sealing import SealBroken
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.endpoint import Endpoint

log: Final = structlog.get_logger(__name__)

RESTART_PAUSE_S: Final = 5.0
"""Before a courier that failed is started anew."""


async def run_isolated(endpoint: Endpoint, run: Callable[[], Awaitable[None]]) -> None:
    """Run a courier's `run`; returns when that has failed, and the log says how."""
    try:
        await run()
    except* SealBroken as group:
        log.error("delivery.sealed", endpoint=endpoint.id, error=str(group.exceptions[0]))
    except* Exception:  # the task's top: one courier's bug is not the others' business
        log.exception("delivery.courier_failed", endpoint=endpoint.id)


def broken(number: int, at: int, began: float) -> Attempt:
    """Return the attempt that a bug has ended, which failed: it began `at` (ms), `began` on Trio's clock."""
    latency_ms = round((trio.current_time() - began) * 1000)
    return Attempt(number, at, latency_ms, None, "internal error", b"")
