"""Failed tests are run again in CI only; a test that fails twice has failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
FLAKY = """
from pathlib import Path
def test_good(): pass
def test_second_time():
    there = Path("seen").exists()
    Path("seen").touch()
    assert there
"""


def _run(directory: Path, source: str, ci: bool) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_it.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CI": "true" if ci else ""}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "tests.again", "-n", "2"]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def test_test_that_passes_the_second_time_is_named(tmp_path: Path) -> None:
    done = _run(tmp_path, FLAKY, True)
    assert done.returncode == 0
    assert "FLAKY: test_it.py::test_second_time" in done.stdout
    assert "1 failed, 1 passed" in done.stdout, "the first run is not hidden"


def test_a_developer_sees_the_first_failure(tmp_path: Path) -> None:
    done = _run(tmp_path, FLAKY, False)
    assert (done.returncode, "FLAKY" in done.stdout) == (1, False)


@pytest.mark.parametrize(
    "source",
    ["def test_bad():\n    assert 0\n", "def broken(:\n", ""],
    ids=["fails twice", "can't be read", "nothing to run"],
)
def test_broken_test_fails_twice(tmp_path: Path, source: str) -> None:
    done = _run(tmp_path, source, True)
    assert done.returncode != 0
    assert "FLAKY" not in done.stdout
