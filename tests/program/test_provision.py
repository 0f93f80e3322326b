"""Modes in the data directory: everything is its user's alone (ADR 25)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deskwire.program.first_start import exposed
from deskwire.program.secret_file import installation_secrets, write_private
from tests.support.sockets.server_process import environment


def test_private_file_follows_no_link_and_takes_over_no_others_file(tmp_path: Path) -> None:
    elsewhere, scratch = tmp_path / "elsewhere", tmp_path / ".secret.1"
    elsewhere.write_text("theirs")
    scratch.symlink_to(elsewhere)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.getpid", lambda: 1)
        write_private(tmp_path / "secret", "ours")
    assert elsewhere.read_text() == "theirs"
    assert (tmp_path / "secret").read_text() == "ours"
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_files_that_others_may_read_are_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    installation_secrets(tmp_path, None)
    assert exposed(tmp_path) == []
    (tmp_path / "secret").chmod(0o640)
    (tmp_path / "deskwire.sqlite3").touch(mode=0o644)
    tmp_path.chmod(0o777)
    assert exposed(tmp_path) == [".", "secret", "deskwire.sqlite3"]


def test_command_leaves_no_file_that_other_users_may_read(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    command = [sys.executable, "-m", "deskwire", "org", "create", "Acme", "--data", str(directory)]
    subprocess.run(command, env=environment(), umask=0, check=True, capture_output=True)
    found = [directory, *directory.rglob("*")]
    assert len(found) > 1
    assert [path.name for path in found if path.stat().st_mode & 0o077] == []
