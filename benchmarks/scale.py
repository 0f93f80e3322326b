"""How much is measured: enough to compare by default, seconds with `--quick`, the long way with `--full`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of all benchmarks; times in seconds.

    Args:
        rounds: how often each figure is taken; medians are reported.
        warm_s, load_s: of each load, not measured and measured.
        connections: of the load generator at the same time.
        conversations: that posts are spread over.
        rate: posts a second where latency is measured.
        live: conversations in memory where one's share of it is measured.
        idle_connections, idle_websockets: that are held where one's share of memory is measured.
        fan_consumers, fan_frames: connections that frames are sent to, and how many to each.
        in_flight: commands at the same time in the engine alone.
        stored: messages in the database where the start is timed.
        deliveries: that are pending where the rate of deliveries is measured.
        flights: attempts, or posts of httpx, at the same time there.
        backlog: deliveries pending to a dead endpoint where its share of memory is measured.
        tickets, lists, bulk_calls: in the database where lists are timed, how many lists those are at most, and
            changes of 1,000 tickets.
        imported: messages of an import.
    """

    rounds: int = 3
    warm_s: float = 0.3
    load_s: float = 1.2
    connections: tuple[int, ...] = (1, 16, 64)
    conversations: tuple[int, ...] = (1, 64, 1_000)
    rate: int = 200
    rate_s: float = 8.0
    live: tuple[int, ...] = (2_000,)
    idle_connections: int = 1_000
    idle_websockets: int = 5_000
    fan_consumers: int = 1_000
    fan_frames: int = 96
    in_flight: tuple[int, ...] = (1, 16, 64, 256)
    stored: tuple[int, ...] = (0, 100_000)
    deliveries: int = 1_500
    flights: tuple[int, ...] = (1, 16, 64)
    backlog: int = 100_000
    tickets: int = 10_000
    lists: int = 100
    bulk_calls: int = 40
    imported: int = 20_000


DEFAULT: Final = Scale()
QUICK: Final = Scale(
    rounds=1,
    warm_s=0.05,
    load_s=0.2,
    connections=(4,),
    conversations=(1, 4),
    rate=50,
    rate_s=0.5,
    live=(40,),
    idle_connections=20,
    idle_websockets=10,
    fan_consumers=10,
    fan_frames=16,
    in_flight=(1, 8),
    stored=(0, 500),
    tickets=300,
    lists=3,
    bulk_calls=2,
    imported=1_500,
    deliveries=40,
    flights=(1, 8),
    backlog=500,
)
FULL: Final = replace(
    DEFAULT,
    rounds=5,
    load_s=2.0,
    live=(2_000, 20_000),
    stored=(0, 100_000, 1_000_000),
    tickets=100_000,
    imported=100_000,
)
