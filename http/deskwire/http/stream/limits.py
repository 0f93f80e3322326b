"""What a stream connection may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """See `RealtimeStream`, which is given them."""

    ping_s: float
    write_timeout_s: float
    inbound_bytes: int
    unsubscribed_s: float
