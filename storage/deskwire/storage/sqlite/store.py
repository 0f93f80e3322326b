"""The SQLite store: one data directory with a writer and a pool of read connections."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Sized
from contextlib import asynccontextmanager, closing
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, TypeVar

import structlog
import trio

from deskwire.engine.core.counters import CommitCounters, DiskSpace
from deskwire.engine.core.database_identity import WRONG_DATABASE, DatabaseIdentity
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.limits.fair_share import TENANT, FairLimiter, thread_limiter
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Commit, Reader, Transaction
from deskwire.storage.sqlite.backup.copies import copy_before_upgrade
from deskwire.storage.sqlite.database import (
    DirectoryLock,
    QueryTimeout,
    connect_reader,
    connect_writer,
    lock_when_free,
    migrate,
)
from deskwire.storage.sqlite.directory import FILE_NAME, require_whole
from deskwire.storage.sqlite.file_identity import DatabaseFile, is_damage
from deskwire.storage.sqlite.installation import require_own_database
from deskwire.storage.sqlite.search.file import DAMAGED, attach, prepared
from deskwire.storage.sqlite.search.file import FILE_NAME as INDEX_NAME
from deskwire.storage.sqlite.search.writer import SqliteSearchIndex
from deskwire.storage.sqlite.transaction import SqliteReader
from deskwire.storage.sqlite.writer import WAITING_MAX, Writer

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)


class SqliteStore:
    """Implements `ports.Store` on a SQLite file; created by `open_store`.

    Attributes:
        submit: see `Store.submit`; bound to the writer, because each message goes through it.
        run: runs the writer until cancelled.
    """

    def __init__(
        self,
        path: Path,
        batch: int,
        readers: int,
        on_commit: Callable[[Commit], None],
        queue: int,
        read_timeout_s: float = inf,
        index: Path | None = None,
        hold_lock: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._connection = connect_writer(path)
        self._turns = FairLimiter(readers)
        self._read_timeout_s = read_timeout_s
        self._index = None if index is None else SqliteSearchIndex(index)
        self._readers = [_reader_with_timeout(path, index) for _ in range(readers)]
        self._here = SqliteReader(connect_reader(path))
        self._database = DatabaseFile(path, self._file, hold_lock)
        self._writer = Writer(self._connection, self._file, batch, on_commit, queue, self._database)
        self.submit, self.run = self._writer.submit, self._writer.run

    @property
    def commits(self) -> CommitCounters:
        """The writer's counters."""
        return self._writer.commits

    @property
    def identity(self) -> DatabaseIdentity:
        """The state of the open file, which may no longer be the installation's database."""
        return self._database

    @property
    def backlog(self) -> Sized:
        """The jobs queued for the writer."""
        return self._writer.backlog

    @property
    def index(self) -> SqliteSearchIndex:
        """The search index; a read-only store has none."""
        assert self._index is not None, "a read-only store does not search"
        return self._index

    @property
    def scrubbing(self) -> bool:
        """True while bytes of erased rows may still be in the database file or its WAL."""
        return self._writer.scrubbing

    @property
    def scrub_delay(self) -> float:
        """Age in seconds of the oldest erasure that is not overwritten yet; 0 if there is none."""
        since = self._writer.scrub_since
        return 0 if since is None else trio.current_time() - since

    def room(self) -> DiskSpace:
        """Return the disk usage of the database and the free space. Raises OSError."""
        disk = os.statvfs(self._path)
        wal = self._path.with_name(f"{self._path.name}-wal")
        return DiskSpace(self._path.stat().st_size, wal.stat().st_size, disk.f_bavail * disk.f_frsize)

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        return await self._writer.write(job)

    async def read(self, query: Callable[[Reader], T]) -> T:
        """See `Store.read`. Raises Unavailable if the disk fails, or on a timeout of a waiting request.

        An `InlineQuery` query runs on Trio's thread, because a thread switch costs ten times as much as the query (ADR 1). It
        can be cancelled, but does not yield to other tasks, which would cost as much as the query.
        """
        if isinstance(query, InlineQuery):
            await trio.lowlevel.checkpoint_if_cancelled()
            result: T = self._run(self._here, partial(_in_snapshot, query))
            return result
        tenant = TENANT.get()
        who, waiting = (None, False) if tenant is None else (tenant.who, tenant.waiting)
        seconds = self._read_timeout_s if waiting else inf
        return await trio.to_thread.run_sync(
            self._query, query, seconds, limiter=thread_limiter(self._turns, who)
        )

    def close(self) -> None:
        """Close all connections; the last one checkpoints the WAL."""
        for reader in (*(reader for reader, _ in self._readers), self._here):
            reader.conn.close()
        self._connection.close()
        if self._index is not None:
            self._index.close()
        self._writer.close()
        self._database.close()
        os.close(self._file)  # last: see `Scrubber`

    def _query(self, query: Callable[[Reader], T], seconds: float) -> T:
        reader, timeout = self._readers.pop()  # never empty: the limiter has as many tokens as readers
        timeout.begin(seconds)
        try:
            return self._run(reader, partial(_in_snapshot, query))
        except Unavailable as error:
            if timeout.over:
                detail = f"The database did not answer within {seconds:g} s; ask for less at a time."
                raise Unavailable(detail, code="read_timeout") from error
            raise
        finally:
            timeout.end()
            self._readers.append((reader, timeout))

    def _run(self, reader: SqliteReader, query: Callable[[SqliteReader], T]) -> T:
        try:
            return query(reader)
        except sqlite3.OperationalError as error:
            raise Unavailable(f"The database could not be read: {error}", code="storage_failed") from error
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            if reader is not self._here and self._index is not None:
                return self._run_without_index(query, error)
            raise Unavailable(self._database.met_damage(error).detail, code=WRONG_DATABASE) from error

    def _run_without_index(self, query: Callable[[SqliteReader], T], error: sqlite3.DatabaseError) -> T:
        """Run a query again without the search index, to find out which of the two files is damaged."""
        try:
            with closing(connect_reader(self._path)) as connection:
                return query(SqliteReader(connection))
        except sqlite3.OperationalError as missing:  # the index's tables
            log.error(
                "search.index_damaged",
                error=str(error),
                advice="restart the service to rebuild the index",
            )
            self._path.with_name(f"{INDEX_NAME}{DAMAGED}").touch()
            raise Unavailable(f"The search index is damaged: {error}", code="storage_failed") from missing
        except sqlite3.DatabaseError as again:
            if not is_damage(again):
                raise
            raise Unavailable(self._database.met_damage(again).detail, code=WRONG_DATABASE) from again


def _reader_with_timeout(path: Path, index: Path | None) -> tuple[SqliteReader, QueryTimeout]:
    connection = connect_reader(path)
    if index is not None:
        attach(connection, index)
    return SqliteReader(connection), QueryTimeout(connection)


def _in_snapshot(query: Callable[[Reader], T], reader: SqliteReader) -> T:
    """Run a query in a transaction, so that all its statements see one snapshot."""
    reader.conn.execute("BEGIN")
    try:
        return query(reader)
    finally:
        if reader.conn.in_transaction:
            reader.conn.execute("ROLLBACK")


@asynccontextmanager
async def open_store(
    directory: Path,
    *,
    batch: int,
    readers: int,
    on_commit: Callable[[Commit], None],
    queue: int = WAITING_MAX,
    read_timeout_s: float = inf,
    upgrade_copies: int = 0,
    serving: bool = False,
) -> AsyncIterator[SqliteStore]:
    """Lock, migrate and open a data directory; the writer runs while the context is open.

    Args:
        read_timeout_s: timeout of a query for a waiting request.
        upgrade_copies: number of copies made before upgrades to retain; 0 makes none.
        serving: whether this is a server, which waits for a command that has locked the directory.

    Raises DataDirectoryError if the directory is in use, of a newer version, or unusable.
    """
    if serving:
        lock = await trio.to_thread.run_sync(lock_when_free, directory, "server")
    else:
        lock = DirectoryLock(directory)
    try:
        require_whole(directory)
        require_own_database(directory)
        path = directory / FILE_NAME
        migrate(path, partial(copy_before_upgrade, path, upgrade_copies))
        index = prepared(path)
        store = SqliteStore(path, batch, readers, on_commit, queue, read_timeout_s, index, lock.hold)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(store.run)
                yield store
                nursery.cancel_scope.cancel()
        finally:
            store.close()
    finally:
        lock.release()
