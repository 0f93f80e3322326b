"""One process a data directory, also against a process that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from deskwire.storage.sqlite import database
from deskwire.storage.sqlite.database import DirectoryLock, lock_when_free
from deskwire.storage.sqlite.directory import LOCK_NAME, DataDirectoryError, DirectoryInUseError, Holder

HOLDER = """
import sys
import time
from pathlib import Path
from deskwire.storage.sqlite.database import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]), sys.argv[2])
print("held", flush=True)
sys.stdin.read()
lock.release()
"""


@contextmanager
def held_elsewhere(directory: Path, holder: Holder = "server") -> Iterator[subprocess.Popen[str]]:
    """Run another process that holds the directory."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory), holder],
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


def test_second_process_is_refused_with_the_holder_of_the_directory(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as process:
        with pytest.raises(
            DataDirectoryError, match=rf"in use by a Deskwire server \(pid {process.pid}\). Stop"
        ):
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


def test_a_directory_that_a_command_has_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held_elsewhere(tmp_path, "command") as process, capture_logs() as said:
        assert process.stdin is not None
        stdin = process.stdin

        def command_ends(_: float) -> None:
            stdin.close()
            assert process.wait() == 0

        monkeypatch.setattr(time, "sleep", command_ends)
        lock_when_free(tmp_path, "server").release()
    assert said == [
        {
            "event": "storage.waits_for_command",
            "log_level": "info",
            "data": str(tmp_path),
            "pid": str(process.pid),
        }
    ]


def test_a_command_that_has_the_directory_for_longer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "COMMAND_TIMEOUT_S", 0.2)
    with held_elsewhere(tmp_path, "command") as process:
        words = rf"in use by a Deskwire command \(pid {process.pid}\). Wait until it has ended"
        with pytest.raises(DirectoryInUseError, match=words):
            lock_when_free(tmp_path)


def test_a_directory_that_a_server_has_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "COMMAND_TIMEOUT_S", inf)
    with held_elsewhere(tmp_path), pytest.raises(DirectoryInUseError, match="by a Deskwire server"):
        lock_when_free(tmp_path)


def test_lock_written_by_an_earlier_release_is_understood(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path, "server")
    (tmp_path / LOCK_NAME).write_text("4711")
    with pytest.raises(DirectoryInUseError, match=r"another Deskwire process \(pid 4711\). Stop"):
        DirectoryLock(tmp_path)
    lock.release()
    assert (tmp_path / LOCK_NAME).read_bytes() == b"", "nobody has it"


def test_a_missing_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "data"
    DirectoryLock(directory).release()
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_file_in_the_directorys_place_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(DataDirectoryError, match="data can't be used"):
        DirectoryLock(tmp_path / "data")
