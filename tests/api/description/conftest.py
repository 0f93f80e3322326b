"""A service for tests of the API as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.api.service import Service, running


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service on an empty directory, whose webhooks reach no receiver: their proxy is a closed port.

    There is no rate limit, because the tests generate more calls than a project may make.
    """
    directory = tmp_path / "service"
    directory.mkdir()
    async with running(directory, webhook_proxy="http://127.0.0.1:9", rate_limit_per_minute=0) as started:
        yield started
