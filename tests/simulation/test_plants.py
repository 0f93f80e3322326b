"""The simulation sees the bugs that it is there for: each is planted, and found within a few lives."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.simulation.life import simulate
from tests.simulation.plants import PLANTS, planted

LIVES: Final = 12


@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_is_found_within_a_few_lives(tmp_path: Path, bug: str) -> None:
    with planted(bug):
        for seed in range(LIVES):
            (directory := tmp_path / str(seed)).mkdir()
            if simulate(seed, directory, to_the_end=False).problems:
                return
    pytest.fail(f"{LIVES} lives, and nobody has noticed")
