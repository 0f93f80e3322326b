"""The demo's own service: a process on a temporary data directory, which is removed at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import orjson
import trio
from msgspec import Struct

from deskwire.commands.demo.client import DemoError

_READY_TIMEOUT_S: Final = 30.0
_STOP_TIMEOUT_S: Final = 30.0
_POLL_INTERVAL_S: Final = 0.05
_LOG: Final = "serve.log"
_LOG_TAIL_CHARACTERS: Final = 2_000
_OPTIONS: Final = ("--port", "0", "--allow-private-webhooks", "--log-level", "warning")
_VARIABLES: Final = {
    # The demo sends requests as fast as they are answered, which a rate limit would slow down.
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
    "DESKWIRE_USER_RATE_LIMIT_PER_MINUTE": "0",
}


class OwnService(Struct, frozen=True):
    """The running service and its directory."""

    base_url: str
    key: str
    directory: Path


@asynccontextmanager
async def own_service(keep: bool) -> AsyncIterator[OwnService]:
    """Run a service for the block, and end it with SIGTERM.

    Args:
        keep: leave the directory with the database and the log in place.

    Raises DemoError if the service does not become ready, or ends with another exit status than 0.
    """
    directory = Path(tempfile.mkdtemp(prefix="deskwire-demo-"))
    program = [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "deskwire"]
    # Settings in the environment are meant for another service.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DESKWIRE_")}
    try:
        with (directory / _LOG).open("wb") as output:
            process = await trio.lowlevel.open_process(
                [*program, "serve", "--data", str(directory / "data"), *_OPTIONS],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=inherited | _VARIABLES,
                start_new_session=True,  # Ctrl-C is for the demo, which then stops the service in order
            )
        try:
            yield await _ready(process, directory)
        finally:
            status = await _stop(process)
        if status != 0:
            raise DemoError(f"The service's exit status was {status}: {_tail(directory)}")
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)


async def _ready(process: trio.Process, directory: Path) -> OwnService:
    with trio.move_on_after(_READY_TIMEOUT_S):
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            while process.poll() is None:
                service = _announced(directory)
                if service is not None and await _is_ready(client, service.base_url):
                    return service
                await trio.sleep(_POLL_INTERVAL_S)
            raise DemoError(f"The demo's own service ended before it was ready: {_tail(directory)}")
    raise DemoError(f"The demo's own service was not ready within {_READY_TIMEOUT_S:g} s: {_tail(directory)}")


def _announced(directory: Path) -> OwnService | None:
    """Read `demo.json`; None until the service has written it, which is atomic."""
    try:
        demo = orjson.loads((directory / "data" / "demo.json").read_bytes())
    except FileNotFoundError:
        return None
    return OwnService(demo["baseUrl"], demo["serverKey"], directory)


async def _is_ready(client: httpx.AsyncClient, base_url: str) -> bool:
    try:
        response = await client.get(f"{base_url}/readyz")
    except httpx.TransportError:
        return False
    return response.is_success


async def _stop(process: trio.Process) -> int:
    """Stop the process, even while the demo is being cancelled. Return its exit status."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + _STOP_TIMEOUT_S) as timeout:
        if process.poll() is None:
            process.terminate()
        await process.wait()
    with trio.CancelScope(shield=True):
        if timeout.cancelled_caught:
            process.kill()
        status = await process.wait()
    return status


def _tail(directory: Path) -> str:
    return (directory / _LOG).read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:].strip() or "no output"
