"""The whole service under a seeded schedule of faults; `docs/testing.md` lists them.

One seed is one life of a project. `SIMULATION_SEEDS=500` runs that many, `SIMULATION_FIRST=1234` sets the first one;
`make simulate` runs many. A seed that failed is kept in `corpus.txt`, with the reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.life import floors, simulate
from tests.support.floors import shortfalls
from tests.support.root import ROOT
from tests.support.sockets.server_process import environment

pytestmark = pytest.mark.long

CORPUS: Final = [
    int(line.split()[0])
    for line in (Path(__file__).parent / "corpus.txt").read_text().splitlines()
    if not line.startswith("#")
]
FIRST: Final = int(os.environ.get("SIMULATION_FIRST", "0"))
COUNT: Final = int(os.environ.get("SIMULATION_SEEDS", "16"))
SEEDS: Final = dict.fromkeys([*CORPUS, *range(FIRST, FIRST + COUNT)])
_AGAIN: Final = "from tests.simulation.life import live_alone; print(live_alone({}).mark)"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_life_with_random_faults_keeps_every_promise(tmp_path: Path, seed: int) -> None:
    """Contract 6.4, decisions 1, 4, 5 and 6: see the judges."""
    verdict = simulate(seed, tmp_path)
    if verdict.problems:
        print(*(f"{at} {text}" for at, text in verdict.trace), sep="\n")
        pytest.fail("\n".join([f"seed {seed}:", *verdict.problems[:20]]), pytrace=False)


def test_lives_reach_the_floor_of_every_judged_figure(tmp_path: Path) -> None:
    lives = []
    for seed in range(8):
        (directory := tmp_path / str(seed)).mkdir()
        lives.append(simulate(seed, directory))
    assert shortfalls(floors(lives)) == []


def test_a_seed_gives_the_same_life_in_every_process(tmp_path: Path) -> None:
    verdict = simulate(3, tmp_path)
    again = subprocess.run(
        [sys.executable, "-c", _AGAIN.format(3)],
        cwd=ROOT,
        env={**environment(), "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout.strip() == verdict.mark
