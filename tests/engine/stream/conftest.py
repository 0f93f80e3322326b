"""Fixtures of the stream's tests in which time jumps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.streaming import JumpStore, Stage, jump_stage


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JumpStore]:
    """Return a store without threads."""
    store = JumpStore(tmp_path)
    yield store
    store.close()


@pytest.fixture
async def stage(store: JumpStore) -> Stage:
    """Return a project with its hub, for time that jumps."""
    return await jump_stage(store)
