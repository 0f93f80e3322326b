"""Clients that openapi-generator makes of the API's description, and the linters that read it.

`make clients` installs what they need (a JDK and Node.js come from the system) and fails where something is missing; all other commands
leave these tests out.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.clients.generating import Generator, missing
from tests.support.api.service import Service, running

_ASKED = os.environ.get("CLIENTS") == "required"
if _ASKED and missing():
    raise pytest.UsageError(f"The clients can't be made: {', '.join(missing())} is missing.")

collect_ignore_glob = [] if _ASKED else ["test_*.py"]


@pytest.fixture(scope="session")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    """Makes clients of the description as the service gives it."""
    return Generator(tmp_path_factory.mktemp("clients"))


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service on an empty directory, whose webhooks reach no receiver: their proxy is a port on which no server listens."""
    directory = tmp_path / "service"
    directory.mkdir()
    async with running(directory, webhook_proxy="http://127.0.0.1:9") as started:
        yield started
