"""The fixture of a store in which time jumps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.streaming import JumpStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JumpStore]:
    """A store without threads."""
    store = JumpStore(tmp_path)
    yield store
    store.close()
