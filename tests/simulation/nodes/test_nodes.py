"""Several nodes on one database under a seeded schedule of faults, and planted bugs that it has to find (ADR 31)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.plants.plants import planted, plants_for
from tests.simulation.nodes.life import simulate
from tests.support.floors import shortfalls

pytestmark = pytest.mark.long

FIRST: Final = int(os.environ.get("SIMULATION_FIRST", "0"))
COUNT: Final = int(os.environ.get("SIMULATION_SEEDS", "12"))
LIVES: Final = 30


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_life_with_random_faults_keeps_every_promise(tmp_path: Path, seed: int) -> None:
    verdict = simulate(seed, tmp_path)
    if verdict.problems:
        print(*(f"{at} {text}" for at, text in verdict.trace), sep="\n")
        pytest.fail("\n".join([f"seed {seed}:", *verdict.problems[:20]]), pytrace=False)
    assert shortfalls(verdict.floors) == [], f"seed {seed}"


def test_a_seed_gives_the_same_life_each_time(tmp_path: Path) -> None:
    lives = []
    for name in ("one", "other"):
        (directory := tmp_path / name).mkdir()
        lives.append(simulate(2, directory).trace)
    assert lives[0] == lives[1]


@pytest.mark.parametrize("bug", plants_for("nodes"))
def test_a_planted_bug_is_found_within_a_few_lives(tmp_path: Path, bug: str) -> None:
    with planted(bug):
        for seed in range(LIVES):
            (directory := tmp_path / str(seed)).mkdir()
            if simulate(seed, directory, to_the_end=False).problems:
                return
    pytest.fail(f"{LIVES} lives have not shown {bug}")
