"""Fixtures of the stream's tests in which time jumps; those tests have a `stage` on `store`."""

from __future__ import annotations

import pytest

from deskwire.http.stream.server import RealtimeStream
from tests.support.jump_store import store
from tests.support.streaming import KEY, Stage

__all__ = ["store"]


@pytest.fixture
async def stream(stage: Stage) -> RealtimeStream:
    """The server of the stage's stream."""
    return RealtimeStream(stage.store, stage.hub, stage.clock, keys=lambda: (KEY,))
