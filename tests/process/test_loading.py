"""What a server loads at its start, and what with the first request that needs it (ADR 88)."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from tests.support.sockets.server_process import Server

OF_FEW_REQUESTS = {"flask", "h2", "hypercorn", "jinja2", "quart", "quart_trio"}
OF_TERMINALS = {"pygments.token", "rich.console"}


def loaded(directory: Path) -> set[str]:
    """Return the modules that the server has loaded so far, as Python tells them."""
    return set(re.findall(r"^import time:.*\| +(\S+)$", (directory / "serve.log").read_text(), re.MULTILINE))


async def test_what_few_requests_need_is_loaded_with_the_first_of_them(tmp_path: Path) -> None:
    server = Server(tmp_path, environ={"PYTHONPROFILEIMPORTTIME": "1"})
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url) as http:
            assert (await http.get("/healthz")).status_code == 200
            at_first = loaded(tmp_path)
            assert {"pydantic", "structlog", "trio"} <= at_first
            assert at_first & (OF_FEW_REQUESTS | OF_TERMINALS) == set()
            assert (await http.get("/nowhere")).status_code == 404
            assert loaded(tmp_path) & (OF_FEW_REQUESTS | OF_TERMINALS) == OF_FEW_REQUESTS
    finally:
        await server.stop()
