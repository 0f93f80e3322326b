"""Packages of the npm registry that tests run, in the versions of a lock file."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest


def require_packages(folder: Path) -> None:
    """Install the locked packages of a folder, unless they are there. Skip the test without npm; with `WEB=required`, fail."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        _give_up("Node or npm is not installed")
    with (folder / ".installing").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # the tests may run in several processes
        _install(npm, folder)


def _install(npm: str, folder: Path) -> None:
    if _installed(folder):
        return
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        _give_up("npm did not finish in 2 minutes")
    if done.returncode != 0:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        _give_up(f"npm can't install them: {reasons[:1] or done.stderr[-300:]}")


def _installed(folder: Path) -> bool:
    """Return whether npm's record of its last installation matches the lock."""

    def packages(path: Path) -> dict[str, str]:
        found: dict[str, dict[str, str]] = json.loads(path.read_text())["packages"]
        return {name: each["integrity"] for name, each in found.items() if name}

    try:
        return packages(folder / "node_modules/.package-lock.json") == packages(folder / "package-lock.json")
    except (OSError, KeyError, ValueError):
        return False


def _give_up(reason: str) -> NoReturn:
    text = f"{reason}: the npm packages can't be run"
    if os.environ.get("WEB") == "required":
        pytest.fail(text)
    pytest.skip(text)
