"""Saves the content of an open database whose file was deleted or replaced.

The content is still reachable by the open descriptors, but lost when the process ends. The rescue checkpoints the WAL
unless a reader prevents it, and copies the database page by page into the data directory. No start accepts the directory
until the operator has chosen between the copy and the file at the database's path (`require_whole`).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from math import inf
from pathlib import Path
from typing import Final

import structlog

from deskwire.engine.core.database_identity import IdentityRefusal
from deskwire.storage.files import overwrite_and_unlink, sync
from deskwire.storage.sqlite.directory import RESCUED
from deskwire.storage.sqlite.file_identity import DatabaseFile

log: Final = structlog.get_logger(__name__)

RETRY_DELAY_S: Final = 10.0
"""Delay before the next attempt, for example after a full disk."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Rescue:
    """Saves the content of a refused database. Used by the writer, between transactions.

    Args:
        connection: the writer's.

    Attributes:
        idle: True if nothing was saved; read for each commit.
    """

    def __init__(self, connection: sqlite3.Connection, database: DatabaseFile) -> None:
        self._connection = connection
        self._database = database
        self._folded = False
        self._copy: Path | None = None
        self.idle = True
        self._reported: str | None = None

    @property
    def due(self) -> bool:
        """True if the content is in danger and not saved yet."""
        refusal = self._database.refusal
        if refusal is None or refusal.reason not in ("file_gone", "file_replaced") or self._database.shared:
            return False
        return not self._folded or (self._copy is None and self._database.lost)

    def step(self) -> float:
        """Save the content; return the seconds until the next attempt, infinity if none is needed. Blocks."""
        try:
            self._fold()
            if self._copy is None and self._database.lost:
                self._copy = self._copied()
        except (OSError, sqlite3.Error) as error:
            log.error("database.rescue_failed", error=str(error), pid=os.getpid())
        self.idle = not self._folded and self._copy is None
        return RETRY_DELAY_S if self.due else inf

    def report(self) -> None:
        """Add the remedy to the refusal after the copy is complete. Runs in Trio's thread."""
        refusal = self._database.refusal
        if refusal is not None and self._copy is not None and self._reported != refusal.reason:
            self._reported = refusal.reason
            self._report(self._copy, refusal)

    def discard(self) -> None:
        """Remove the copy because the file is back at its path. Blocks."""
        copy, self._copy, self._reported, self._folded = self._copy, None, None, False
        self.idle = True
        if copy is not None:
            with suppress(OSError):  # if the copy stays, the next start reports it
                overwrite_and_unlink(copy)

    def end(self) -> None:
        """Remove the WAL of a saved database after the connections are closed; it belongs to no other file."""
        if self._copy is not None:
            with suppress(OSError):
                self._database.remove_sides()

    def _fold(self) -> None:
        if not self._folded:
            busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            self._folded = not busy
            self._database.note_folded()

    def _copied(self) -> Path:
        """Copy the database. The copy gets its name when it is complete and durable."""
        folder = self._database.path.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy, part = folder / RESCUED, folder / f"{RESCUED}.part"
        part.unlink(missing_ok=True)
        os.close(os.open(part, _NEW, 0o600))
        try:
            with closing(sqlite3.connect(part)) as target:
                self._connection.backup(target)
            sync(part)
            os.link(part, copy)  # link() never replaces an existing copy
        finally:
            part.unlink(missing_ok=True)
        sync(folder)
        return copy

    def _report(self, copy: Path, refusal: IdentityRefusal) -> None:
        path = self._database.path
        if refusal.reason == "file_gone":
            state, choice = (
                "was deleted or moved",
                f"Stop the service, move {copy} to {path}, and start it again.",
            )
        else:
            state = "was replaced by another file"
            choice = (
                f"Stop the service. Then move {copy} to {path} to continue with the service's data, or move it away to "
                "continue with the file that is at the path now."
            )
        detail = f"{path} {state} while the service had it open. Nothing is stored from now on. All acknowledged changes are saved in {copy}."
        self._database.refuse(refusal.reason, f"{detail} {choice}")
        log.error("database.rescued", copy=str(copy), bytes=copy.stat().st_size)
