"""Queries in worker threads, each at one moment of the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final, TypeVar

import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import SharedReader
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.codec import Result
from deskwire.storage.postgres.driver.refusals import QUERY_CANCELED, ConnectionLost, DatabaseError, unread
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.transaction import PostgresReader

T = TypeVar("T")
_PAUSE_S: Final = 0.05
_SLACK: Final = 0.9
"""A limit is set anew when this share of it is left or less, so that a look takes a ninth longer at most."""


class Readers:
    """A number of connections that are only read from, opened when they are first needed.

    Args:
        count: of the threads that ask at once, at most.
        patience_s: how long a database that can't be reached is waited for.
    """

    def __init__(self, database: Database, count: int, patience_s: float) -> None:
        self._patience_s = patience_s
        self._free = [BlockingConnection(database, "read") for _ in range(count)]

    def ask(self, query: Callable[[SharedReader], T], seconds: float) -> T:
        """Return the query's result; called in a thread.

        Args:
            seconds: how long it may take, with all of its statements.

        Raises Unavailable if the database can't be read, or takes longer.
        """
        conn = self._free.pop()
        try:
            return self._patiently(conn, query, seconds)
        except DatabaseError as error:
            if error.sqlstate == QUERY_CANCELED and seconds < inf:
                detail = f"The database did not answer within {seconds:g} s; ask for less at a time."
                raise Unavailable(detail, code="read_timeout") from error
            raise unread(error) from error
        finally:
            self._free.append(conn)

    def _patiently(self, conn: BlockingConnection, query: Callable[[SharedReader], T], seconds: float) -> T:
        """Ask, and again on another session if one is lost: to look twice does no harm."""
        began = time.monotonic()
        while True:
            try:
                return _at_one_moment(conn, query, began + seconds)
            except ConnectionLost as lost:
                if lost.final or time.monotonic() >= began + min(self._patience_s, seconds):
                    raise
                time.sleep(_PAUSE_S)

    async def open(self) -> None:
        """Open one connection before it is used. Raises ConnectionLost."""
        conn = self._free.pop()
        try:
            await trio.to_thread.run_sync(conn.open)
        finally:
            self._free.append(conn)

    def close(self) -> None:
        """Close the connections; nobody asks any more."""
        for conn in self._free:
            conn.close()


class _Bounded:
    """A connection all of whose statements are ended at one time: each gets what those before it have left."""

    dialect: Final = POSTGRES

    def __init__(self, conn: BlockingConnection, until: float) -> None:
        self._conn = conn
        self._until = until
        self._set = self._left()

    def begun(self) -> str:
        """Return what sets the limit of the first statement."""
        return f"SET LOCAL statement_timeout = {max(1, round(self._set * 1000))}"

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Result:
        """See `Connection.execute`."""
        left = self._left()
        if left < self._set * _SLACK:  # a look of the usual kind never comes here, and pays for no exchange
            self._set = left
            self._conn.command(self.begun())
        return self._conn.execute(sql, values)

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise DatabaseError(QUERY_CANCELED, "the time for all statements together is over")
        return left


def _at_one_moment(conn: BlockingConnection, query: Callable[[SharedReader], T], until: float) -> T:
    """Run a query all of whose statements see the same state, whatever is committed between them."""
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    source: Any = conn
    if until < inf:
        source = _Bounded(conn, until)
        begin = f"{begin}; {source.begun()}"
    conn.command(begin)
    try:
        reader: Any = PostgresReader(source)
        return query(reader)
    finally:
        if conn.in_transaction:
            conn.command("ROLLBACK")
