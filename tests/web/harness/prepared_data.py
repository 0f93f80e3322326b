"""A data directory with the demo project, made once for all services of a test process, and copied for each."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import trio

from tests.support.sockets.server_process import Server

_DATA = "data"


def prepare(directory: Path, environ: Mapping[str, str]) -> None:
    """Give a service in this directory the data of one that was started and stopped in order, unless it has data."""
    if not (directory / _DATA).exists():
        shutil.copytree(_prepared(tuple(environ.items())) / _DATA, directory / _DATA)


@lru_cache
def _prepared(environ: tuple[tuple[str, str], ...]) -> Path:
    folder = tempfile.TemporaryDirectory(prefix="deskwire-prepared-")
    _FOLDERS.append(folder)
    server = Server(Path(folder.name), environ=dict(environ))

    async def make() -> None:
        try:
            await server.start()
        finally:
            await server.stop()

    trio.run(make)
    return Path(folder.name)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # each is removed when the process ends
