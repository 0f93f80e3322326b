"""Faults of an installation; each returns its description and the longest pause without any answer that it may cause.

The allowed pauses are those that the nodes are designed for; `SLACK_S` is added for a busy machine.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Final

import trio

from tests.chaos.database import Death, Pair
from tests.chaos.node import Balancer, Node
from tests.chaos.verdict import Fault

SLACK_S: Final = 4.0
"""Enough for an idle machine; a busy one needs more."""
LEASE_S: Final = 5.0
MID_PIPELINE_S: Final = 10.0
"""How long a node that is stopped in the middle of a commit may block others, until the watchdog ends its session."""
_RECOVERY_S: Final = 10.0
"""Time that PostgreSQL needs for crash recovery."""
BACK_S: Final = 6.0
"""The longest time between a promotion and the next acknowledged write, for any state of the old primary (docs/guide/nodes.md)."""
_LONG_S: Final = (7.0, 9.0)
_CARRIERS: Final = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'deskwire/bus/%'"
"""Selects the PostgreSQL backends of the sessions that listen and notify."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The installation that faults are done to.

    Args:
        pair: None if there is one node with a SQLite store.
    """

    nodes: Sequence[Node]
    balancer: Balancer
    pair: Pair | None
    chance: random.Random

    def node(self) -> Node:
        """Return a random node."""
        return self.chance.choice(self.nodes)

    def number(self) -> int:
        """Return the number of a random node."""
        return self.chance.randrange(len(self.nodes))

    @property
    def database(self) -> Pair:
        """The two servers."""
        assert self.pair is not None
        return self.pair

    def alone(self) -> bool:
        """Return whether there is no other node that could take over."""
        return len(self.nodes) == 1


Happening = Callable[[Stage], Awaitable[tuple[str, float]]]
"""Causes a fault; returns its description and the allowed pause in seconds."""


async def _kill_node(stage: Stage) -> tuple[str, float]:
    node = stage.node()
    await node.crash(stage.chance.uniform(0.0, 2.0))
    return f"kill -9 of {node.name}", inf if stage.alone() else MID_PIPELINE_S


async def _stop_node(stage: Stage) -> tuple[str, float]:
    node = stage.node()
    await node.leave(stage.chance.uniform(0.0, 1.0))
    return f"restart of {node.name} in good order", inf if stage.alone() else 0.5


async def _pause_node(stage: Stage) -> tuple[str, float]:
    """Pause a node for less than its lease."""
    node = stage.node()
    await node.pause(seconds := stage.chance.uniform(0.2, LEASE_S - 1.5))
    return f"SIGSTOP of {node.name} for {seconds:.1f} s", inf if stage.alone() else MID_PIPELINE_S


async def _pause_node_for_long(stage: Stage) -> tuple[str, float]:
    """Pause a node for longer than its lease."""
    node = stage.node()
    await node.pause(seconds := stage.chance.uniform(*_LONG_S))
    return f"SIGSTOP of {node.name} for {seconds:.1f} s", inf if stage.alone() else MID_PIPELINE_S


async def _cut_clients(stage: Stage) -> tuple[str, float]:
    stage.balancer.relay.cut()
    await trio.lowlevel.checkpoint()
    return "all clients' connections cut", 0.5


async def _silence_clients(stage: Stage) -> tuple[str, float]:
    stage.balancer.relay.silence()
    await trio.sleep(seconds := stage.chance.uniform(0.5, 4.0))  # the duration of the fault
    if stage.chance.random() < 0.5:
        stage.balancer.relay.cut()
    stage.balancer.relay.speak()
    return f"clients' connections silent for {seconds:.1f} s", seconds + 0.5


async def _end_sessions(stage: Stage) -> tuple[str, float]:
    await stage.database.end_sessions()
    return "every session terminated", 0.5


async def _cut_database(stage: Stage) -> tuple[str, float]:
    stage.database.cut()
    await trio.lowlevel.checkpoint()
    return "all connections to PostgreSQL cut", 0.5


async def _cut_often(stage: Stage) -> tuple[str, float]:
    """Cut random connections, so that some end in the middle of each kind of operation."""
    for _ in range(20):
        for relay in stage.chance.choice(stage.database.ways):
            for wire in list(relay.wires):
                if stage.chance.random() < 0.3:
                    wire.cut()
        await trio.sleep(stage.chance.uniform(0.0, 0.1))  # between two moments
    return "single connections to PostgreSQL cut twenty times", 3.0


async def _silence_database(stage: Stage) -> tuple[str, float]:
    """Make one node's connections half-open: neither side notices."""
    number = stage.number()
    way = stage.database.ways[number]
    for relay in way:
        relay.silence()
    await trio.sleep(seconds := stage.chance.choice((1.0, 4.0, 9.0)))  # the duration of the fault
    for relay in way:
        if stage.chance.random() < 0.5:
            relay.cut()
        relay.speak()
    name = f"connections of {stage.nodes[number].name} to PostgreSQL silent for {seconds:.0f} s"
    return name, inf if stage.alone() else MID_PIPELINE_S


async def _delay_database(stage: Stage) -> tuple[str, float]:
    way = stage.chance.choice(stage.database.ways)
    for relay in way:
        relay.delay_s = 0.03
    await trio.sleep(3.0)  # the duration of the fault
    for relay in way:
        relay.delay_s = 0.0
    return "a slow way to PostgreSQL", 2.0


async def _lose_hints(stage: Stage) -> tuple[str, float]:
    """Lose hints without a sign for the nodes: the PostgreSQL backends that carry them are stopped, and later terminated."""
    rows = await stage.database.run(_CARRIERS)
    carriers = [int(pid) for (pid,) in rows]
    for pid in carriers:
        os.kill(pid, signal.SIGSTOP)
    try:
        await trio.sleep(seconds := stage.chance.uniform(3.0, 8.0))  # the duration of the fault
    finally:
        for pid in carriers:
            with suppress(ProcessLookupError):  # the backend has ended with its server
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)
    return f"no hint came to {len(carriers)} nodes for {seconds:.1f} s", 0.5


async def _restart_database(stage: Stage) -> tuple[str, float]:
    how = stage.chance.choice((signal.SIGINT, signal.SIGQUIT, signal.SIGKILL))
    seconds = stage.chance.uniform(0.0, 3.0)
    began = trio.current_time()
    await stage.database.restart(how, seconds)
    took_s = trio.current_time() - began
    recovery_s = 0.0 if how is signal.SIGINT else _RECOVERY_S
    return f"PostgreSQL ended by {how.name}, back after {took_s:.1f} s", took_s + 0.5 + recovery_s


async def _fail_over(stage: Stage) -> tuple[str, float]:
    began = trio.current_time()
    await stage.database.fail_over()
    took_s = trio.current_time() - began
    await trio.sleep(stage.chance.uniform(0.0, 2.0))  # alone for a while
    await stage.database.follow()
    return f"fail-over to the standby in {took_s:.1f} s", took_s + 0.5


async def hang_primary(stage: Stage) -> tuple[str, float]:
    """Promote the standby while the old primary's kernel still acknowledges packets, as with a stalled disk."""
    return await _fail_over_by(stage, "hung")


async def remove_primary(stage: Stage) -> tuple[str, float]:
    """Simulate a power loss of the primary's host: sessions end, and no packet is answered."""
    return await _fail_over_by(stage, "gone")


async def _fail_over_by(stage: Stage, death: Death) -> tuple[str, float]:
    began = trio.current_time()
    await stage.database.fail_over(death)
    took_s = trio.current_time() - began
    await trio.sleep(stage.chance.uniform(*_LONG_S))  # the old primary stays like that
    await stage.database.follow()
    return f"fail-over in {took_s:.1f} s from a primary that was {death}", took_s + BACK_S


async def bring_back_primary(stage: Stage) -> tuple[str, float]:
    """Have two primaries: start the old one beside the promoted one, and make every node reconnect."""
    began = trio.current_time()
    await stage.database.fail_over()
    await stage.database.bring_back()
    await stage.database.end_sessions()
    took_s = trio.current_time() - began
    await trio.sleep(stage.chance.uniform(*_LONG_S))  # both take writes
    await stage.database.follow()
    return "the old primary back beside the promoted one", took_s + BACK_S


async def _lose_standby(stage: Stage) -> tuple[str, float]:
    """Disconnect the standby for a while, in which no commit is answered."""
    stage.database.replication.silence()
    await trio.sleep(seconds := stage.chance.choice((1.0, 4.0, 12.0)))  # the duration of the fault
    stage.database.replication.cut()
    stage.database.replication.speak()
    await stage.database.wait_until_followed()
    return f"no standby for {seconds:.0f} s", inf


OF_NODES: Final[Sequence[Happening]] = (
    _kill_node,
    _stop_node,
    _pause_node,
    _pause_node_for_long,
    _cut_clients,
    _silence_clients,
)
OF_DATABASE: Final[Sequence[Happening]] = (
    _end_sessions,
    _cut_database,
    _cut_often,
    _silence_database,
    _delay_database,
    _lose_hints,
    _restart_database,
    _fail_over,
    hang_primary,
    remove_primary,
    bring_back_primary,
    _lose_standby,
)
AT_ONCE: Final = frozenset({_kill_node, _pause_node, _cut_clients, _end_sessions, _cut_database, _cut_often})
"""Faults that may coincide with another one."""


async def happen(stage: Stage, what: Happening, slack_s: float = SLACK_S) -> Fault:
    """Cause a fault and return it with its times."""
    began = trio.current_time()
    name, pause_s = await what(stage)
    return Fault(name, began, trio.current_time(), pause_s + slack_s)
