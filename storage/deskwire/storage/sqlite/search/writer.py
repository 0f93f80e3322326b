"""The write connection of the index, in its own thread, so that the database's writer never waits for it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import structlog
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.search.ports import EVERYTHING, IndexPosition, IndexTransaction
from deskwire.storage.sqlite.scrub import RETRY_DELAY_S, Scrubber
from deskwire.storage.sqlite.search.file import DAMAGED, connect
from deskwire.storage.sqlite.search.index import IndexWrites

T = TypeVar("T")
FILLING_CACHE_KIB: Final = 32 * 1024
KEPT_CACHE_KIB: Final = 4 * 1024
log: Final = structlog.get_logger(__name__)


class SqliteSearchIndex:
    """Implements `engine.search.ports.SearchIndex` on a file from `prepared`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._connection = connect(path)
        self._thread = trio.CapacityLimiter(1)
        self._scrubber = Scrubber(self._connection, self._file, time.monotonic, noted_in="state")
        self.position, self.complete = self._state()
        self._limit_cache()

    @property
    def scrub_due(self) -> bool:
        """True if bytes of removed words may still be in the file."""
        return self._scrubber.due

    @property
    def bytes(self) -> int:
        """The size of the file, in bytes."""
        return self._path.stat().st_size

    async def bound(self) -> IndexPosition:
        """See `SqliteSearchIndex.bound`. Transactions of SQLite are serial, so every visible row is safe."""
        return EVERYTHING

    async def write(self, job: Callable[[IndexTransaction], T]) -> T:
        """See `SqliteSearchIndex.write`."""
        try:
            return await trio.to_thread.run_sync(self._write, job, limiter=self._thread)
        except sqlite3.OperationalError as error:
            raise _refused(error) from error
        except sqlite3.DatabaseError:
            log.error("search.index_damaged", advice="restart the service; it makes a new index")
            self._path.with_name(f"{self._path.name}{DAMAGED}").touch()
            raise

    async def settle(self) -> float | None:
        """See `SqliteSearchIndex.settle`."""
        return await trio.to_thread.run_sync(self._settle, limiter=self._thread)

    async def refresh_statistics(self) -> None:
        """See `SearchIndex.refresh_statistics`. Nothing: the statements name their indexes, and SQLite keeps no statistics."""
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close the index. All readers that have attached it must be closed before: see `Scrubber`."""
        self._connection.close()
        os.close(self._file)

    def _write(self, job: Callable[[IndexTransaction], T]) -> T:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            tx = IndexWrites(self._connection)
            result = job(tx)
            tx.flush()
            self._connection.execute("COMMIT")
        except BaseException:  # roll back after any exception, and re-raise it
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        before, (self.position, self.complete) = self.complete, self._state()
        if self.complete is not before:
            self._limit_cache()
        if tx.removed:
            self._scrubber.want()
        return result

    def _limit_cache(self) -> None:
        """Limit the page cache: a large one is for making the index, and is released afterwards."""
        cache_kib = KEPT_CACHE_KIB if self.complete else FILLING_CACHE_KIB
        self._connection.execute(f"PRAGMA cache_size = -{cache_kib}")

    def _settle(self) -> float | None:
        if self._scrubber.due:
            pause_s = self._scrubber.step()
            return pause_s if self._scrubber.due else None
        try:
            busy, frames, copied = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.OperationalError as error:
            raise _refused(error) from error
        return None if not busy and frames == copied else RETRY_DELAY_S

    def _state(self) -> tuple[IndexPosition, bool]:
        sql = "SELECT message, message_id, conversation, change, complete FROM state"
        *position, complete = self._connection.execute(sql).fetchone()
        return IndexPosition(*position), bool(complete)


def _refused(error: sqlite3.OperationalError) -> Unavailable:
    return Unavailable(f"The search index could not be written: {error}", code="storage_failed")
