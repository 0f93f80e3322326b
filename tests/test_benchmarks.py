"""The benchmarks run and leave figures for everything; how large those are is nothing that a test can say."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import BENCHMARKS

ROOT = Path(__file__).parent.parent
SECTIONS = {
    "post": ["post"],
    "deliver": ["latency", "maximum"],
    "fan-out": ["fan-out", "consumer"],
    "drain": ["drain"],
    "isolation": ["isolation"],
    "backlog": ["backlog"],
    "memory": ["memory"],
    "engine": ["engine"],
    "start": ["start"],
    "tickets": ["tickets", "bulk"],
    "import": ["import", "import-beside"],
}
"""What each benchmark leaves."""

CHOSEN = list(SECTIONS) if os.environ.get("BENCHMARKS_LONG") else ["post", "deliver", "engine"]
"""All of them take three minutes; `BENCHMARKS_LONG=1` tries them all."""

EXPECTED = [section for name in CHOSEN for section in SECTIONS[name]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a quick run has left its results."""
    folder = tmp_path_factory.mktemp("results")
    only = [argument for name in CHOSEN for argument in ("--only", name)]
    command = [sys.executable, "-m", "benchmarks", "--quick", *only, "--out", str(folder)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    answer = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=900
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder


def test_every_benchmark_is_known_here() -> None:
    assert list(BENCHMARKS) == list(SECTIONS)


def test_a_quick_run_saves_figures_for_every_benchmark_as_json(saved: Path) -> None:
    (path,) = saved.glob("*.json")
    document = json.loads(path.read_text())
    assert [section["name"] for section in document["sections"]] == EXPECTED
    for section in document["sections"]:
        for row in section["rows"]:
            assert len(row) == len(section["columns"])
            assert all(math.isfinite(cell) for cell in row if isinstance(cell, int | float)), row


def test_a_quick_run_sees_every_message_at_the_consumer_and_at_the_webhook(saved: Path) -> None:
    (path,) = saved.glob("*.json")
    sections = {section["name"]: section["rows"] for section in json.loads(path.read_text())["sections"]}
    posted, at_the_consumer, at_the_webhook = (row[1] for row in sections["latency"])
    assert posted == at_the_consumer == at_the_webhook > 0


def test_a_quick_run_saves_the_same_tables_for_the_documentation(saved: Path) -> None:
    (path,) = saved.glob("*.md")
    assert path.read_text().count("\n### ") == len(EXPECTED)
