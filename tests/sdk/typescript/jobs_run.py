"""Runs the compiled jobs with Node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trio

from tests.clients.generating import TOOLS, succeed
from tests.examples.running import Example, running
from tests.support.api.service import Service
from tests.support.root import ROOT

_LIMIT_S: Final = 120.0
NODE: Final = ("node", "--experimental-websocket")  # Node 22 has the global WebSocket without the option


def deno() -> list[str]:
    """Return the command that runs a module with Deno, of which npm has a package for each platform."""
    (program,) = (TOOLS / "node_modules/@deno").glob("*/deno")
    return [str(program), "run", "--no-remote", "--allow-all"]


def credentials(service: Service) -> dict[str, str]:
    """Return the variables with which a job reaches a service."""
    demo = service.demo
    return {
        "BASE": service.url,
        "KEY": demo["serverKey"],
        "TOKEN": demo["token"],
        "PROJECT": demo["projectId"],
    }


@dataclass(frozen=True)
class Jobs:
    """The folder of the compiled jobs."""

    folder: Path
    program: Sequence[str] = NODE

    def command(self, name: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        """Return the command of a job."""
        return [*self.program, *options, str(self.folder / f"{name}.js"), *arguments]

    async def text(
        self,
        name: str,
        environ: dict[str, str],
        *arguments: str,
        given: str = "",
        options: tuple[str, ...] = (),
    ) -> str:
        """Run a job to its end; return its output."""
        with trio.fail_after(_LIMIT_S):
            done = await trio.run_process(
                self.command(name, *arguments, options=options),
                stdin=given.encode(),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env={**os.environ, **environ},
            )
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        return done.stdout.decode()

    async def run(self, name: str, environ: dict[str, str], *arguments: str, **more: Any) -> list[Any]:
        """Run a job to its end; return the lines that it has printed as JSON."""
        return [
            json.loads(line) for line in (await self.text(name, environ, *arguments, **more)).splitlines()
        ]

    def following(
        self, name: str, environ: dict[str, str], folder: Path, *arguments: str
    ) -> AbstractAsyncContextManager[Example]:
        """Start a job that goes on; it is killed with the context."""
        return running(self.command(name, *arguments), folder, environ)


def packed(folder: Path) -> Path:
    """Build the package as a release does; return it."""
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "sdk.typescript_package",
        "0.2.0.dev0+g0a1b2c3",
        folder,
    ]
    return folder / succeed(command, ROOT).strip()


def listed(package: Path) -> list[str]:
    """Return the names of the files in a package."""
    shown = subprocess.run(["tar", "tzf", package], capture_output=True, text=True, check=True)
    return sorted(shown.stdout.splitlines())
