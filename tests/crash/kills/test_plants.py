"""The crash loop finds planted bugs: each is planted in the server, and found within a few kills."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.crash.loop import run
from tests.plants.plants import plants_for

pytestmark = pytest.mark.long

ROUNDS: Final = 6
THOROUGH: Final = os.environ.get("CRASH_PLANTS") == "all"
"""Whether to plant also the bugs that other tools find within seconds."""


@pytest.mark.parametrize("bug", plants_for("crash", thorough=THOROUGH))
async def test_a_planted_bug_is_found_within_a_few_kills(tmp_path: Path, bug: str) -> None:
    report = await run(tmp_path, ROUNDS, 1, bug)
    found = [each for each in report.problems if not each.startswith("judged too little")]
    assert found, f"{ROUNDS} kills have not shown {bug}\n{report}"
