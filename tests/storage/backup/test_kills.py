"""`kill -9` at every step of a backup, a restore, the copy before an upgrade, and a rotation of the secret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.root import ROOT
from tests.support.sockets.server_process import environment

pytestmark = pytest.mark.long


def test_a_kill_at_any_step_leaves_nothing_half_done(data: Path) -> None:
    """Slow: a separate interpreter, because its counter of steps cannot be removed, and a hundred kills."""
    environ = dict(environment())
    environ["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    done = subprocess.run(
        [sys.executable, "-m", "tests.storage.backup.killing", str(data.parent)],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [int(line) for line in done.stdout.split("\n") if line.isdecimal()]
    # Of a backup, a restore, the copy before an upgrade, the removal of copies, and a rotation of the secret.
    least = (18, 40, 25, 20, 6)
    assert all(taken >= many for taken, many in zip(steps, least, strict=True)), steps
