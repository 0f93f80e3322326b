"""Completion in a shell: the scripts load, and the program answers them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from deskwire.cli import cli
from deskwire.commands.shell.completion import SHELLS, VARIABLE
from tests.support.sockets.server_process import environment


def script_for(shell: str) -> str:
    answer = CliRunner().invoke(cli, ["completion", shell])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_reads_its_script_without_an_error(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "script"
    file.write_text(script_for(shell))
    done = subprocess.run([program, "-n", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_and_options_by_the_script(tmp_path: Path) -> None:
    program = tmp_path / "deskwire"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deskwire "$@"\n')
    program.chmod(0o755)
    typed = """
        eval "$(deskwire completion bash)"
        complete -p deskwire
        for line in "deskwire web" "deskwire org --d" "deskwire org re" "deskwire org list --js"; do
            read -ra COMP_WORDS <<< "$line"
            COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
            COMPREPLY=()
            _deskwire_completion deskwire
            echo "$line: ${COMPREPLY[*]}"
        done
    """
    done = subprocess.run(
        ["bash", "-c", typed],
        env={**environment(), "PATH": f"{tmp_path}:{environment()['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "_deskwire_completion" in lines[0]
    assert lines[1:] == [
        "deskwire web: webhook",
        "deskwire org --d: ",
        "deskwire org re: rename",
        "deskwire org list --js: --json",
    ]


def test_commands_are_completed_without_loading_them() -> None:
    program = "import sys; from deskwire.__main__ import main\ntry: main()\nfinally: print([each for each in sys.modules if each.startswith('deskwire.commands.')], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment(), VARIABLE: "bash_complete", "COMP_WORDS": "deskwire o", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,org", "plain,openapi"]
    assert "commands.admin" not in done.stderr
