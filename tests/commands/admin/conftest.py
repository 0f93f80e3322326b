"""Commands run in this process, each as a user would type it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from deskwire.cli import cli

Deskwire = Callable[..., Result]


@pytest.fixture
def deskwire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deskwire:
    """Run commands on the data directory `data`."""
    for name in [name for name in os.environ if name.startswith("DESKWIRE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DESKWIRE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DESKWIRE_ARGON2_MEMORY_KIB", "8192")
    return lambda *arguments, **more: CliRunner().invoke(cli, arguments, **more)


def good(result: Result) -> str:
    """Return the output of a command that succeeded, without the line's end."""
    assert result.exit_code == 0, result.output
    return result.stdout.rstrip("\n")


def listed(result: Result) -> Any:
    """Return the JSON that a command has printed."""
    return json.loads(good(result))
