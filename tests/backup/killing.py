"""Runs a piece of work again and again, and kills it each time a step later, until it is through.

A step is whatever the process asks of the system: a file that is opened, renamed, removed or made, a database connection.
Run as a program, with the directory that has `data`; prints how many steps each work has.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from deskwire.storage.check import check
from deskwire.storage.copies import copy_before_upgrade
from deskwire.storage.database import FILE_NAME, RESTORING
from deskwire.storage.unpack import read_archive
from tests.backup.conftest import SECRET, back_up, left, restore

STEPS: Final = frozenset(
    {
        "open",
        "os.rename",
        "os.remove",
        "os.mkdir",
        "os.rmdir",
        "os.truncate",
        "fcntl.flock",
        "sqlite3.connect",
    }
)
ROUNDS_MAX: Final = 1_000


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that dies with its `step`-th step; False if it came through before."""
    child = os.fork()
    if child == 0:
        taken = 0

        def count(event: str, _: object) -> None:
            nonlocal taken
            taken += event in STEPS
            if taken > step and event in STEPS:  # the kill is an event, too
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def backup(directory: Path, data: Path) -> int:
    """A kill leaves the old backup or the new one, whole; the next one is made all the same."""
    target = directory / "b.tar"
    back_up(data, target)
    for step in range(ROUNDS_MAX):
        killed = killed_at(step, lambda: back_up(data, target, force=True))
        assert read_archive(target, SECRET).sealed
        if not killed:
            assert left(directory) == {"data", "b.tar"}
            return step
    raise AssertionError("it does not end")


def restoring(directory: Path, data: Path) -> int:
    """A kill leaves a directory in which no server starts, or a complete one; the next restore makes it complete."""
    source, new = back_up(data, directory / "b.tar").path, directory / "new"
    for step in range(ROUNDS_MAX):
        killed = killed_at(step, lambda: restore(source, new))
        if (new / FILE_NAME).exists() and not (new / RESTORING).exists():
            assert not check(new, SECRET, contents=True, settled_s=0).problems
            shutil.rmtree(new)
        if not killed:
            return step
        if new.exists():
            assert left(new) <= {"deskwire.lock"} or (new / RESTORING).exists()
        restore(source, new)
        assert not check(new, SECRET, contents=True, settled_s=0).problems
        assert left(new) == {"deskwire.lock", "deskwire.sqlite3", "uploads", "secret"}
        shutil.rmtree(new)
    raise AssertionError("it does not end")


def upgrade(directory: Path, data: Path) -> int:
    """A kill leaves the database as it was, and nothing that looks like a copy but is none."""
    for step in range(ROUNDS_MAX):
        killed = killed_at(step, lambda: copy_before_upgrade(data / FILE_NAME, 1, "m1"))
        for copy in (data / "backups").glob("*.sqlite3"):
            shutil.copy(copy, directory / FILE_NAME)
            assert check(directory, None, contents=False).rows["messages"] == 2
        assert not check(data, SECRET, contents=True, settled_s=0).problems
        if not killed:
            assert len(list((data / "backups").iterdir())) == 1
            return step
    raise AssertionError("it does not end")


if __name__ == "__main__":
    for work in (backup, restoring, upgrade):
        place = Path(sys.argv[1]) / work.__name__
        shutil.copytree(Path(sys.argv[1]) / "data", place / "data")
        print(work(place, place / "data"))
