"""Fixtures that tests of several packages share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import InlineStore


@pytest.fixture
def inline_store(tmp_path: Path) -> Iterator[InlineStore]:
    """A store on a fresh directory whose jobs run on the spot."""
    store = InlineStore(tmp_path)
    yield store
    store.close()
