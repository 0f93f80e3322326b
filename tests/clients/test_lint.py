"""Spectral and Redocly find nothing in the descriptions of the API, not even a warning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from deskwire.http.description.asyncapi.document import document
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
def test_a_linter_finds_nothing_in_the_openapi_document(tmp_path: Path, linter: Sequence[str | Path]) -> None:
    check(tmp_path, dict(described()), linter)


def test_spectral_finds_nothing_in_the_asyncapi_document(tmp_path: Path) -> None:
    """It has AsyncAPI's own schema of the document; Redocly's takes neither a channel without an address nor a discriminator."""
    check(tmp_path, document(), SPECTRAL)


def check(directory: Path, described: dict[str, Any], linter: Sequence[str | Path]) -> None:
    """Fail with the findings of a linter in a document."""
    (directory / "document.json").write_text(json.dumps(described))
    program, *options = linter
    done = run([BINARIES / program, *options, "document.json"], directory)
    assert done.returncode == 0, done.stdout + done.stderr
