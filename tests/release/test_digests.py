"""Digests that sha256sum(1) reads, and the comparison of two builds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from release.digests import SUMS, differences, sums


def folder(path: Path, **files: str) -> Path:
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def test_two_builds_differ_in_what_has_other_bytes_and_in_what_one_of_them_lacks(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", same="x", other="x", lone="x")
    two = folder(tmp_path / "two", same="x", other="y", second="x")
    assert [each.rpartition(" ")[2] for each in differences(one, two)] == ["lone", "other", "second"]
    assert differences(one, one) == []


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum to ask")
def test_sha256sum_accepts_the_digests_and_finds_a_change(tmp_path: Path) -> None:
    files = folder(tmp_path / "files", a="x", b="y")
    (files / SUMS).write_text(sums(files))
    (files / SUMS).write_text(sums(files))  # the list itself is not in it
    check = ["sha256sum", "--check", "--strict", "--quiet", SUMS]
    assert subprocess.run(check, cwd=files, check=False).returncode == 0
    (files / "b").write_text("z")
    assert subprocess.run(check, cwd=files, check=False).returncode != 0
