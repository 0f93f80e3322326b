"""The scale of a measurement: enough to compare by default, seconds with `--quick`, the long way with `--full`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of all benchmarks; times in seconds.

    Args:
        rounds: how often each figure is taken; medians are reported.
        warm_s, load_s: of each load, not measured and measured.
        connections: of the load generator at the same time.
        conversations: that posts are spread over.
        read_by: connections where reads are measured.
        tail_by, tail_s: connections that are opened where the slowest responses are measured, and for how long each time.
        panels: open panels of customers that are held, and that come back after a restart.
        rate: posts a second where latency is measured; for `rate_s`.
        quiet_s: how long messages are posted one by one where the delay of a stream's first event is measured.
        chats: real ones, played at the same time.
        live: conversations in memory where one's share of it is measured.
        idle_connections, idle_websockets: that are held where one's share of memory is measured.
        fan_consumers, fan_frames: connections that frames are sent to, and how many to each.
        in_flight: commands at the same time in the engine alone.
        spread: connections to all nodes together, fewest first.
        conversations_stored: where few of them are alive.
        stored: messages in the databases where growth and start are measured.
        kills: of each database's server, under load.
        deliveries: that are pending where the rate of deliveries is measured.
        flights: attempts, or posts of httpx, at the same time there.
        backlog: deliveries pending to a dead endpoint where its share of memory is measured, and held for one that comes back.
        tickets, lists, list_s, bulk_calls: in the database where lists are timed, how many lists those are at most, for how
            long each, and changes of 1,000 tickets.
        inbox: conversations in the database where an agent's lists are timed, of six messages each.
        active: conversations that were active in the same hour where lists of a busy hour are timed.
        thread: messages of long conversations that an agent has not opened.
        imported: messages of an import.
        searched: conversations in the database where searches are timed, of six messages each.
        histories: conversations in the databases of a large installation and of smaller ones, of ten messages each.
        indexed: conversations up to which the search index of these databases is made, which takes long, and searched.
        day_rows: events, or deliveries, of a day where the end of days is measured, of which there are 30.
        peer_conversations: in the databases of systems that do the same job; `peer_s` of each load of a fast one; `peer_messages` that
            a subscriber is notified of.
        kept: the folder where these databases are, and stay for the next run.
    """

    rounds: int = 3
    warm_s: float = 0.2
    load_s: float = 1.0
    connections: tuple[int, ...] = (1, 16, 64)
    conversations: tuple[int, ...] = (1, 64, 1_000)
    read_by: tuple[int, ...] = (1, 16)
    tail_by: tuple[int, ...] = (16, 64, 256)
    tail_s: float = 3.0
    panels: int = 10_000
    rate: int = 200
    rate_s: float = 4.0
    quiet_s: float = 20.0
    chats: int = 200
    live: tuple[int, ...] = (2_000,)
    idle_connections: int = 1_000
    idle_websockets: int = 5_000
    fan_consumers: int = 1_000
    fan_frames: int = 48
    in_flight: tuple[int, ...] = (1, 16, 64)
    spread: tuple[int, ...] = (48, 192)
    conversations_stored: int = 100_000
    stored: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    kills: int = 3
    deliveries: int = 1_000
    flights: tuple[int, ...] = (1, 16, 64)
    backlog: int = 100_000
    tickets: int = 10_000
    lists: int = 100
    list_s: float = 0.3
    bulk_calls: int = 40
    searched: int = 10_000
    inbox: int = 10_000
    active: int = 50_000
    thread: int = 1_000
    imported: int = 20_000
    histories: tuple[int, ...] = (10_000, 100_000)
    indexed: int = 100_000
    day_rows: int = 30_000
    peer_conversations: int = 2_000
    peer_s: float = 2.0
    peer_messages: int = 60
    kept: str | None = None

    def load(self, connections: int) -> dict[str, Any]:
        """Return a job's arguments that load a server with as much as it can take."""
        return {"connections": connections, "warm_s": self.warm_s, "for_s": self.load_s}


DEFAULT: Final = Scale()
QUICK: Final = Scale(
    rounds=1,
    warm_s=0.05,
    load_s=0.2,
    connections=(4,),
    conversations=(1, 4),
    panels=20,
    rate=50,
    rate_s=0.5,
    quiet_s=1.0,
    live=(40,),
    idle_connections=20,
    idle_websockets=10,
    fan_consumers=10,
    fan_frames=16,
    in_flight=(1, 8),
    spread=(4, 8),
    read_by=(2,),
    tail_by=(4,),
    tail_s=0.2,
    chats=5,
    conversations_stored=100,
    stored=(100, 500),
    kills=1,
    list_s=0.1,
    tickets=300,
    lists=3,
    bulk_calls=2,
    searched=200,
    inbox=200,
    active=300,
    thread=30,
    imported=1_500,
    deliveries=40,
    flights=(1, 8),
    backlog=500,
    histories=(200, 400),
    day_rows=200,
    peer_conversations=200,
    peer_s=0.2,
    peer_messages=5,
)
FULL: Final = replace(
    DEFAULT,
    rounds=5,
    load_s=2.0,
    live=(2_000, 20_000),
    tickets=100_000,
    imported=100_000,
    searched=100_000,
    inbox=100_000,
    histories=(10_000, 100_000, 1_000_000),
    indexed=1_000_000,
    day_rows=300_000,
    peer_conversations=20_000,
)
