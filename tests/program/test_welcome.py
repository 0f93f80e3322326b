"""The text that the first start prints (decisions 2)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from deskwire.program.first_start import Demo, welcome

DEMO = Demo("prj_1", "sk_1", "stream", "owner@demo.example", "password", "token", "chn_1", "chs_1")


def installed(folder: Path) -> Path:
    """A program of that name that says where it is."""
    folder.mkdir()
    program = folder / "deskwire"
    program.write_text('#!/bin/sh\necho "$0"\n')
    program.chmod(0o755)
    return program


def line(text: str) -> str | None:
    """The line about the path, None without one."""
    return next((each.strip() for each in text.splitlines() if "export PATH" in each), None)


def test_printed_line_adds_the_program_to_another_shells_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = installed(tmp_path / "a folder, with blanks")
    monkeypatch.setattr("sys.argv", [str(program), "serve"])
    shown = line(welcome(DEMO, "http://127.0.0.1:1", tmp_path / "demo.json"))
    assert shown is not None
    done = subprocess.run(["sh", "-c", f"{shown}; deskwire"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(program)


def test_no_line_is_printed_if_the_shell_finds_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = installed(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr("sys.argv", [str(program), "serve"])
    assert line(welcome(DEMO, "http://127.0.0.1:1", tmp_path / "demo.json")) is None


def test_another_program_of_that_name_in_the_path_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, other = installed(tmp_path / "mine"), installed(tmp_path / "other")
    monkeypatch.setenv("PATH", str(other.parent), prepend=":")
    monkeypatch.setattr("sys.argv", [str(program), "serve"])
    assert str(program.parent) in (line(welcome(DEMO, "http://127.0.0.1:1", tmp_path / "demo.json")) or "")
