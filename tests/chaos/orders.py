"""The `deskwire` commands of an operator, run beside the nodes or after they have ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import orjson
import trio

from tests.support.sockets.server_process import environment


async def order(environ: Mapping[str, str], *words: str) -> tuple[int, bytes]:
    """Run a command; return its exit status and its output."""
    done = await trio.run_process(
        [sys.executable, "-m", "deskwire", *words, "--json"],
        capture_stdout=True,
        stderr=subprocess.STDOUT,
        check=False,
        env={**environment(), **environ},
    )
    return done.returncode, done.stdout


async def made(environ: Mapping[str, str], *words: str) -> dict[str, Any]:
    """Run a command that creates something, and return its output."""
    status, said = await order(environ, *words)
    assert status == 0, said.decode()
    answer: dict[str, Any] = orjson.loads(said)
    return answer


async def broken_rules(environ: Mapping[str, str]) -> list[str]:
    """Return all problems that `deskwire check` reports, including those in the contents of uploads."""
    status, said = await order(environ, "check", "--files")
    try:
        report: dict[str, Any] = orjson.loads(said)
    except orjson.JSONDecodeError:
        return [f"`deskwire check` ended with status {status}: {said.decode()[-1_000:]}"]
    return [f"`deskwire check`: {each['code']}: {each['message']}" for each in report["problems"]]
