"""The example subscribers of the guide, run unmodified."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.interop.client import HERE
from tests.interop.stage import Stage
from tests.support.deadlines import HANG_TIMEOUT_S

pytestmark = pytest.mark.long

EXAMPLES = HERE.parents[1] / "docs/examples"


async def prints(stage: Stage, command: list[str]) -> list[str]:
    """Return the output of an example after it has received three events posted after its subscription."""
    environ = {**os.environ, "BASE": stage.service.url, "KEY": stage.service.demo["serverKey"]}
    environ.update(NO_PROXY="*", no_proxy="*")
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, env=environ)
    try:
        with trio.fail_after(HANG_TIMEOUT_S):
            printed = await more(process)
            while not printed.endswith(b"\n"):
                printed += await more(process)
            await stage.talk(4)
            while printed.count(b"message.created") < 3 or not printed.endswith(b"\n"):
                printed += await more(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
    return printed.decode().splitlines()


async def more(process: trio.Process) -> bytes:
    assert process.stdout is not None
    printed = bytes(await process.stdout.receive_some())
    assert printed, "the example has ended"
    return printed


async def check(stage: Stage, command: list[str]) -> None:
    first, *others = await prints(stage, command)
    assert first.startswith("subscribed")
    messages = [line.split()[:2] for line in others if line.startswith("message.created")]
    assert messages == [["message.created", str(number)] for number in (2, 3, 4)]


@pytest.mark.usefixtures("node")
async def test_javascript_example_prints_posted_messages(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    shutil.copy(EXAMPLES / "subscribe.mjs", tmp_path)
    await check(stage, ["node", str(tmp_path / "subscribe.mjs")])


@pytest.mark.usefixtures("pysher")
async def test_python_example_prints_posted_messages(stage: Stage) -> None:
    await check(stage, [sys.executable, str(EXAMPLES / "subscribe.py")])
