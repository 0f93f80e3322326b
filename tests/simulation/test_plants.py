"""The simulation sees the bugs that it is there for: each is planted, and found within a few lives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.life import simulate
from tests.simulation.plants import PLANTS, planted

pytestmark = pytest.mark.long

LIVES: Final = 30
FOUND_SOON: Final = (
    "skip_a_sequence",
    "forget_a_row",
    "send_a_conversation_out_of_order",
    "hold_up_all_for_one",
    "answer_a_key_twice",
    "drop_the_fence",
    "lose_an_event_of_the_stream",
    "write_to_who_lost_the_channel",
    "leave_erased_text",
    "say_that_a_merge_is_over",
)
"""Those that cost a second or two; `SIMULATION_PLANTS=all` looks for all."""
CHOSEN: Final = tuple(PLANTS) if os.environ.get("SIMULATION_PLANTS") == "all" else FOUND_SOON


@pytest.mark.parametrize("bug", CHOSEN)
def test_a_planted_bug_is_found_within_a_few_lives(tmp_path: Path, bug: str) -> None:
    with planted(bug):
        for seed in range(LIVES):
            (directory := tmp_path / str(seed)).mkdir()
            if simulate(seed, directory, to_the_end=False).problems:
                return
    pytest.fail(f"{LIVES} lives, and nobody has noticed")
