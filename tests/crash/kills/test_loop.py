"""`kill -9` at random moments under load: the short form of `make crash`. The server is a process, so that it can be killed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.loop import run

pytestmark = pytest.mark.long

ROUNDS = 5


async def test_kills_at_random_moments_under_load_break_no_promise(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    report = await run(tmp_path, ROUNDS, seed)
    assert not report.problems, f"seed {seed}\n{report}"
