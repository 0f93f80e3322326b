"""A service for tests of the API as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.api.service import Service, running


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service on an empty directory, whose webhooks reach nobody: their proxy is a port that nobody listens on.

    There is no rate limit, as more calls are made up than a project has.
    """
    directory = tmp_path / "service"
    directory.mkdir()
    async with running(directory, webhook_proxy="http://127.0.0.1:9", rate_limit_per_minute=0) as started:
        yield started
