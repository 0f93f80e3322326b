"""The servers that Deskwire is compared with, each a process on the servers' core, if it is installed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.support.sockets.server_process import free_port

from benchmarks import processes
from benchmarks.nats_wire import prepare
from benchmarks.service import Server

ASGI: Final = "empty ASGI app, Hypercorn"
QUART: Final = "empty Quart-Trio route"
FASTAPI: Final = "FastAPI"
FASTAPIS: Final = {f"{FASTAPI}, one row, def": "def", f"{FASTAPI}, one row, async def": "async"}
"""The two natural ways to write its route; ratios are to the faster one."""
NATS: Final = "NATS JetStream"
_START_S: Final = 15.0
_LOOK_S: Final = 0.05


def has_fastapi() -> bool:
    """Return whether the bench group's FastAPI and uvicorn are installed."""
    return all(find_spec(name) is not None for name in ("fastapi", "uvicorn"))


def nats_server() -> str | None:
    """Return the path of the program, beside this Python or on the path; None if it is not installed."""
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.exists() else shutil.which("nats-server")


def missing() -> list[str]:
    """Return a line for each server that is left out."""
    lines = [] if has_fastapi() else [f"{FASTAPI}: left out, as fastapi and uvicorn are not installed"]
    return lines if nats_server() else [*lines, f"{NATS}: left out, as nats-server is not installed"]


@contextmanager
def hypercorn(kind: str) -> Iterator[Server]:
    """Run an empty app on stock Hypercorn: `asgi` or `quart`."""
    process = processes.start("benchmarks.reference", kind, core=processes.SERVER)
    try:
        yield Server(kind, process, int(processes.line(process, "http").rpartition(":")[2]))
    finally:
        processes.stop(process)


@contextmanager
def fastapi(directory: Path, kind: str) -> Iterator[Server]:
    """Run `benchmarks/fastapi_service.py`, which writes a row of SQLite for each message."""
    directory.mkdir()
    process = processes.start("benchmarks.fastapi_service", str(directory), kind, core=processes.SERVER)
    try:
        port = int(processes.line(process, "http").rpartition(":")[2])
        accepts(process, port)
        yield Server("fastapi", process, port)
    finally:
        processes.stop(process)


@contextmanager
def nats(directory: Path, body: str, *, pushed: bool = False) -> Iterator[Server]:
    """Run JetStream on a file that is synced at every publication of `body`, with a push consumer."""
    directory.mkdir()
    port = free_port()
    settings = (
        f'host: "127.0.0.1"\nport: {port}\njetstream {{ store_dir: "{directory}", sync_interval: always }}\n'
    )
    config = directory / "nats.conf"
    config.write_text(settings)
    program = nats_server()
    assert program is not None, "only an installed program is started"
    process = processes.run([program, "-c", str(config)], core=processes.SERVER, quiet=True)
    try:
        accepts(process, port)
        prepare(port, pushed=pushed)
        yield Server("nats", process, port, message=body, wire="nats")
    finally:
        processes.stop(process)


def accepts(process: subprocess.Popen[str], port: int, give_up_s: float = _START_S) -> None:
    """Wait until the server accepts connections. Raises RuntimeError if it ends first or takes too long."""
    give_up = time.monotonic() + give_up_s
    while time.monotonic() < give_up and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(_LOOK_S)
        else:
            return
    raise RuntimeError(f"{process.args!r} does not accept connections")
