"""A service of the demo's own: a process on a temporary data directory, ended and removed afterwards."""

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

from deskwire.commands.demo.errors import DemoError

READY_S: Final = 30.0
STOP_S: Final = 30.0
_LOOK_S: Final = 0.05  # between two looks whether the service is ready; nothing announces it
_LOG: Final = "serve.log"
_LOG_TAIL: Final = 2_000  # characters
_OPTIONS: Final = ("--port", "0", "--allow-private-webhooks", "--log-level", "warning")
_VARIABLES: Final = {
    # The demo sends as fast as it is answered; what a project may ask for is not what it tries out.
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
    "DESKWIRE_USER_RATE_LIMIT_PER_MINUTE": "0",
}


class OwnService(Struct):
    """The running service; `complaint` says afterwards what was wrong with its end, if anything."""

    base_url: str
    key: str
    directory: Path
    complaint: str | None = None


@asynccontextmanager
async def own_service(keep: bool) -> AsyncIterator[OwnService]:
    """Start a service, and end it with SIGTERM at the end of the block.

    Args:
        keep: leave the directory, with the database and the log, where it is.

    Raises DemoError if it does not get ready.
    """
    directory = Path(tempfile.mkdtemp(prefix="deskwire-demo-"))
    try:
        with (directory / _LOG).open("wb") as output:
            process = await trio.lowlevel.open_process(
                [*_program(), "serve", "--data", str(directory / "data"), *_OPTIONS],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for the demo, which then ends the service in order
            )
        try:
            service = await _ready(process, directory)
            yield service
        finally:
            ended = await _end(process)
        if ended != 0:
            service.complaint = f"the service's exit status was {ended}: {_tail(directory)}"
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)


def _program() -> list[str]:
    """Return the command of this very program, as a module or as a single binary."""
    return [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "deskwire"]


def _environment() -> dict[str, str]:
    """Return this process's environment without the settings, which are meant for another service."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DESKWIRE_")}
    return inherited | _VARIABLES


async def _ready(process: trio.Process, directory: Path) -> OwnService:
    with trio.move_on_after(READY_S):
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            while process.poll() is None:
                service = _announced(directory)
                if service is not None and await _answers(client, service.base_url):
                    return service
                await trio.sleep(_LOOK_S)
            raise DemoError(f"The demo's own service ended before it was ready: {_tail(directory)}")
    raise DemoError(f"The demo's own service was not ready within {READY_S:g} s: {_tail(directory)}")


def _announced(directory: Path) -> OwnService | None:
    """Read `demo.json`, once the service has written it; it appears whole or not at all."""
    try:
        said = orjson.loads((directory / "data" / "demo.json").read_bytes())
    except FileNotFoundError:
        return None
    return OwnService(said["baseUrl"], said["serverKey"], directory)


async def _answers(client: httpx.AsyncClient, base_url: str) -> bool:
    try:
        response = await client.get(f"{base_url}/readyz")
    except httpx.TransportError:
        return False
    return response.is_success


async def _end(process: trio.Process) -> int:
    """Stop the process, whatever is being cancelled meanwhile; its exit status."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_S) as patience:
        if process.poll() is None:
            process.terminate()
        status = await process.wait()
    if patience.cancelled_caught:
        process.kill()
        with trio.CancelScope(shield=True):
            status = await process.wait()
    return status


def _tail(directory: Path) -> str:
    return (directory / _LOG).read_text(errors="replace")[-_LOG_TAIL:].strip() or "it said nothing"
