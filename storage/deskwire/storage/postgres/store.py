"""The PostgreSQL store: one database that several nodes share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import Final, TypeVar

import structlog
import trio

from deskwire.engine.core.counters import CommitCounters, SharedCommitCounters
from deskwire.engine.core.database_identity import DatabaseIdentity
from deskwire.engine.core.limits.fair_share import TENANT, FairLimiter, thread_limiter
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.tasks.oneshot import OneShot
from deskwire.engine.ports import Commit, SharedReader, Transaction
from deskwire.storage.postgres.commit.single_jobs import DATABASE_TIMEOUT_S
from deskwire.storage.postgres.commit.writer import QUEUE_MAX, Writer
from deskwire.storage.postgres.driver.errors import ConnectionLost
from deskwire.storage.postgres.driver.readers import ReadBatcher, ReaderPool, TooManyStatements
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.driver.session import Database

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)


class PostgresStore:
    """`ports.Store` on one PostgreSQL database, made by `open_postgres`."""

    def __init__(
        self,
        database: Database,
        batch: int,
        readers: int,
        on_commit: Callable[[Commit], None],
        queue: int,
        read_timeout_s: float = inf,
        timeout_s: float = DATABASE_TIMEOUT_S,
    ) -> None:
        self.database: Final = database
        self._writer = Writer(database, batch, on_commit, queue, timeout_s)
        self._reader_pool = ReaderPool(database, readers, timeout_s)
        self._read_batcher = ReadBatcher(database, timeout_s)
        self._places = FairLimiter(readers)
        self._read_timeout_s = read_timeout_s

    @property
    def commits(self) -> CommitCounters:
        """The writer's counters."""
        return self._writer.commits

    @property
    def shared(self) -> SharedCommitCounters:
        """The counters of conflicts and round trips that a shared database causes."""
        return self._writer.shared

    @property
    def identity(self) -> DatabaseIdentity:
        """The result of comparing the server with the one that the installation has used."""
        return self.database.servers.identity

    @property
    def backlog(self) -> Sized:
        """The jobs that wait for the writer."""
        return self._writer.backlog

    def waited_s(self) -> float:
        """Return the age of the oldest running transaction in seconds; 0 if there is none."""
        return self._writer.waited_s

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        slot = OneShot[T]()
        self._writer.submit(job, slot.put)
        return await slot.take()

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        self._writer.submit(job, ended)

    async def read(self, query: Callable[[SharedReader], T]) -> T:
        """See `Store.read`.

        Raises Unavailable if the database can't be read, or takes too long while a request waits.
        """
        if isinstance(query, InlineQuery):
            try:
                found: T = await self._read_batcher.read(query.query)
            except TooManyStatements:
                log.debug("storage.look_too_long", query=repr(query.query))
            else:
                return found
        tenant = TENANT.get()
        tenant_id, waiting = (None, False) if tenant is None else (tenant.who, tenant.waiting)
        seconds = self._read_timeout_s if waiting else inf
        return await trio.to_thread.run_sync(
            self._reader_pool.read, query, seconds, limiter=thread_limiter(self._places, tenant_id)
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit jobs and run small reads until cancelled."""
        await self._open_sessions()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._read_batcher.run)
            await nursery.start(self._writer.run)
            task_status.started()

    async def _open_sessions(self) -> None:
        """Open the sessions that are always needed, concurrently.

        A session that fails to open is opened at its first use.
        """
        async with trio.open_nursery() as nursery:
            for open_ in (self._read_batcher.open, self._writer.open, self._reader_pool.open):
                nursery.start_soon(_open_quietly, open_)

    def close(self) -> None:
        """Close all connections."""
        self._read_batcher.close()
        self._reader_pool.close()
        self._writer.close()


async def _open_quietly(open_: Callable[[], Awaitable[None]]) -> None:
    with suppress(ConnectionLost):
        await open_()


@asynccontextmanager
async def open_postgres(
    url: str,
    *,
    node: str,
    batch: int,
    readers: int,
    on_commit: Callable[[Commit], None],
    queue: int = QUEUE_MAX,
    read_timeout_s: float = inf,
    timeout_s: float = DATABASE_TIMEOUT_S,
    servers: Servers | None = None,
) -> AsyncIterator[PostgresStore]:
    """Open a database that is up to date; the writer runs while the context is open.

    Args:
        url: in libpq's form; if it names several hosts, the writable one is used.
        node: the node's name, which no other process uses at the same time.
        read_timeout_s: time for one read while a request waits.
        timeout_s: time for the database to become reachable before anything is refused.
        servers: those of the URL, if sessions with them were opened before.

    A database that can't be reached raises no error here; reads and writes do.
    """
    database = Database(url, node, servers or Servers())
    store = PostgresStore(database, batch, readers, on_commit, queue, read_timeout_s, timeout_s)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            yield store
            nursery.cancel_scope.cancel()
    finally:
        store.close()
