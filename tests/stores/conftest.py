"""Tests of both stores: each test runs on both, except those marked `sqlite`, which are about SQLite itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import found_projects
from tests.support.stores import KINDS, Kind, transaction


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test by store."""
    alone = metafunc.definition.get_closest_marker("sqlite") is not None
    metafunc.parametrize("kind", KINDS[:1] if alone else KINDS, indirect=True)


@pytest.fixture(autouse=True)
def kind(request: pytest.FixtureRequest) -> Kind:
    """The store that the test runs on."""
    chosen: Kind = request.param
    return chosen


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[Any]:
    """A transaction on a store with PROJECT and OTHER_PROJECT, which is never committed."""
    with transaction(tmp_path) as tx:
        found_projects(tx)
        yield tx
