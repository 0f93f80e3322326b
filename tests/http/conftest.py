"""Fixtures of the tests on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.streaming import NOON, Front, Stage, real_front, real_stage, small_app


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A real store with one project, its log and its hub."""
    async with real_stage(tmp_path, lambda: NOON) as stage:
        yield stage


@pytest.fixture
async def front(stage: Stage) -> AsyncIterator[Front]:
    """A real listener over `stage`."""
    async with real_front(stage, small_app) as front:
        yield front
