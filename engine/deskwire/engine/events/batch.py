"""The size of what is read from the log for a reader in one go, and written to it in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.events.types import StoredEvent

BATCH_EVENTS: Final = 64
"""Events of one batch at most: what a read from the disk may bring into memory."""
BATCH_BYTES: Final = 64 * 1024
"""Envelope bytes of one batch, once it has an event: what one write must get through in its time."""


def fitting(events: Sequence[StoredEvent]) -> int:
    """Return how many of the events fit into one batch; the first always does."""
    if len(events) < 2:  # the usual case: the reader keeps up
        return len(events)
    size = 0
    for count, event in enumerate(events):
        size += len(event.body)
        if size > BATCH_BYTES and count:
            return count
    return len(events)
