"""Unit tests start no process or server: a test that uses a starter is not a unit test, and a unit test that starts one fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.api.service import Service, running
from tests.support.root import ROOT
from tests.support.selection import comes_to_a_start
from tests.support.sockets.server_process import Server, environment

STARTING = """
import socket, subprocess, sys

def test_that_starts_a_process():
    getattr(subprocess, "run")([sys.executable, "-c", ""])

def test_that_listens():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))

def test_that_starts_nothing():
    with socket.socket():
        pass
"""


def run() -> None:
    subprocess.run(["true"], check=True)


@contextmanager
def a_run() -> Iterator[None]:
    run()
    yield


class Runner:
    @property
    def ran(self) -> bool:
        with a_run():
            return True


def by_others() -> bool:
    return any(each.ran for each in [Runner()])


@given(st.booleans())
def by_chance(_: bool) -> None:
    run()


async def a_service(directory: Path) -> Service:
    async with running(directory) as service:
        return service


def a_server(directory: Path) -> Server:
    return Server(directory)


def nothing() -> int:
    return len([ROOT, STARTING])


@pytest.mark.parametrize("test", [run, a_run, Runner, by_others, by_chance, a_service, a_server])
def test_starter_reached_in_any_way_is_found(test: object) -> None:
    assert comes_to_a_start(test)


def test_function_without_a_starter_is_a_unit() -> None:
    assert not comes_to_a_start(nothing)


def test_a_unit_that_starts_something_all_the_same_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_starting.py").write_text(STARTING)
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "-m", "unit", str(tmp_path))
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed, 2 errors" in answer.stdout, answer.stdout
    assert "subprocess.Popen" in answer.stdout
    assert "socket.bind" in answer.stdout
