"""`deskwire` as a process that is forked from one that has imported the program, so that it is ready in a third of the time.

Tests of other things than the start use it. Each process has its own environment, files and signal handlers.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import trio

_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["deskwire.cli", "deskwire.program.serve", __name__])


class ForkedProcess:
    """The part of `trio.Process` that tests use.

    Args:
        arguments: those of the command line of `deskwire`.
        output: the file to which the process appends its output.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], output: Path) -> None:
        self._process = _FORKS.Process(target=_run, args=(tuple(arguments), dict(environ), str(output)))
        self._process.start()
        assert self._process.pid is not None, "it has started"
        self.pid: Final = self._process.pid

    def poll(self) -> int | None:
        """Return the exit status; None while the process runs."""
        return self._process.exitcode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    async def wait(self) -> int:
        """Wait until the process has ended, and return its exit status."""
        await trio.lowlevel.wait_readable(self._process.sentinel)
        self._process.join()
        status = self._process.exitcode
        assert status is not None, "it has ended"
        return status


def _run(arguments: tuple[str, ...], environ: dict[str, str], output: str) -> None:
    """Run the command line with these variables and this output."""
    from deskwire.__main__ import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["deskwire", *arguments]
    with open(os.devnull, "rb") as nothing, open(output, "ab", buffering=0) as file:
        os.dup2(nothing.fileno(), 0)
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    main()
