"""The look for credentials in logs finds them, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.log_leaks import leaks, plant
from tests.support.root import ROOT
from tests.support.sockets.server_process import environment

KEY = f"sk_{'a1B' * 14}x"
LEAKING = f"""
import structlog
from pathlib import Path

def test_that_says_it():
    structlog.get_logger().info("hello", key="{KEY}")

def test_whose_service_says_it(tmp_path: Path):
    (tmp_path / "serve.log").write_text('{{"event": "x", "key": "{KEY}"}}')

def test_that_says_nothing(tmp_path: Path):
    structlog.get_logger().info("hello", key="sk_…")
"""


@pytest.mark.parametrize(
    "text",
    [
        f"key={KEY}",
        "secret='whsec_abcdefghijklmnop'",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c3JfMSJ9.c2lnbmF0dXJl",
        f"GET /v3/uploads/upl_1/a.txt?expires=1&signature={'a' * 43}",
        "'Authorization': 'Bearer 0123456789abcdef'",
    ],
)
def test_a_credential_is_found_by_its_shape(text: str) -> None:
    assert list(leaks(f"before {text} after"))


def test_a_secret_that_was_planted_is_found_and_not_shown() -> None:
    secret = plant(os.urandom(12).hex())
    (found,) = leaks(f"password is {secret}")
    assert secret not in found


def test_text_like_a_credential_and_the_startup_message_are_not_found() -> None:
    welcome = f"Deskwire is running at http://127.0.0.1:1\n  server key {KEY}\n  Stop it with Ctrl-C."
    plain = "whsec_…abcd sk_live_x token_expired `Authorization: Bearer …` signature=none"
    assert list(leaks(f'{plain}\n{welcome}\n{{"event": "started"}}')) == []


def test_a_test_in_whose_log_a_credential_is_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_leaking.py").write_text(LEAKING)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        str(tmp_path),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=dict(environment()), capture_output=True, text=True, check=False
    )
    assert "3 passed, 2 errors" in done.stdout, done.stdout + done.stderr
    assert KEY not in done.stdout.replace(LEAKING, "").partition("short test summary")[2]
