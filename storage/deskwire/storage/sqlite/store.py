"""The SQLite store: a data directory, opened once, with one writer and read connections."""

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

from deskwire.engine.core.counters import Commits, Room
from deskwire.engine.core.database_identity import WRONG_DATABASE, DatabaseIdentity
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.limits.fair_share import TENANT, FairPlaces, lent
from deskwire.engine.core.store import Inline
from deskwire.engine.ports import Commit, Reader, Transaction
from deskwire.storage.sqlite.backup.copies import copy_before_upgrade
from deskwire.storage.sqlite.database import (
    DirectoryLock,
    Patience,
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
from deskwire.storage.sqlite.search.writer import SearchIndex
from deskwire.storage.sqlite.transaction import SqliteReader
from deskwire.storage.sqlite.writer import WAITING_MAX, Writer

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)


class SqliteStore:
    """`ports.Store` on one SQLite file. Made by `open_store`.

    Attributes:
        submit: see `Store.submit`; the writer's own, because each message goes through it.
        run: commits jobs until cancelled.
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
        self._turns = FairPlaces(readers)
        self._read_timeout_s = read_timeout_s
        self._index = None if index is None else SearchIndex(index)
        self._readers = [_patient_reader(path, index) for _ in range(readers)]
        self._here = SqliteReader(connect_reader(path))
        self._database = DatabaseFile(path, self._file, hold_lock)
        self._writer = Writer(self._connection, self._file, batch, on_commit, queue, self._database)
        self.submit, self.run = self._writer.submit, self._writer.run

    @property
    def commits(self) -> Commits:
        """The writer's counters."""
        return self._writer.commits

    @property
    def identity(self) -> DatabaseIdentity:
        """The result of comparing the database with the one that the installation has used."""
        return self._database

    @property
    def backlog(self) -> Sized:
        """The jobs that wait for the writer."""
        return self._writer.backlog

    @property
    def index(self) -> SearchIndex:
        """The index of the search; a store that only looks has none."""
        assert self._index is not None, "who only looks does not search"
        return self._index

    @property
    def scrubbing(self) -> bool:
        """True while bytes of something that was erased may still be in the database file or its WAL."""
        return self._writer.scrubbing

    @property
    def scrub_delay(self) -> float:
        """The seconds for which erased data has waited to be overwritten there; 0 if none waits."""
        since = self._writer.scrub_since
        return 0 if since is None else trio.current_time() - since

    def room(self) -> Room:
        """Return the room that the database takes on its disk. Raises OSError if that can't be said."""
        disk = os.statvfs(self._path)
        wal = self._path.with_name(f"{self._path.name}-wal")
        return Room(self._path.stat().st_size, wal.stat().st_size, disk.f_bavail * disk.f_frsize)

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        return await self._writer.write(job)

    async def read(self, query: Callable[[Reader], T]) -> T:
        """See `Store.read`. Raises Unavailable if the disk fails, or it takes too long for a request that waits.

        An `Inline` query is run right here: a thread costs ten times more than it takes (ADR 47). It can
        be cancelled, but it gives no turn to others, which costs as much as the query.
        """
        if isinstance(query, Inline):
            await trio.lowlevel.checkpoint_if_cancelled()
            result: T = self._asked(self._here, partial(_at_one_moment, query))
            return result
        tenant = TENANT.get()
        who, waiting = (None, False) if tenant is None else (tenant.who, tenant.waiting)
        seconds = self._read_timeout_s if waiting else inf
        return await trio.to_thread.run_sync(self._query, query, seconds, limiter=lent(self._turns, who))

    def close(self) -> None:
        """Close all connections; the last one folds the WAL into the file."""
        for reader in (*(reader for reader, _ in self._readers), self._here):
            reader.conn.close()
        self._connection.close()
        if self._index is not None:
            self._index.close()
        self._writer.close()
        self._database.close()
        os.close(self._file)  # the very last: see `Scrubber`

    def _query(self, query: Callable[[Reader], T], seconds: float) -> T:
        reader, patience = self._readers.pop()  # there are no more turns than readers
        patience.begin(seconds)
        try:
            return self._asked(reader, partial(_at_one_moment, query))
        except Unavailable as error:
            if patience.over:
                detail = f"The database did not answer within {seconds:g} s; ask for less at a time."
                raise Unavailable(detail, code="read_timeout") from error
            raise
        finally:
            patience.end()
            self._readers.append((reader, patience))

    def _asked(self, reader: SqliteReader, query: Callable[[SqliteReader], T]) -> T:
        try:
            return query(reader)
        except sqlite3.OperationalError as error:
            raise Unavailable(f"The database could not be read: {error}", code="storage_failed") from error
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            if reader is not self._here and self._index is not None:
                return self._asked_alone(query, error)
            raise Unavailable(self._database.met_damage(error).detail, code=WRONG_DATABASE) from error

    def _asked_alone(self, query: Callable[[SqliteReader], T], error: sqlite3.DatabaseError) -> T:
        """Run a query again without the search index, to know which of the two files is damaged."""
        try:
            with closing(connect_reader(self._path)) as connection:
                return query(SqliteReader(connection))
        except sqlite3.OperationalError as missing:  # the index's tables
            log.error(
                "search.index_damaged",
                error=str(error),
                advice="restart the service; it makes a new index",
            )
            self._path.with_name(f"{INDEX_NAME}{DAMAGED}").touch()
            raise Unavailable(f"The search index is damaged: {error}", code="storage_failed") from missing
        except sqlite3.DatabaseError as again:
            if not is_damage(again):
                raise
            raise Unavailable(self._database.met_damage(again).detail, code=WRONG_DATABASE) from again


def _patient_reader(path: Path, index: Path | None) -> tuple[SqliteReader, Patience]:
    connection = connect_reader(path)
    if index is not None:
        attach(connection, index)
    return SqliteReader(connection), Patience(connection)


def _at_one_moment(query: Callable[[Reader], T], reader: SqliteReader) -> T:
    """Run a query all of whose statements see the same state, whatever is committed between them."""
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
        read_timeout_s: how long one look may take for a request that waits.
        upgrade_copies: how many copies made before upgrades are kept; 0 makes none.
        serving: whether this is a server, which waits for a command that has the directory, and keeps it for long.

    Raises DataDirectoryError if the directory is in use, newer than the program, or not usable.
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
