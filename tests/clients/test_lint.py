"""Spectral and Redocly find nothing in the descriptions of the API, not even a warning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.clients.generating import BINARIES, TOOLS, run
from tests.support.api.openapi_check import described

SPECTRAL: Sequence[str | Path] = (
    "spectral",
    "lint",
    "-r",
    TOOLS / "spectral.yaml",
    "--fail-severity=warn",
    "--quiet",
)
REDOCLY: Sequence[str | Path] = ("redocly", "lint", "--config", TOOLS / "redocly.yaml", "--format=stylish")


@pytest.mark.parametrize("linter", [SPECTRAL, REDOCLY], ids=["spectral", "redocly"])
@pytest.mark.parametrize("name", ["openapi"])
def test_a_linter_finds_nothing(tmp_path: Path, name: str, linter: Sequence[str | Path]) -> None:
    (tmp_path / f"{name}.json").write_text(json.dumps(described()))
    program, *options = linter
    done = run([BINARIES / program, *options, f"{name}.json"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
