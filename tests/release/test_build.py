"""The builder says which part of a release it can't make."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("cyclonedx", reason="`make release` installs the group `release`")

from release.build import NODE_TOOLS, Release


def release(repository: Path) -> Release:
    return Release(
        repository, "HEAD", "0" * 40, "0.2.0", datetime(2026, 11, 28, tzinfo=UTC), "https://example.com"
    )


def test_a_builder_without_npm_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert release(tmp_path).lacks == "npm is missing"


def test_a_builder_without_the_compiler_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "npm").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert release(tmp_path).lacks == f"{NODE_TOOLS}/tsc is missing"
    (tmp_path / NODE_TOOLS).mkdir(parents=True)
    (tmp_path / NODE_TOOLS / "tsc").touch()
    assert release(tmp_path).lacks is None
