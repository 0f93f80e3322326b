"""An example in a process of its own, and what it prints."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import LOOK_S, environment


@dataclass(eq=False)
class Example:
    """A running example; `lines` is all that it has printed."""

    process: trio.Process
    lines: list[str] = field(default_factory=list)
    _news: trio.Event = field(default_factory=trio.Event)

    async def listen(self) -> None:
        """Take down what it prints."""
        assert self.process.stdout is not None
        rest = b""
        async for data in self.process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            self.lines += [line.decode() for line in lines]
            self._news.set()
            self._news = trio.Event()

    def with_words(self, *words: str) -> list[str]:
        """Return the lines that have all of these words, from where they begin: PHP puts the time in front."""
        found = [line for line in self.lines if all(word in line for word in words)]
        return [line[line.index(words[0]) :] for line in found]

    async def until(self, count: int, *words: str) -> list[str]:
        """Wait until that many lines have all of these words; return them."""
        with trio.move_on_after(HANG_TIMEOUT_S):
            while len(found := self.with_words(*words)) < count:
                await self._news.wait()
            return found
        raise AssertionError(f"no {words} for {count} times in:\n" + "\n".join(self.lines[-30:]))

    async def end(self) -> None:
        """End it at once, as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@asynccontextmanager
async def running(command: list[str], directory: Path, environ: Mapping[str, str]) -> AsyncIterator[Example]:
    """Yield an example that runs in `directory`; it is ended with the context."""
    kept = {**environment(), "NO_PROXY": "*", "no_proxy": "*", **environ}
    process = await trio.lowlevel.open_process(
        command,
        cwd=directory,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    example = Example(process)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(example.listen)
        try:
            yield example
        finally:
            with trio.CancelScope(shield=True):
                if process.poll() is None:
                    await example.end()
            nursery.cancel_scope.cancel()


async def listening(port: int) -> None:
    """Wait until something listens at this port."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            try:
                await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
            except OSError:
                await trio.sleep(LOOK_S)  # poll: there is no notification
            else:
                return
