"""Published clients, unmodified, against a real service.

pusher-js, laravel-echo and stripe come from the npm registry (`package-lock.json` beside this file says which), Pysher is one
of the development dependencies. Each runs in a separate process, which reads commands and reports events as lines of
JSON. Without Node, or if the packages cannot be installed, the tests are skipped with the reason.

`INTEROP_LONG=1` makes the quiet times 60 s, and restarts the server on its port without a proxy in front.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.interop.client import HERE, Launch, launching
from tests.interop.stage import Stage, staged


@pytest.fixture(scope="session")
def node() -> None:
    """Require Node and install the locked packages."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        pytest.skip("Node or npm is not installed: the npm clients can't be run")
    with (HERE / ".installing").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # the tests may run in several processes
        _install(npm)


def _install(npm: str) -> None:
    if _installed():
        return
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not finish in 2 minutes: the npm clients can't be run")
    if done.returncode != 0:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        pytest.skip(f"npm can't install the clients: {reasons[:1] or done.stderr[-300:]}")


def _installed() -> bool:
    """Return whether npm's record of its last installation matches the lock."""

    def packages(path: Path) -> dict[str, str]:
        found: dict[str, dict[str, str]] = json.loads(path.read_text())["packages"]
        return {name: each["integrity"] for name, each in found.items() if name}

    try:
        return packages(HERE / "node_modules/.package-lock.json") == packages(HERE / "package-lock.json")
    except (OSError, KeyError, ValueError):
        return False


@pytest.fixture(scope="session")
def pysher() -> None:
    """Require Pysher."""
    if importlib.util.find_spec("pysher") is None:
        pytest.skip("Pysher is not installed; it is one of the locked development dependencies")


@pytest.fixture
async def launch() -> AsyncIterator[Launch]:
    """Yield a function that starts clients."""
    async with launching() as launch:
        yield launch


@pytest.fixture
async def stage(tmp_path: Path, launch: Launch) -> AsyncIterator[Stage]:
    """Yield a stage: a service on an empty directory, a proxy, and clients."""
    async with staged(tmp_path, launch) as stage:
        yield stage
