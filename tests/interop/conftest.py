"""Published clients, unmodified, against a real service.

pusher-js, laravel-echo and stripe come from the npm registry (`package-lock.json` beside this file says which), Pysher is one
of the development dependencies. Each runs in a separate process, which reads commands and reports events as lines of
JSON. Without Node, or if the packages cannot be installed, the tests are skipped with the reason.

`INTEROP_LONG=1` makes the quiet times 60 s, and restarts the server on its port without a proxy in front.
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.interop.client import HERE, Launch, launching
from tests.interop.stage import Stage, staged
from tests.support.npm_packages import require_packages


@pytest.fixture(scope="session")
def node() -> None:
    """Require Node and install the locked packages."""
    require_packages(HERE)


@pytest.fixture(scope="session")
def pysher() -> None:
    """Require Pysher."""
    if importlib.util.find_spec("pysher") is None:
        pytest.skip("Pysher is not installed; it is one of the locked development dependencies")


@pytest.fixture
async def launch() -> AsyncIterator[Launch]:
    """Yield a function that starts clients."""
    async with launching() as launch:
        yield launch


@pytest.fixture
async def stage(tmp_path: Path, launch: Launch) -> AsyncIterator[Stage]:
    """Yield a stage: a service on an empty directory, a proxy, and clients."""
    async with staged(tmp_path, launch) as stage:
        yield stage
