"""Commands start fast, because they load only the modules that they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sockets.server_process import environment

OF_SERVERS = {
    "argon2", "cryptography", "httpx", "hypercorn", "jwt", "pydantic", "sqlite_utils", "structlog", "trio", "ulid", "werkzeug",
}  # fmt: skip
PROGRAM = """
import sys
from deskwire.__main__ import main
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded(directory: Path, *arguments: str) -> set[str]:
    """Return the libraries that a command has loaded, which succeeds."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**environment(), "DESKWIRE_DATA": str(directory / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "command",
    ["--version", "--help", "config", "config --json", "org --help", "backup --help", "copy --help", "listen --help",
     "webhook --help", "webhook create --help", "event tail --help", "contact erase --help", "demo --help", "migrate --help"],
)  # fmt: skip
def test_help_and_settings_are_shown_without_the_libraries_of_a_server(tmp_path: Path, command: str) -> None:
    assert loaded(tmp_path, *command.split()) & OF_SERVERS == set()


def test_a_command_that_only_looks_does_without_them_too(tmp_path: Path) -> None:
    loaded(tmp_path, "org", "create", "Acme")
    for command in ("org list", "user list --json", "project list", "audit list"):
        assert loaded(tmp_path, *command.split()) & OF_SERVERS == set(), command
