"""Runs a piece of work repeatedly, and kills it each time one step later, until it completes.

A step is a call of the system: opening, writing, syncing, renaming, removing or creating a file, or opening a database
connection.
Run as a program, with the directory that has `data`; prints the number of steps of each work.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.secret import Secrets
from deskwire.program.rotation import Rotation
from deskwire.program.secret_file import installation_secrets
from deskwire.storage.sqlite.backup.copies import copy_before_upgrade, remove_copies
from deskwire.storage.sqlite.backup.unpack import read_archive
from deskwire.storage.sqlite.check import check
from deskwire.storage.sqlite.directory import FILE_NAME, RESTORING
from deskwire.storage.sqlite.store import open_store
from tests.storage.backup.conftest import SECRET, back_up, left, restore

STEPS: Final = frozenset(
    {
        "open",
        "os.write",
        "os.rename",
        "os.remove",
        "os.mkdir",
        "os.rmdir",
        "os.truncate",
        "fcntl.flock",
        "sqlite3.connect",
    }
)
CALLS: Final = ("write", "fsync")
"""Calls that raise no audit event."""
ROUNDS_MAX: Final = 1_000
OLD: Final = ("20200101T000000Z-before-m0.sqlite3", "20200102T000000Z-before-m1.sqlite3")
"""Copies that a new one before `m1` replaces, one by one."""


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that is killed at its `step`-th step; return False if it completed before."""
    child = os.fork()
    if child == 0:
        taken = 0

        def count(event: str, _: object = None) -> None:
            nonlocal taken
            taken += event in STEPS
            if taken > step and event in STEPS:  # the kill is an event, too
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        for call in CALLS:
            setattr(os, call, _counted(getattr(os, call), count))
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def _counted(call: Callable[..., object], count: Callable[[str], None]) -> Callable[..., object]:
    """Return the system call, counted as a step."""

    def counted(*given: object) -> object:
        count("os.write")
        return call(*given)

    return counted


def backup(directory: Path, data: Path) -> int:
    """Check that a kill leaves the complete old or new backup, and that the next one succeeds."""
    target = directory / "b.tar"
    back_up(data, target)
    for step in range(ROUNDS_MAX):
        killed = killed_at(step, lambda: back_up(data, target, force=True))
        assert read_archive(target, Secrets(SECRET)).sealed
        if not killed:
            assert left(directory) == {"data", "b.tar"}
            return step
    raise AssertionError("it does not end")


def restoring(directory: Path, data: Path) -> int:
    """Check that a kill leaves a directory in which no server starts, or a complete one; the next restore completes it."""
    source, new = back_up(data, directory / "b.tar").path, directory / "new"
    for step in range(ROUNDS_MAX):
        killed = killed_at(step, lambda: restore(source, new))
        if (new / FILE_NAME).exists() and not (new / RESTORING).exists():
            assert not check(new, Secrets(SECRET), contents=True, settled_s=0).problems
            shutil.rmtree(new)
        if not killed:
            return step
        if new.exists():
            assert left(new) <= {"deskwire.lock"} or (new / RESTORING).exists()
        restore(source, new)
        assert not check(new, Secrets(SECRET), contents=True, settled_s=0).problems
        assert left(new) == {"deskwire.lock", "deskwire.sqlite3", "uploads", "secret"}
        shutil.rmtree(new)
    raise AssertionError("it does not end")


def upgrade(directory: Path, data: Path) -> int:
    """Check that a kill leaves the database as it was, and no incomplete copy that looks complete.

    A new copy always replaces two, whatever the second in which it is made.
    """
    backups = data / "backups"
    copy_before_upgrade(data / FILE_NAME, 1, "m1")
    (good,) = (copy.read_bytes() for copy in backups.iterdir())
    for step in range(ROUNDS_MAX):
        for name in OLD:
            (backups / name).write_bytes(good)
        killed = killed_at(step, lambda: copy_before_upgrade(data / FILE_NAME, 1, "m1"))
        assert list(backups.glob("*.sqlite3")), "there is one at any time"
        for copy in backups.glob("*.sqlite3"):
            shutil.copy(copy, directory / FILE_NAME)
            report = check(directory, None, contents=False)
            assert report.rows["messages"] == 3, report
        assert not check(data, Secrets(SECRET), contents=True, settled_s=0).problems
        if not killed:
            assert len(left(backups)) == 1
            return step
        remove_copies(data, older_than_s=0)
        assert {each for each in left(backups) if not each.endswith(".sqlite3")} == set()
    raise AssertionError("it does not end")


def removal(directory: Path, data: Path) -> int:
    """Check that a kill while copies are removed leaves the others as they were."""
    backups = data / "backups"
    copy_before_upgrade(data / FILE_NAME, 1, "m1")
    (good,) = (copy.read_bytes() for copy in backups.iterdir())
    for step in range(ROUNDS_MAX):
        for name in OLD:
            (backups / name).write_bytes(good)
        killed = killed_at(step, lambda: remove_copies(data, older_than_s=1 << 40))
        for copy in backups.glob("*.sqlite3"):
            assert copy.read_bytes() == good
        if not killed:
            assert left(backups) == set()
            return step
    raise AssertionError("it does not end")


async def _settled(data: Path, overlap_s: int | None) -> None:
    """Rotate the secret, or finish as a start does if there is no overlap."""
    secrets = installation_secrets(data, None)
    async with open_store(data, batch=1, readers=1, on_commit=lambda _: None) as store:
        rotation = Rotation(store, secrets, data, wall_clock, 0)
        await (rotation.settle() if overlap_s is None else rotation.rotate(overlap_s))


def rotation(directory: Path, data: Path) -> int:
    """Check that a kill leaves secrets that open all that is stored and know what was signed; the next start finishes."""
    token = Tokens(Secrets(SECRET)).issue("usr_1", wall_clock())
    for step in range(ROUNDS_MAX):
        copy = directory / str(step)
        shutil.copytree(data, copy)
        killed = killed_at(step, lambda copy=copy: trio.run(_settled, copy, 60))  # type: ignore[misc]
        found = installation_secrets(copy, None)
        assert found.known in {(SECRET,), (found.current, SECRET)}
        assert not check(copy, found, contents=True, settled_s=0).problems
        assert Tokens(found).identity(token).value == "usr_1"
        trio.run(_settled, copy, None)
        assert not check(copy, Secrets(found.current), contents=True, settled_s=0).problems
        shutil.rmtree(copy)
        if not killed:
            assert found.previous
            return step
    raise AssertionError("it does not end")


if __name__ == "__main__":
    for work in (backup, restoring, upgrade, removal, rotation):
        place = Path(sys.argv[1]) / work.__name__
        shutil.copytree(Path(sys.argv[1]) / "data", place / "data")
        print(work(place, place / "data"))
