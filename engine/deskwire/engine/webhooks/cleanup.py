"""The clearing away of deliveries that disabled and removed endpoints leave behind, in small commits.

Pending deliveries of a disabled endpoint end as skipped, those of a removed one are deleted. No other commit
waits long, however many there are. After a crash it goes on at the next start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.webhooks.ports import DeliveryReader, DeliveryTransaction

log: Final = structlog.get_logger(__name__)

BATCH: Final = 500
"""Deliveries in one commit; a few milliseconds of the writer's time."""

_RETRY_S: Final = 1.0


async def close_endpoint(
    store: Store[DeliveryReader, DeliveryTransaction], clock: Clock, endpoint: int
) -> None:
    """Clear away an endpoint's deliveries until none are left, or it is enabled again."""
    while True:
        try:
            while await store.write(_part(endpoint, clock())):
                await trio.lowlevel.checkpoint()
        except Unavailable as refusal:
            log.warning("delivery.closing_delayed", reason=refusal.reason)
            await trio.sleep(_RETRY_S)
        else:
            return


def _part(endpoint: int, now: int) -> Callable[[DeliveryTransaction], int]:
    return lambda tx: tx.close_deliveries(endpoint, now, BATCH)
