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

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.forked_process import ForkedProcess

LOOK_S = 0.02  # only its answer shows that a process is ready


def environment() -> Mapping[str, str]:
    """Return a subprocess's environment: without settings, and with the modules that this process sees."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DESKWIRE_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def seen(http: httpx.AsyncClient, url: str, status: int) -> httpx.Response:
    """Return the answer of `/readyz` once it has this status."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            answer = await http.get(f"{url}/readyz")
            if answer.status_code == status:
                return answer
            await trio.sleep(LOOK_S)  # poll: there is no notification


class EndedError(Exception):
    """A process that ended before it was ready; the message is its output."""


class Server:
    """A server on one data directory and port, over several starts.

    Args:
        options: further ones of `serve`.
        environ: further variables of its environment.
        wrapped: a command prefix that starts the server's own command.
        executed: start it by a command. Otherwise it is forked from a process that has imported the program, which is faster,
            unless it needs a prefix, or variables for Python or the system.
        port: its port; by default one that is free now.
    """

    def __init__(
        self,
        directory: Path,
        *options: str,
        environ: Mapping[str, str] | None = None,
        wrapped: Sequence[str] = (),
        port: int | None = None,
        executed: bool = False,
    ) -> None:
        self.port = port or free_port()
        self.directory = directory
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: trio.Process | ForkedProcess | None = None
        self._options = ("--data", str(directory / "data"), "--port", str(self.port), *options)
        self._environ = environ or {}
        self._wrapped = wrapped
        own = all(name.startswith("DESKWIRE_") for name in self._environ)
        self._forked = own and not (executed or wrapped)

    async def start(self) -> None:
        """Start the server and wait until it is ready. Raises EndedError if it ends before that."""
        self._process = await self._started()
        with trio.fail_after(HANG_TIMEOUT_S):
            async with httpx.AsyncClient(trust_env=False) as client:
                while not await self._ready(client):
                    if self._process.poll() is not None:
                        raise EndedError(self.log())
                    await trio.sleep(LOOK_S)  # poll: there is no notification

    async def _started(self) -> trio.Process | ForkedProcess:
        arguments = ("serve", "--log-level", "warning", *self._options)
        environ, log = {**environment(), **self._environ}, self.directory / "serve.log"
        if self._forked:
            return ForkedProcess(arguments, environ, log)
        with log.open("ab") as output:
            return await trio.lowlevel.open_process(
                [*self._wrapped, sys.executable, "-m", "deskwire", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environ,
            )

    async def _ready(self, client: httpx.AsyncClient) -> bool:
        try:
            return (await client.get(f"{self.url}/readyz")).is_success
        except httpx.TransportError:
            return False

    def demo(self) -> dict[str, Any]:
        """Return the content of `demo.json`."""
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
        """Return the server's output."""
        return (self.directory / "serve.log").read_text()

    async def wait_for_log(self, words: str, times: int = 1) -> None:
        """Wait until the log has these words this number of times."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                if self.log().count(words) >= times:
                    return
                await trio.sleep(LOOK_S)  # poll: there is no notification

    async def kill(self) -> None:
        """Kill the process with SIGKILL, as in a crash."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        """Stop the process in an orderly way if it runs; return its exit status."""
        if self._process is None:
            return 0
        with trio.CancelScope(shield=True, deadline=trio.current_time() + HANG_TIMEOUT_S):
            if self._process.poll() is None:
                self._process.terminate()
            return await self._process.wait()
        await self.kill()
        return -1
