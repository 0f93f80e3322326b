"""One process a data directory, also against a process that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deskwire.storage.sqlite.database import DirectoryLock
from deskwire.storage.sqlite.directory import DataDirectoryError

HOLDER = """
import sys
from pathlib import Path
from deskwire.storage.sqlite.database import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_elsewhere(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Run another process that holds the directory."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_and_told_who_holds_the_directory(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as process:
        with pytest.raises(DataDirectoryError, match=rf"in use .* \(pid {process.pid}\)"):
            DirectoryLock(tmp_path)
        assert process.poll() is None


def test_the_directory_is_free_again_when_its_holder_was_killed(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        DirectoryLock(tmp_path).release()


def test_a_second_opening_by_the_same_process_is_refused_until_released(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with pytest.raises(DataDirectoryError, match="in use"):
        DirectoryLock(tmp_path)
    lock.release()
    DirectoryLock(tmp_path).release()


def test_a_missing_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "data"
    DirectoryLock(directory).release()
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_file_in_the_directorys_place_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(DataDirectoryError, match="data can't be used"):
        DirectoryLock(tmp_path / "data")
