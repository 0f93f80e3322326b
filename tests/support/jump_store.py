"""The fixture of a store for tests with virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.streaming import JumpStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JumpStore]:
    """Yield a store without threads."""
    store = JumpStore(tmp_path)
    yield store
    store.close()
