"""Reads: a pool of connections in worker threads, and one connection for small queries.

All statements of a query see the same moment of the database.

`ReadBatcher` runs the small queries of all tasks on one connection: queries that arrive during an exchange
share the next one. It runs a query on recorded results. When the query needs another statement, all of its
statements are fetched again in one transaction, until none is missing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final, TypeVar

import structlog
import trio
from msgspec import Struct, field
from psycopg import pq

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.tasks.oneshot import OneShot
from deskwire.engine.ports import SharedReader
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.codec import QueryResult, rows_of
from deskwire.storage.postgres.driver.errors import QUERY_CANCELED, ConnectionLost, DatabaseError, read_failed
from deskwire.storage.postgres.driver.pipeline import PipelineConnection, Statement, bound_statement
from deskwire.storage.postgres.driver.recorded_reads import MissingRead, ReadKey, RecordedReads
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.transaction import PostgresReader

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)

_RETRY_DELAY_S: Final = 0.05
# The statement timeout is set again when this share of it is left, so that a query takes at most a ninth
# longer.
_SLACK: Final = 0.9


class ReaderPool:
    """A pool of connections for reads, opened when they are first needed.

    Args:
        count: maximum number of threads that read at the same time.
        timeout_s: time for the database to become reachable.
    """

    def __init__(self, database: Database, count: int, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._free = [BlockingConnection(database, "read") for _ in range(count)]

    def read(self, query: Callable[[SharedReader], T], seconds: float) -> T:
        """Return the query's result; called in a thread.

        Args:
            seconds: time for all statements of the query together.

        Raises Unavailable if the database can't be read, or takes longer.
        """
        conn = self._free.pop()
        try:
            return self._with_retries(conn, query, seconds)
        except DatabaseError as error:
            if error.sqlstate == QUERY_CANCELED and seconds < inf:
                detail = f"The database did not answer within {seconds:g} s; ask for less at a time."
                raise Unavailable(detail, code="read_timeout") from error
            raise read_failed(error) from error
        finally:
            self._free.append(conn)

    def _with_retries(
        self, conn: BlockingConnection, query: Callable[[SharedReader], T], seconds: float
    ) -> T:
        """Run a query, and repeat it on another session if one is lost: reads have no effect."""
        began = time.monotonic()
        while True:
            try:
                return _in_snapshot(conn, query, began + seconds)
            except ConnectionLost as lost:
                if lost.final or time.monotonic() >= began + min(self._timeout_s, seconds):
                    raise
                time.sleep(_RETRY_DELAY_S)

    async def open(self) -> None:
        """Open one connection before it is used. Raises ConnectionLost."""
        conn = self._free.pop()
        try:
            await trio.to_thread.run_sync(conn.open)
        finally:
            self._free.append(conn)

    def close(self) -> None:
        """Close all connections."""
        for conn in self._free:
            conn.close()


class _TimeLimited:
    """A connection with a timeout for all of its statements together."""

    dialect: Final = POSTGRES

    def __init__(self, conn: BlockingConnection, until: float) -> None:
        self._conn = conn
        self._until = until
        self._set_timeout(self._left())

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> QueryResult:
        """See `Connection.execute`."""
        left = self._left()
        if left < self._set * _SLACK:  # usual queries never come here
            self._set_timeout(left)
        return self._conn.execute(sql, values)

    def _set_timeout(self, seconds: float) -> None:
        self._set = seconds
        self._conn.queue(_SET_TIMEOUT, (str(max(1, round(seconds * 1000))),))

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise DatabaseError(QUERY_CANCELED, "the time for all statements together is over")
        return left


_BEGIN_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SET_TIMEOUT: Final = "SELECT set_config('statement_timeout', $1, true)"


def _in_snapshot(conn: BlockingConnection, query: Callable[[SharedReader], T], until: float) -> T:
    """Run a query in one snapshot, so that it sees no later commits."""
    conn.queue(_BEGIN_SNAPSHOT)
    try:
        source: Any = _TimeLimited(conn, until) if until < inf else conn
        reader: Any = PostgresReader(source)
        return query(reader)
    finally:
        conn.roll_back()


_BATCH_SIZE: Final = 256  # Maximum number of queries in one exchange.

_STATEMENTS_MAX: Final = 16
_BEGIN: Final = Statement(_BEGIN_SNAPSHOT)
_END: Final = Statement("COMMIT")


class TooManyStatements(Exception):
    """The query has too many statements, and must run on a connection of its own."""


class _ReadRequest(Struct, eq=False):
    keys: list[ReadKey]
    slot: OneShot[list[list[tuple[Any, ...]]]] = field(default_factory=OneShot)

    def statements(self) -> list[Statement]:
        statements = [bound_statement(*key) for key in self.keys]
        return statements if len(statements) == 1 else [_BEGIN, *statements, _END]

    def take(self, answers: Sequence[pq.abc.PGresult]) -> None:
        """Set the results of `statements`."""
        rows = answers if len(answers) == 1 else answers[1:-1]
        self.slot.put([rows_of(each) for each in rows])


class ReadBatcher:
    """Runs the small queries of all tasks on one connection.

    Args:
        timeout_s: time for the database to become reachable.
    """

    def __init__(self, database: Database, timeout_s: float) -> None:
        self._connection = PipelineConnection(database, "look")
        self._timeout_s = timeout_s
        self._waiting: deque[_ReadRequest] = deque()
        self._wakeup = trio.Event()

    async def read(self, query: Callable[[SharedReader], T]) -> T:
        """Return the query's result.

        Raises Unavailable if the database can't be read, and TooManyStatements if the query has too many
        statements.
        """
        recorded = RecordedReads()
        reader: Any = PostgresReader(recorded)
        keys: list[ReadKey] = []
        while True:
            try:
                return query(reader)
            except MissingRead as missing:
                if len(keys) >= _STATEMENTS_MAX:
                    raise TooManyStatements from None
                keys += missing.keys
            for key, rows in zip(keys, await self._fetch(keys), strict=True):
                recorded.known[key] = rows

    async def open(self) -> None:
        """Open the connection before it is used. Raises ConnectionLost."""
        await self._connection.open()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run queries until cancelled."""
        task_status.started()
        while True:
            await self._wakeup.wait()
            requests = [self._waiting.popleft() for _ in range(min(_BATCH_SIZE, len(self._waiting)))]
            if not self._waiting:
                self._wakeup = trio.Event()
            await self._answer(requests)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    async def _fetch(self, keys: list[ReadKey]) -> list[list[tuple[Any, ...]]]:
        request = _ReadRequest(list(keys))
        self._waiting.append(request)
        self._wakeup.set()
        return await request.slot.take()

    async def _answer(self, requests: Sequence[_ReadRequest]) -> None:
        """Fetch for all queries in one exchange; if it fails, for each query in its own."""
        # Queries with a transaction come first: an isolation level can't be set after another query in the
        # same exchange.
        requests = sorted(requests, key=lambda request: len(request.keys) == 1)
        each = [request.statements() for request in requests]
        try:
            answers = await self._exchange([statement for some in each for statement in some])
        except ConnectionLost as lost:
            for request in requests:
                request.slot.put(read_failed(lost))
        except DatabaseError as error:
            if len(requests) == 1:
                self._connection.close()  # it may be in a failed transaction
                requests[0].slot.put(read_failed(error))
                return
            self._connection.close()
            for request in requests:
                await self._answer([request])
        else:
            first = 0
            for request, some in zip(requests, each, strict=True):
                _put_rows(request, answers[first : first + len(some)])
                first += len(some)

    async def _exchange(self, statements: Sequence[Statement]) -> list[pq.abc.PGresult]:
        """Run an exchange, and repeat it on another session if one is lost: reads have no effect."""
        until = trio.current_time() + self._timeout_s
        while True:
            try:
                return await self._connection.exchange(statements, self._timeout_s)
            except ConnectionLost as lost:
                if lost.final or trio.current_time() >= until:
                    raise
                log.info("storage.look_again", error=str(lost))
                await trio.sleep(_RETRY_DELAY_S)


def _put_rows(request: _ReadRequest, answers: Sequence[pq.abc.PGresult]) -> None:
    try:
        request.take(answers)
    except TypeError as error:  # unknown result type: fail this query only
        request.slot.put(error)
