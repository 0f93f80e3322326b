"""Queries in worker threads, each at one moment of the database."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Any, Final, TypeVar

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import SharedReader
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.refusals import QUERY_CANCELED, ConnectionLost, DatabaseError, unread
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.transaction import PostgresReader

T = TypeVar("T")
_PAUSE_S: Final = 0.05


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
            seconds: how long each of its statements may take.

        Raises Unavailable if the database can't be read, or takes longer.
        """
        conn = self._free.pop()
        try:
            return self._patiently(conn, query, seconds)
        except DatabaseError as error:
            if error.sqlstate == QUERY_CANCELED:
                detail = f"The database did not answer within {seconds:g} s; ask for less at a time."
                raise Unavailable(detail, code="read_timeout") from error
            raise unread(error) from error
        finally:
            self._free.append(conn)

    def _patiently(self, conn: BlockingConnection, query: Callable[[SharedReader], T], seconds: float) -> T:
        """Ask, and again on another session if one is lost: to look twice does no harm."""
        until = time.monotonic() + min(self._patience_s, seconds)
        while True:
            try:
                return _at_one_moment(conn, query, seconds)
            except ConnectionLost:
                if time.monotonic() >= until:
                    raise
                time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Close the connections; nobody asks any more."""
        for conn in self._free:
            conn.close()


def _at_one_moment(conn: BlockingConnection, query: Callable[[SharedReader], T], seconds: float) -> T:
    """Run a query all of whose statements see the same state, whatever is committed between them."""
    limit = "" if seconds == inf else f"; SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}"
    conn.command(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{limit}")
    try:
        reader: Any = PostgresReader(conn)
        return query(reader)
    finally:
        if conn.in_transaction:
            conn.command("ROLLBACK")
