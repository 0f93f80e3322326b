"""The commands of the operator's guide, from an empty directory to the first event."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import trio

from tests.docs.pages import blocks
from tests.docs.test_commands import PREAMBLE, needs_tools
from tests.support.root import ROOT
from tests.support.sockets.server_process import environment, free_port

pytestmark = pytest.mark.long


@needs_tools
async def test_the_commands_from_nothing_to_the_first_event_work_as_they_are(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "deskwire"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deskwire "$@"\n')
    program.chmod(0o755)
    page = ROOT / "docs/guide/provisioning.md"
    shown = "\n".join(block.text for block in blocks(page) if block.words == ("sh", "provision"))
    port = str(free_port())
    script = PREAMBLE + shown.replace("curl -s ", "curl -sS --fail-with-body ").replace("8080", port)
    done = await trio.run_process(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={
            **environment(),
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "DESKWIRE_PORT": port,
            "NO_PROXY": "*",
            "no_proxy": "*",
        },
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    output = done.stdout.decode()
    assert done.returncode == 0, output + done.stderr.decode()
    assert re.search(r'"type": ?"conversation.created"', output)
    assert "sk_" not in output
    assert not (tmp_path / "support-data" / "demo.json").exists()
