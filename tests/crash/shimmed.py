"""A real service on a disk and a clock that the test controls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from tests.crash.shim import Shim
from tests.support.sockets.server_process import Server

_SETTINGS: Final = {
    "DESKWIRE_RETENTION_INTERVAL_S": "3",
    "DESKWIRE_ARGON2_MEMORY_KIB": "8192",
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
}


@asynccontextmanager
async def service(tmp_path: Path, *wrapped: str) -> AsyncIterator[tuple[Shim, Server, httpx.AsyncClient]]:
    """Run the service, with the command `wrapped` if given; yield it and a client with its server key.

    Checks that it ends with status 0 and without a traceback, whatever was done to it.
    """
    shim = Shim(tmp_path, tmp_path / "disk")
    environ = {**_SETTINGS, **shim.environ}
    server = Server(shim.root, "--allow-private-webhooks", environ=environ, wrapped=wrapped)
    await server.start()
    try:
        headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
        url = f"{server.url}/v3"
        async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as http:
            yield shim, server, http
    finally:
        assert await server.stop() == 0, server.log()
        assert "Traceback" not in server.log(), server.log()


async def made(http: httpx.AsyncClient, **headers: str) -> dict[str, Any]:
    """Create a conversation with a message."""
    body = {"contact": {"userId": "u"}, "message": {"text": "Hello"}}
    answer = await http.post("/s2s/conversations", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
