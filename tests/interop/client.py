"""Controls a published client that runs in a separate process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import trio

from tests.support.deadlines import HANG_TIMEOUT_S

T = TypeVar("T")
HERE: Final = Path(__file__).parent


@dataclass(eq=False)
class Client:
    """A published client in its process; `seen` has all its reports so far."""

    process: trio.Process
    seen: list[dict[str, Any]] = field(default_factory=list)
    gone: bool = False
    _news: trio.Event = field(default_factory=trio.Event)

    async def do(self, command: str, **details: Any) -> None:
        """Send the client a command."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps({"command": command, **details}).encode() + b"\n")

    def told(self, saw: str) -> list[dict[str, Any]]:
        """Return the client's reports of this kind."""
        return [each for each in self.seen if each["saw"] == saw]

    async def until(self, found: Callable[[], T], within_s: float = HANG_TIMEOUT_S) -> T:
        """Wait until `found` returns a true value; return that value."""
        with trio.move_on_after(within_s):
            while not (value := found()):
                assert not self.gone, f"the client's process has ended after {self.seen[-5:]}"
                await self._news.wait()
            return value
        last = [{name: str(value)[:100] for name, value in each.items()} for each in self.seen[-5:]]
        pytest.fail(f"waited {within_s} s in vain; seen {len(self.seen)}, the last: {last}")

    async def quiet(self, quiet_s: float) -> None:
        """Check that the client reports nothing for this long: no event, no error, no new attempt to connect."""
        seen = len(self.seen)
        with trio.move_on_after(quiet_s):
            while len(self.seen) == seen and not self.gone:
                await self._news.wait()
            pytest.fail(f"not quiet: {self.seen[seen:] or 'its process has ended'}")

    async def subscribed(self, times: int = 1) -> dict[str, Any]:
        """Wait until the client has subscribed this many times; return the latest answer."""
        await self.until(lambda: len(self.told("subscribed")) >= times)
        data: dict[str, Any] = self.told("subscribed")[-1]["data"]
        return data

    async def state(self, state: str) -> None:
        """Wait until the client reports this state."""
        await self.until(lambda: self.states[-1:] == [state])

    async def error(self, code: int) -> None:
        """Wait until the client reports this error code."""
        await self.until(lambda: {"saw": "error", "code": code} in self.seen)

    async def refused(self) -> tuple[int, str]:
        """Return status and type of the client's last refused subscription."""
        await self.until(lambda: self.told("refused"))
        return self.told("refused")[-1]["status"], self.told("refused")[-1]["type"]

    @property
    def states(self) -> list[str]:
        """The client's states so far, in order."""
        return [each["state"] for each in self.told("state")]

    @property
    def events_before_its_return(self) -> int:
        """The number of events that the client had at its second subscription."""
        again = self.seen.index(self.told("subscribed")[1], self.seen.index(self.told("subscribed")[0]) + 1)
        return sum(each["saw"] == "event" for each in self.seen[:again])

    @property
    def events(self) -> list[str]:
        """The envelopes of the received events, in order of arrival."""
        return [each["text"] for each in self.told("event")]

    async def have(self, envelopes: list[str]) -> None:
        """Wait until the client has received all these, in any order."""
        await self.until(lambda: set(envelopes) <= set(self.events))

    async def run(self) -> None:
        """Record the client's reports."""
        assert self.process.stdout is not None
        rest = b""
        async for data in self.process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            self.seen += map(json.loads, lines)
            self._tell()
        self.gone = True
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = trio.Event()


Launch = Callable[[str], Awaitable[Client]]
"""Starts one of the scripts beside this file."""


@asynccontextmanager
async def launching() -> AsyncIterator[Launch]:
    """Yield a function that starts clients; all of them have ended after the block."""
    started: list[Client] = []

    async def launch(script: str) -> Client:
        program = shutil.which("node") if script.endswith(".mjs") else sys.executable
        assert program is not None
        environ = {**os.environ, "NO_PROXY": "*", "no_proxy": "*"}
        command = [program, str(HERE / script)]
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        )
        started.append(Client(process))
        nursery.start_soon(started[-1].run)
        return started[-1]

    async with trio.open_nursery() as nursery:
        try:
            yield launch
        finally:
            with trio.CancelScope(shield=True):
                for client in started:
                    await _end(client.process)
            nursery.cancel_scope.cancel()


async def _end(process: trio.Process) -> None:
    assert process.stdin is not None
    await process.stdin.aclose()
    with trio.move_on_after(5):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
