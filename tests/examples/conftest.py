"""The examples for six languages, run as they are against a service in a process of its own.

A language that is not at hand is skipped with the reason; `make clients` installs the compilers, and fails where something is missing.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.examples.languages import LANGUAGES, Language
from tests.interop.conftest import node
from tests.support.sockets.server_process import Server

__all__ = ["node"]


@pytest.fixture(scope="session", params=LANGUAGES)
def language(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Language:
    """Each of the languages."""
    name = str(request.param)
    if name == "javascript":
        request.getfixturevalue("node")
    return Language(name, tmp_path_factory.mktemp(name))


@pytest.fixture
def at_hand(request: pytest.FixtureRequest, language: Language) -> Language:
    """Each of the languages that the machine has for the example of the test's module."""
    example = request.module.EXAMPLE
    reason = language.missing(example)
    if reason is not None:
        if os.environ.get("CLIENTS") == "required":
            pytest.fail(f"An example can't be run: {reason}")
        pytest.skip(reason)
    return language


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A service whose webhooks reach this machine."""
    server = Server(tmp_path, "--allow-private-webhooks")
    await server.start()
    yield server
    assert await server.stop() == 0


@pytest.fixture
async def api(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the service with the project's server key."""
    headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    async with httpx.AsyncClient(
        base_url=f"{server.url}/v3", headers=headers, trust_env=False, timeout=30
    ) as client:
        yield client
