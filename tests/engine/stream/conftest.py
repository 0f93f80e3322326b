"""Fixtures of the stream's tests in which time jumps."""

from __future__ import annotations

import pytest

from tests.support.jump_store import store
from tests.support.streaming import JumpStore, Stage, jump_stage

__all__ = ["store"]


@pytest.fixture
async def stage(store: JumpStore) -> Stage:
    """Return a project with its hub, for time that jumps."""
    return await jump_stage(store)
