"""`deskwire serve` as a process of its own, which tests may stop, kill and start again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson
import trio

READY_S = 90.0  # of a start that shares its processor with much else
LOOK_S = 0.02  # nothing announces a process that is ready but its answer


def environment() -> Mapping[str, str]:
    """A subprocess's environment: without settings, and with the modules that this process sees."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DESKWIRE_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def seen(http: httpx.AsyncClient, url: str, status: int) -> httpx.Response:
    """What `/readyz` answers once it has this status."""
    with trio.fail_after(READY_S):
        while True:
            answer = await http.get(f"{url}/readyz")
            if answer.status_code == status:
                return answer
            await trio.sleep(LOOK_S)  # looks again: nothing announces it


class EndedError(Exception):
    """A process that ended before it was ready; its words are what it has said."""


class Server:
    """A server on one data directory and port, over several starts.

    Args:
        options: further ones of `serve`.
        environ: further variables of its environment.
        wrapped: a command that starts the server's own, which follows it.
        port: where it listens; one that is free now if not given.
    """

    def __init__(
        self,
        directory: Path,
        *options: str,
        environ: Mapping[str, str] | None = None,
        wrapped: Sequence[str] = (),
        port: int | None = None,
    ) -> None:
        self.port = port or free_port()
        self.directory = directory
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: trio.Process | None = None
        self._options = ("--data", str(directory / "data"), "--port", str(self.port), *options)
        self._environ = environ or {}
        self._wrapped = wrapped

    async def start(self) -> None:
        """Start it and wait until it is ready. Raises EndedError if it ends before that."""
        with (self.directory / "serve.log").open("ab") as output:
            self._process = await trio.lowlevel.open_process(
                [
                    *self._wrapped,
                    *(sys.executable, "-m", "deskwire", "serve", "--log-level", "warning", *self._options),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment(), **self._environ},
            )
        with trio.fail_after(READY_S):
            async with httpx.AsyncClient(trust_env=False) as client:
                while not await self._ready(client):
                    if self._process.poll() is not None:
                        raise EndedError(self.log())
                    await trio.sleep(LOOK_S)  # looks again: nothing announces it

    async def _ready(self, client: httpx.AsyncClient) -> bool:
        try:
            return (await client.get(f"{self.url}/readyz")).is_success
        except httpx.TransportError:
            return False

    def demo(self) -> dict[str, Any]:
        """What `demo.json` says."""
        said: dict[str, Any] = orjson.loads((self.directory / "data" / "demo.json").read_bytes())
        return said

    @property
    def started(self) -> bool:
        """True once it has a process."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        """Everything that it has said."""
        return (self.directory / "serve.log").read_text()

    async def wait_for_log(self, words: str, times: int = 1) -> None:
        """Wait until it has said this so often."""
        with trio.fail_after(READY_S):
            while True:
                if self.log().count(words) >= times:
                    return
                await trio.sleep(LOOK_S)  # looks again: nothing announces it

    async def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        """End it in order, if it runs; its exit status."""
        if self._process is None:
            return 0
        with trio.CancelScope(shield=True, deadline=trio.current_time() + READY_S):
            if self._process.poll() is None:
                self._process.terminate()
            return await self._process.wait()
        await self.kill()
        return -1
