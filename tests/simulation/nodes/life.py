"""One life of an installation with several nodes, from its seed to the verdict."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio
from structlog.processors import format_exc_info
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.simulation.life import decided
from tests.simulation.nodes.world import NodesWorld
from tests.support.floors import Floor

_SETTLED_S: Final = 120.0
_CLIENTS: Final = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """The problems of a life, and how much of it was judged."""

    problems: Sequence[str]
    trace: Sequence[tuple[float, str]]
    floors: Sequence[Floor]


# Faults


async def _kill(world: NodesWorld) -> None:
    if world.up:
        await world.kill(world.dice.choice(world.up))


async def _pause(world: NodesWorld) -> None:
    """Pause a node for less or more than a lease."""
    if world.up:
        await world.dice.choice(world.up).pause(world.dice.choice((0.5, 3.0, 12.0, 40.0)))


async def _cut(world: NodesWorld) -> None:
    """End every session."""
    world.database.end_all()
    await trio.lowlevel.checkpoint()


async def _cut_off(world: NodesWorld) -> None:
    """Cut one node off from the database for a while."""
    if world.up:
        way = world.dice.choice(world.up).way
        way.cut = True
        await trio.sleep(world.dice.random() * 12)  # virtual time: the mock clock jumps
        way.cut = False


async def _shake(world: NodesWorld) -> None:
    """Let connections end at any phase, for a while."""
    for node in world.up:
        node.way.cuts = 0.2
    await trio.sleep(world.dice.random() * 10)  # virtual time: the mock clock jumps
    for node in world.up:
        node.way.cuts = 0.0


async def _restart(world: NodesWorld) -> None:
    """Take the database away for a while."""
    world.database.away = True
    world.database.end_all()
    await trio.sleep(world.dice.random() * 6)  # virtual time: the mock clock jumps
    world.database.away = False


async def _rush(world: NodesWorld) -> None:
    """Run many clients concurrently."""
    for _ in range(world.dice.randrange(5, 30)):
        world.later(world.client.do_something)
    await trio.lowlevel.checkpoint()


FAULTS: Final[Sequence[Callable[[NodesWorld], Awaitable[None]]]] = (
    *(_kill, _kill, _pause, _pause, _pause, _cut, _cut_off, _shake, _shake, _restart, _rush, _rush, _rush),
)


def simulate(seed: int, directory: Path, *, to_the_end: bool = True) -> Verdict:
    """Run one life, the same for the same seed; it stops at the first problem unless it goes `to_the_end`."""
    dice = random.Random(seed)
    worlds: list[NodesWorld] = []

    async def life() -> None:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                world = NodesWorld(directory, dice, nursery)
                worlds.append(world)
                if not to_the_end:
                    world.judge.stop = scope.cancel
                await _live(world)
                nursery.cancel_scope.cancel()

    with decided(seed), capture_logs(processors=[format_exc_info]) as entries:
        trio.run(life, clock=MockClock(autojump_threshold=0))
    world = worlds[0]
    world.database.close()
    errors = [entry for entry in entries if entry["log_level"] in ("error", "critical")]
    floors = (
        Floor("requests", world.client.requests, 20),
        Floor("events", world.ledger.events, 10),
        Floor("posts", world.mail.posts, 10),
        Floor("held messages sent", world.held.sent, 1),
        Floor("events read along", world.order.reads, 20),
    )
    return Verdict([*world.judge.problems, *map(str, errors)], world.judge.trace, floors)


async def _live(world: NodesWorld) -> None:
    await world.start()
    dice = world.dice
    async with trio.open_nursery() as nursery:
        for _ in range(_CLIENTS):
            nursery.start_soon(_writing, world)
        for _ in range(dice.randrange(6, 20)):
            await trio.sleep(dice.random() ** 2 * 12)  # virtual time: the mock clock jumps
            fault = dice.choice(FAULTS)
            world.judge.note(fault.__name__)
            world.mail.ended()  # attempts in progress are repeated
            await fault(world)
            world.mail.ended()
            world.check()
        nursery.cancel_scope.cancel()
    world.flaky = False
    await world.client.do_something()
    await trio.sleep(_SETTLED_S)  # virtual time: the mock clock jumps
    world.audit(settled=True)
    for node in world.up:
        world.order.settled(node.name, node.cursor)
    world.check()


async def _writing(world: NodesWorld) -> None:
    while True:
        await world.client.do_something()
        if world.dice.random() < 0.2:
            await world.agent.do_something()
        world.check()
        await trio.sleep(world.dice.random() * 2)  # virtual time: the mock clock jumps
