"""Copies of the database that an upgrade makes before it migrates, in `backups/` of the data directory.

They hold what the database held, also what is erased later: so they are few, and go after a bounded time. What has a
copy's name, `….sqlite3`, is whole: a kill leaves what was half made or half removed under another one, and the next
start removes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog
import trio

from deskwire.engine.core.clock import Clock
from deskwire.storage.files import overwrite_and_unlink, sync
from deskwire.storage.sqlite.backup.snapshot import CopyError, database_bytes, require_room, snapshot
from deskwire.storage.sqlite.directory import DataDirectoryError

log: Final = structlog.get_logger(__name__)

FOLDER: Final = "backups"
_PART: Final = ".part"
_REMOVED: Final = ".removed"
_HALF: Final = "*.sqlite3.*"
"""The pattern of files that a kill has left half made or half removed."""
_ADVICE: Final = "An upgrade copies the database first. Make room, or set DESKWIRE_UPGRADE_COPIES=0 to upgrade without a copy."


def copy_before_upgrade(path: Path, kept: int, migration: str) -> None:
    """Copy the database `path` before `migration` changes it, and remove what is more than `kept` copies.

    A copy made before the same migration is replaced: an upgrade that fails again and again does not push out the others.
    Raises DataDirectoryError if the copy can't be made; nothing has been migrated then.
    """
    if not kept:
        return
    folder = path.parent / FOLDER
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-before-{migration}.sqlite3"
    try:
        folder.mkdir(exist_ok=True, mode=0o700)
        part = folder / f"{name}{_PART}"
        for left in folder.glob(_HALF):
            overwrite_and_unlink(left)
        require_room(folder, database_bytes(path), _ADVICE)
        try:
            snapshot(path, part)
            part.replace(folder / name)
        finally:
            part.unlink(missing_ok=True)
        sync(folder)
        sync(path.parent)
        for old in _surplus(folder, name, kept):
            _remove(old)
    except (CopyError, OSError) as error:
        raise DataDirectoryError(f"The copy before the upgrade failed: {error}") from error
    log.info("storage.upgrade_copied", copy=name)


def _remove(copy: Path) -> None:
    """Remove a copy, overwritten. It loses its name for good before it loses its content."""
    aside = copy.with_name(f"{copy.name}{_REMOVED}")
    copy.rename(aside)
    sync(copy.parent)
    overwrite_and_unlink(aside)


def _surplus(folder: Path, name: str, kept: int) -> Iterator[Path]:
    """Yield the copies that a new one takes the place of."""
    ending = name.partition("-")[2]
    others = sorted(copy for copy in folder.glob("*-before-*.sqlite3") if copy.name != name)
    same = [copy for copy in others if copy.name.partition("-")[2] == ending]
    yield from same
    different = [copy for copy in others if copy not in same]
    yield from different[: max(0, len(different) + 1 - kept)]


async def run_copies(directory: Path, clock: Clock, *, kept_s: float, interval_s: float) -> None:
    """Remove copies that are older than `kept_s`, at once and then every `interval_s` seconds, until cancelled."""
    while True:
        try:
            older_than_s = clock() / 1000 - kept_s
            removed = await trio.to_thread.run_sync(remove_copies, directory, older_than_s)
            if removed:
                log.info("storage.upgrade_copies_removed", copies=removed)
        except OSError as error:
            log.warning("storage.upgrade_copies_stay", error=str(error))
        await trio.sleep(interval_s)


def remove_copies(directory: Path, older_than_s: float) -> int:
    """Remove the copies made before this time (seconds since the epoch), overwritten; how many. Raises OSError.

    So what a kill has left of one, however old: no copy is made meanwhile.
    """
    folder = directory / FOLDER
    old = [copy for copy in folder.glob("*.sqlite3") if copy.stat().st_mtime < older_than_s]
    for copy in old:
        _remove(copy)
    for left in folder.glob(_HALF):
        overwrite_and_unlink(left)
    return len(old)
