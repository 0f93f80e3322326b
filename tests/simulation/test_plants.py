"""The simulation finds planted bugs: each one within a few lives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.plants.plants import planted, plants_for
from tests.simulation.life import simulate

pytestmark = pytest.mark.long

LIVES: Final = 30
THOROUGH: Final = os.environ.get("SIMULATION_PLANTS") == "all"
"""Whether to plant also the bugs that take more than a second or two to find."""


@pytest.mark.parametrize("bug", plants_for("simulation", thorough=THOROUGH))
def test_a_planted_bug_is_found_within_a_few_lives(tmp_path: Path, bug: str) -> None:
    with planted(bug):
        for seed in range(LIVES):
            (directory := tmp_path / str(seed)).mkdir()
            if simulate(seed, directory, to_the_end=False).problems:
                return
    pytest.fail(f"{LIVES} lives have not shown {bug}")
