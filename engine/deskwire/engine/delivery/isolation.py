"""What keeps one courier's failure from everything else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from deskwire.engine.endpoint import Endpoint
from deskwire.engine.sealing import SealBroken

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
