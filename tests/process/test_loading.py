"""The modules that a server does not load at its start (ADR 29)."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import Server

OF_TERMINALS = {"pygments.token", "rich.console"}
OF_THE_REFERENCE = {
    "deskwire.http.description.openapi.document",
    "deskwire.http.description.asyncapi.document",
}


def loaded(directory: Path) -> set[str]:
    """Return the modules that the server has loaded so far, from Python's import log."""
    return set(re.findall(r"^import time:.*\| +(\S+)$", (directory / "serve.log").read_text(), re.MULTILINE))


async def test_generators_of_the_reference_are_loaded_on_the_first_request(tmp_path: Path) -> None:
    server = Server(tmp_path, environ={"PYTHONPROFILEIMPORTTIME": "1"})
    await server.start()
    try:
        at_first = loaded(tmp_path)
        assert {"hypercorn", "pydantic", "quart", "structlog", "trio"} <= at_first
        assert at_first & (OF_THE_REFERENCE | OF_TERMINALS) == set()
        async with httpx.AsyncClient(base_url=server.url, timeout=HANG_TIMEOUT_S) as http:
            assert (await http.get("/v3/openapi.json")).status_code == 200
        assert loaded(tmp_path) & OF_THE_REFERENCE == {"deskwire.http.description.openapi.document"}
    finally:
        await server.stop()
