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
from deskwire.storage.postgres.commit.lone import PATIENCE_S
from deskwire.storage.postgres.commit.writer import WAITING_MAX, Writer
from deskwire.storage.postgres.driver.look import Look, TooManyStatements
from deskwire.storage.postgres.driver.readers import Readers
from deskwire.storage.postgres.driver.refusals import ConnectionLost
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.driver.session import Database

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)


class PostgresStore:
    """`ports.Store` on one PostgreSQL database. Made by `open_postgres`."""

    def __init__(
        self,
        database: Database,
        batch: int,
        readers: int,
        on_commit: Callable[[Commit], None],
        queue: int,
        read_timeout_s: float = inf,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.database: Final = database
        self._writer = Writer(database, batch, on_commit, queue, patience_s)
        self._readers = Readers(database, readers, patience_s)
        self._look = Look(database, patience_s)
        self._turns = FairLimiter(readers)
        self._read_timeout_s = read_timeout_s

    @property
    def commits(self) -> CommitCounters:
        """The writer's counters."""
        return self._writer.commits

    @property
    def shared(self) -> SharedCommitCounters:
        """The further costs of commits, as others have the database, too."""
        return self._writer.shared

    @property
    def identity(self) -> DatabaseIdentity:
        """The result of comparing the database with the one that the installation has used."""
        return self.database.servers.identity

    @property
    def backlog(self) -> Sized:
        """The jobs that wait for the writer."""
        return self._writer.backlog

    def waited_s(self) -> float:
        """Return for how many seconds the oldest transaction under way has been; 0 if there is none."""
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
        """See `Store.read`. Raises Unavailable if the database can't be read, or it takes too long for a request that waits."""
        if isinstance(query, InlineQuery):
            try:
                found: T = await self._look.ask(query.query)
            except TooManyStatements:
                log.debug("storage.look_too_long", query=repr(query.query))
            else:
                return found
        tenant = TENANT.get()
        who, waiting = (None, False) if tenant is None else (tenant.who, tenant.waiting)
        seconds = self._read_timeout_s if waiting else inf
        return await trio.to_thread.run_sync(
            self._readers.ask, query, seconds, limiter=thread_limiter(self._turns, who)
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit what is written until cancelled."""
        await self._open_sessions()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._look.run)
            await nursery.start(self._writer.run)
            task_status.started()

    async def _open_sessions(self) -> None:
        """Open the sessions that are certainly needed, all at once; one that fails is opened when it is used."""
        async with trio.open_nursery() as nursery:
            for open_ in (self._look.open, self._writer.open, self._readers.open):
                nursery.start_soon(_opened, open_)

    def close(self) -> None:
        """Close all connections."""
        self._look.close()
        self._readers.close()
        self._writer.close()


async def _opened(open_: Callable[[], Awaitable[None]]) -> None:
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
    queue: int = WAITING_MAX,
    read_timeout_s: float = inf,
    patience_s: float = PATIENCE_S,
    servers: Servers | None = None,
) -> AsyncIterator[PostgresStore]:
    """Open a database that is up to date; the writer runs while the context is open.

    Args:
        url: as libpq takes it; several hosts are tried for the one that can be written to.
        node: the node's name; no two processes have the same at one time.
        read_timeout_s: how long one look may take for a request that waits.
        patience_s: how long a database that can't be reached is waited for before something is refused.
        servers: those of the URL, if sessions with them were opened before.

    A database that can't be reached is found out by what is asked of it.
    """
    database = Database(url, node, servers or Servers())
    store = PostgresStore(database, batch, readers, on_commit, queue, read_timeout_s, patience_s)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            yield store
            nursery.cancel_scope.cancel()
    finally:
        store.close()
