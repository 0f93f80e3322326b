"""The stream under a seeded schedule of everything that can go wrong (decisions 5; ADR 8).

One seed is one life of a project: the real engine, log, hub and sessions on Trio's mock clock, a network in memory,
a real SQLite file, consumers of all manners, and a server that is killed. What happens is told to the judge.
`SIMULATION_SEEDS=5000` runs more, `SIMULATION_FIRST=1234` from another one; a seed that failed is kept in `corpus.txt`.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import trio
from structlog.processors import format_exc_info
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.simulation.faults import FAULTS
from tests.simulation.world import World

CORPUS: Final = [int(line) for line in (Path(__file__).parent / "corpus.txt").read_text().split()]
FIRST: Final = int(os.environ.get("SIMULATION_FIRST", "0"))
COUNT: Final = int(os.environ.get("SIMULATION_SEEDS", "60"))
SEEDS: Final = dict.fromkeys([*CORPUS, *range(FIRST, FIRST + COUNT)])
SETTLED_S: Final = 150.0
"""Long enough for leases, standbys and reconnects; nothing is left to happen then."""
RETURNED_S: Final = 90.0
"""Long enough for those who have not noticed yet that their connection is gone."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a life has shown."""

    problems: list[str]
    trace: list[tuple[float, str]]


def simulate(seed: int, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """One life, the same for the same seed."""
    dice = random.Random(seed)
    monkeypatch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)  # as Trio's own plugin does
    monkeypatch.setattr("trio._core._run._r", random.Random(seed))
    monkeypatch.setattr("deskwire.http.pusher.secrets.randbelow", random.Random(seed).randrange)
    worlds: list[World] = []

    async def life() -> None:
        async with trio.open_nursery() as nursery:
            world = World(directory, dice, nursery)
            worlds.append(world)
            await _live(world)
            nursery.cancel_scope.cancel()

    with capture_logs(processors=[format_exc_info]) as entries:
        trio.run(life, clock=MockClock(autojump_threshold=0))
    judge = worlds[0].judge
    judge.problems += [str(entry) for entry in entries if entry["log_level"] in ("error", "critical")]
    return Verdict(judge.problems, judge.trace)


async def _live(world: World) -> None:
    await world.start()
    dice = world.dice
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_writing, world)
        for _ in range(dice.randrange(1, 4)):
            world.launch()
        for _ in range(dice.randrange(4, 16)):
            await trio.sleep(dice.random() ** 2 * 20)  # virtual time: the mock clock jumps
            fault = dice.choice(FAULTS)
            world.judge.note(fault.__name__)
            await fault(world)
        nursery.cancel_scope.cancel()
    await _settle(world)


async def _writing(world: World) -> None:
    while True:
        for _ in range(world.dice.randrange(1, 6)):
            await world.write()
        await trio.sleep(world.dice.random() * 8)  # virtual time: the mock clock jumps


async def _settle(world: World) -> None:
    """Heal what can be healed, and see that everything has reached somebody who then is left alone."""
    world.flaky = False
    for link in world.links:
        link.cut()
    for consumer in world.consumers:
        consumer.go_on()
        consumer.pongs = "prompt"
    await trio.sleep(RETURNED_S)  # virtual time: the mock clock jumps
    for channel in world.channels:
        world.launch_healthy(channel)
    await world.write()
    await trio.sleep(SETTLED_S)  # virtual time: the mock clock jumps
    seatings = world.judge.seatings()
    await world.write()
    await trio.sleep(SETTLED_S)  # virtual time: the mock clock jumps
    if world.judge.seatings() != seatings:
        world.judge.wrong("channels change hands though nothing happens")
    if lingering := world.judge.lingering():
        world.judge.wrong(f"superseded and not closed: {lingering}")
    if missing := world.judge.missing():
        world.judge.wrong(f"never received: {missing}")


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_one_holder_gets_every_event_once_in_order_or_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Decisions 5: one consumer, at least once, in order, duplicates bounded, no flap."""
    verdict = simulate(seed, tmp_path, monkeypatch)
    if verdict.problems:
        print(*(f"{at} {text}" for at, text in verdict.trace), sep="\n")
        pytest.fail("\n".join([f"seed {seed}:", *verdict.problems[:20]]), pytrace=False)


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_is_the_same_life_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    lives = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        lives.append(simulate(seed, tmp_path / name, monkeypatch).trace)
    assert lives[0] == lives[1]
