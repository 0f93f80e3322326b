"""The program without PostgreSQL's driver, as in the one-file executable: a database's URL gives a sentence, all else goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from deskwire.storage.file_stores import open_files
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from tests.storage.backup.conftest import SECRET, fill
from tests.support.sockets.server_process import environment

WITHOUT = (
    "import sys\n"
    "sys.modules['psycopg'] = None\n"
    "from deskwire.cli import cli\n"
    "cli(sys.argv[1:], prog_name='deskwire')"
)


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(
        command, env={**environment(), **environ}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", ["serve", "migrate", "check", "scrub", "key list"])
def test_a_databases_url_gives_the_sentence(tmp_path: Path, command: str) -> None:
    done = run(
        *command.split(),
        DESKWIRE_DATABASE_URL="postgresql://deskwire@127.0.0.1:1/deskwire",
        DESKWIRE_SECRET="the secret of a node" * 2,
        DESKWIRE_DATA=str(tmp_path / "data"),
        DESKWIRE_PORT="0",
    )
    assert done.returncode == 1
    assert "the driver is not installed: `pip install 'deskwire[postgres]'`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bucket_without_its_library_gives_the_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "deskwire.storage.s3", raising=False)
    with pytest.raises(DatabaseUnusableError, match="deskwire\\[s3\\]"):
        open_files("s3://uploads", tmp_path, None)


def test_a_data_directory_needs_no_driver(data: Path) -> None:
    done = run("check", "--data", str(data), DESKWIRE_SECRET=SECRET)
    assert done.returncode == 0, done.stderr
    assert "has no problems" in done.stdout


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory that no server has."""
    directory = tmp_path / "data"
    trio.run(fill, directory)
    return directory
