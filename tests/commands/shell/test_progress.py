"""Progress is for people at a terminal: on a pipe there is none."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sockets.server_process import environment


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return the environment of commands on a directory with an organisation."""
    variables = {**environment(), "DESKWIRE_DATA": str(tmp_path / "data"), "TERM": "xterm", "COLUMNS": "80"}
    subprocess.run(
        [sys.executable, "-m", "deskwire", "org", "create", "Acme"],
        env=variables,
        check=True,
        capture_output=True,
    )
    return variables


def on_a_terminal(environ: dict[str, str], *arguments: str) -> tuple[str, str]:
    """Return what a command prints, and what a terminal shows of its stderr."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "deskwire", *arguments], env=environ, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4_096):
                shown += piece
        except OSError:  # Linux's end of a terminal
            pass
        assert process.stdout is not None
        printed = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, shown
    return printed.decode(), shown.decode()


def test_backup_check_and_restore_show_their_progress_on_a_terminal(
    environ: dict[str, str], tmp_path: Path
) -> None:
    file, other = str(tmp_path / "backup.tar"), str(tmp_path / "other")
    printed, shown = on_a_terminal(environ, "backup", file, "--json")
    assert printed.startswith("{\n")
    assert "Copying the database" in shown
    assert "Reading the backup" in shown
    assert "Checking the rules between rows" in on_a_terminal(environ, "check")[1]
    assert "Reading the backup" in on_a_terminal(environ, "restore", file, "--data", other, "--new-secret")[1]


def test_no_command_shows_its_progress_on_a_pipe(environ: dict[str, str], tmp_path: Path) -> None:
    for arguments in (
        ("backup", str(tmp_path / "backup.tar"), "--json"),
        ("check", "--json"),
        (
            "restore",
            str(tmp_path / "backup.tar"),
            "--data",
            str(tmp_path / "other"),
            "--new-secret",
            "--json",
        ),
        ("audit", "export"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "deskwire", *arguments],
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        for mark in ("\x1b", "\r", "Copying", "Checking", "Reading"):
            assert mark not in done.stderr, arguments
