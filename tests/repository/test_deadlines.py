"""Tests depend neither on the load of the machine nor on chance: generous deadlines, and the same examples in each run."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.deadlines import HANG_TIMEOUT_S, fail_after_idle
from tests.support.root import ROOT

REAL_TIME: Final = ("api", "commands", "deploy", "http", "interop", "process", "protocol", "support")
"""Folders whose tests wait for real processes, sockets and threads, unless they ask for a virtual clock."""
WITHOUT_HEALTH_CHECKS: Final = {"tests/model/steps.py", "tests/repository/test_deadlines.py"}
"""Files whose properties have all health checks suppressed, and this one."""


async def test_computing_does_not_count_as_waiting() -> None:
    with fail_after_idle(0.2):
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            await trio.lowlevel.checkpoint()


async def test_waiting_longer_than_the_limit_fails() -> None:
    with pytest.raises(AssertionError, match=r"more than 0\.05 s"), fail_after_idle(0.05):
        await trio.sleep(0.1)


@pytest.mark.skipif(os.environ.get("RANDOM_EXAMPLES") == "1", reason="make verify and make fuzz want others")
def test_properties_have_the_same_examples_in_each_run() -> None:
    assert settings.default is not None
    assert settings.default.derandomize
    runs: list[list[int]] = []

    @given(st.integers())
    @settings(max_examples=20)
    def note(number: int) -> None:
        runs[-1].append(number)

    for _ in range(2):
        runs.append([])
        note()
    assert runs[0] == runs[1]


def calls(path: Path) -> Iterator[ast.Call]:
    """Yield each call in a file."""
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))


def test_real_waits_have_a_generous_deadline() -> None:
    short = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for folder in REAL_TIME
        for path in (ROOT / "tests" / folder).rglob("*.py")
        if "autojump_clock" not in (text := path.read_text())
        for found in re.finditer(r"trio\.fail_after\(([0-9.]+)\)", text)
        if float(found[1]) < HANG_TIMEOUT_S
    ]
    assert not short, "use HANG_TIMEOUT_S of tests.support.deadlines, or fail_after_idle"


def test_properties_build_their_inputs_instead_of_filtering() -> None:
    """A filter that drops most examples trips Hypothesis's health check, by chance."""
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        if "hypothesis" in (text := path.read_text()) and "node_modules" not in path.parts
        if str(path.relative_to(ROOT)) not in WITHOUT_HEALTH_CHECKS
        if "filter(" in text or "assume(" in text
        for call in calls(path)
        if ast.unparse(call.func).rpartition(".")[2] in ("assume", "filter", "reject") and len(call.args) == 1
    ]
    assert not found


def test_tests_ask_for_the_virtual_clock_of_their_fixtures() -> None:
    """pytest-trio takes the clock from the parameters of the test alone: a fixture's clock would be the real one."""
    real = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        if "autojump_clock" not in (text := path.read_text()):
            continue
        functions = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.AsyncFunctionDef)]
        asked = {each.name: {arg.arg for arg in each.args.args} for each in functions}
        fixtures = {
            each.name for each in functions if "pytest.fixture" in map(ast.unparse, each.decorator_list)
        }
        virtual = {name for name in fixtures if "autojump_clock" in asked[name]}
        real += [
            f"{path.relative_to(ROOT)}:{name}"
            for name, arguments in asked.items()
            if name.startswith("test_") and arguments & virtual and "autojump_clock" not in arguments
        ]
    assert not real
