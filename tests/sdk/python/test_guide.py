"""The guide's examples, run in order as one program beside a real service."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path
from typing import Final

import trio

from tests.docs.test_commands import END, PORT, agrees
from tests.support.api.service import Service
from tests.support.root import ROOT
from tests.support.sockets.server_process import environment

PAGE: Final = (ROOT / "docs/guide/sdk-python.md").read_text("utf-8")
BLOCKS: Final = re.compile(
    r"^```python run\n(.*?)^```$(?:\n\n```text out\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)


def test_every_example_of_the_guide_is_run() -> None:
    assert len(BLOCKS.findall(PAGE)) == PAGE.count("```python") == 9


async def test_the_examples_of_the_guide_print_what_it_shows(service: Service, tmp_path: Path) -> None:
    blocks = BLOCKS.findall(PAGE)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    program = "".join(f"{text}print('\\x1e')\n" for text, _ in blocks).replace(PORT, port)
    environ = {
        **environment(),
        "PYTHONPATH": str(ROOT / "sdk/python/src"),
        "DESKWIRE_URL": service.url,
        "DESKWIRE_API_KEY": service.demo["serverKey"],
    }
    with trio.fail_after(120):
        done = await trio.run_process(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environ,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr.decode()
    printed = done.stdout.decode().split(END)
    for (text, shown), output in zip(blocks, printed, strict=False):
        assert agrees(shown, output), f"{text}\nprinted:\n{output}"
