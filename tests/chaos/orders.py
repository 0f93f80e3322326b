"""The commands of `deskwire` as whoever operates the installation gives them, beside its nodes or when those have ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import orjson
import trio

from tests.support.sockets.server_process import environment


async def order(environ: Mapping[str, str], *words: str) -> tuple[int, bytes]:
    """Give a command; its exit status, and what it has printed."""
    done = await trio.run_process(
        [sys.executable, "-m", "deskwire", *words, "--json"],
        capture_stdout=True,
        stderr=subprocess.STDOUT,
        check=False,
        env={**environment(), **environ},
    )
    return done.returncode, done.stdout


async def made(environ: Mapping[str, str], *words: str) -> dict[str, Any]:
    """Have something made; what the command says of it."""
    status, said = await order(environ, *words)
    assert status == 0, said.decode()
    answer: dict[str, Any] = orjson.loads(said)
    return answer


async def broken_rules(environ: Mapping[str, str]) -> list[str]:
    """Everything that `deskwire check` objects to, the bytes of uploads included."""
    status, said = await order(environ, "check", "--files")
    try:
        report: dict[str, Any] = orjson.loads(said)
    except orjson.JSONDecodeError:
        return [f"`deskwire check` ended with status {status}: {said.decode()[-1_000:]}"]
    return [f"`deskwire check`: {each['code']}: {each['message']}" for each in report["problems"]]
