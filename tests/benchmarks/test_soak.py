"""The soak runs, and its verdict tells a leak from noise."""

from __future__ import annotations

import csv
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.soak.plot import Panel, picture
from benchmarks.soak.sample import metrics
from benchmarks.soak.trend import BLOCKS, trend

from tests.support.root import ROOT

TIMES = [number * 2.0 for number in range(300)]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory and descriptors are read from Linux's /proc")
def test_a_run_of_seconds_leaves_table_picture_and_verdict(tmp_path: Path) -> None:
    """Takes ten seconds, most of it the start and the end of a process under load."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.soak",
        "--minutes",
        "0.05",
        "--rate",
        "20",
        "--out",
        str(tmp_path),
    ]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # so short a run may find growth
    assert " 0 of them refused" in " ".join(done.stdout.split()), done.stdout + done.stderr
    with (tmp_path / "soak.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["memory_mb"]) > 0
    assert int(rows[-1]["frames"]) > 0
    assert int(rows[-1]["webhooks"]) > 0
    ElementTree.parse(tmp_path / "soak.svg")
    assert "| memory, MB |" in (tmp_path / "soak.md").read_text()


def test_noise_is_flat_and_a_leak_grows() -> None:
    chance = random.Random(1)
    noise = [100 + chance.gauss(0, 3) for _ in TIMES]
    assert trend(TIMES, noise, 1.0).verdict == "flat"
    leak = [value + at / 60 for at, value in zip(TIMES, noise, strict=True)]
    found = trend(TIMES, leak, 1.0)
    assert found.verdict == "grows"
    assert abs(found.slope - 60) < found.margin


def test_what_rises_in_the_first_half_only_is_flat() -> None:
    assert trend(TIMES, [min(at, 200.0) for at in TIMES], 1.0).verdict == "flat"


def test_growth_that_does_not_matter_is_flat() -> None:
    assert trend(TIMES, [100 + at / 10_000 for at in TIMES], 1.0).verdict == "flat"


def test_too_few_samples_are_no_verdict() -> None:
    few = [math.nan] * 250 + [1.0] * (BLOCKS - 1)
    assert trend(TIMES[: len(few)], few, 1.0).verdict == "too short"


def test_series_of_one_name_are_added_up() -> None:
    text = '# HELP a b\na{x="1"} 2.0\na{x="2"} 3.0\nb 1e3\n'
    assert metrics(text) == {"a": 5.0, "b": 1000.0}


def test_a_picture_of_nothing_yet_is_drawn() -> None:
    ElementTree.fromstring(picture("<title>", [0.0, 1.0], [Panel("a & b", {"x": [math.nan, math.nan]})]))
