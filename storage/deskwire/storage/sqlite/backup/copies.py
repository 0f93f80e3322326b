"""Copies of the database that upgrades make before they migrate, in `backups/` of the data directory.

Copies still hold data that is erased later, so their number and age are limited. A file named `….sqlite3` is always
complete: partial copies and partial removals have other names, and the next start removes them after a crash.
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
"""Patterns of files left by an interrupted copy or removal."""
_ADVICE: Final = "An upgrade copies the database first. Make room, or set DESKWIRE_UPGRADE_COPIES=0 to upgrade without a copy."


def copy_before_upgrade(path: Path, kept: int, migration: str) -> None:
    """Copy the database `path` before `migration` changes it, and retain at most `kept` copies.

    The copy replaces one made before the same migration, so that an upgrade that keeps failing does not evict the others.
    Raises DataDirectoryError, before anything is migrated, if the copy can't be made.
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
    """Overwrite and remove a copy. It is renamed durably first, so that its name never belongs to a partial file."""
    aside = copy.with_name(f"{copy.name}{_REMOVED}")
    copy.rename(aside)
    sync(copy.parent)
    overwrite_and_unlink(aside)


def _surplus(folder: Path, name: str, kept: int) -> Iterator[Path]:
    """Yield the copies that a new one replaces."""
    ending = name.partition("-")[2]
    others = sorted(copy for copy in folder.glob("*-before-*.sqlite3") if copy.name != name)
    same = [copy for copy in others if copy.name.partition("-")[2] == ending]
    yield from same
    different = [copy for copy in others if copy not in same]
    yield from different[: max(0, len(different) + 1 - kept)]


async def run_copies(directory: Path, clock: Clock, *, kept_s: float, interval_s: float) -> None:
    """Remove copies older than `kept_s` now and every `interval_s` seconds, until cancelled."""
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
    """Overwrite and remove copies made before this time (seconds since the epoch); return their number. Raises OSError.

    Also removes the rest of interrupted copies of any age, because no copy is being made while the server runs.
    """
    folder = directory / FOLDER
    old = [copy for copy in folder.glob("*.sqlite3") if copy.stat().st_mtime < older_than_s]
    for copy in old:
        _remove(copy)
    for left in folder.glob(_HALF):
        overwrite_and_unlink(left)
    return len(old)
