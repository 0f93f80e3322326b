"""Connections for worker threads and commands, which wait for each statement.

`BlockingConnection` implements the store's connection with prepared statements. `ThreadSession` is a psycopg
connection. Both end with all other sessions when the process leaves their server.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final

import psycopg
from psycopg import pq

from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.codec import (
    QueryResult,
    encode_value,
    error_of,
    formats,
    ordered_values,
    result_of,
    translate_placeholders,
)
from deskwire.storage.postgres.driver.errors import ConnectionLost
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.driver.session import Database, Role

# Statements that a session keeps prepared: all of the program's, except rare variants.
_PREPARED_MAX: Final = 500

_ROLE_TIMEOUT_S: Final[dict[Role, float]] = {"beat": 10.0, "setup": 60.0}
# Time for one statement of any other role, some of which process many rows. The heartbeat detects a dead
# server much earlier.
_STATEMENT_TIMEOUT_S: Final = 600.0

_SUCCESS: Final = frozenset(
    {pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY, pq.ExecStatus.COPY_IN}
)


class BlockingConnection:
    """`connection.Connection` with PostgreSQL, for one thread at a time.

    The session is opened at its first use, and again after it was lost.
    """

    dialect: Final = POSTGRES

    def __init__(self, database: Database, role: Role) -> None:
        self._database = database
        self._role: Role = role
        self._timeout_s = _ROLE_TIMEOUT_S.get(role, _STATEMENT_TIMEOUT_S)
        self._connection: pq.abc.PGconn | None = None
        self._prepared: dict[str, bytes] = {}
        self.notices: list[str] = []  # SQLSTATEs of the notices of the last `command`
        self.changed = False  # set by each statement that may have changed rows

    @property
    def session(self) -> pq.abc.PGconn:
        """The session, opened if necessary. Raises ConnectionLost."""
        if self._connection is None:
            connection = self._database.connect(self._role)
            connection.notice_handler = self._record_notice
            self._connection, self._prepared = connection, {}
        return self._connection

    @property
    def in_transaction(self) -> bool:
        """True if a transaction has begun and not ended, whether it failed or not."""
        connection = self._connection
        return connection is not None and connection.transaction_status != pq.TransactionStatus.IDLE

    def open(self) -> None:
        """Open the session before it is used. Raises ConnectionLost."""
        assert self.session is not None

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> QueryResult:
        """See `Connection.execute`. Raises DatabaseError."""
        text, names = translate_placeholders(sql)
        given = ordered_values(names, values)
        answer = self._run(text, [encode_value(each) for each in given], formats(given))
        if not sql.startswith("SELECT"):
            self.changed = True
        return result_of(answer)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement once for each of the rows."""
        for row in rows:
            self.execute(sql, row)

    @property
    def is_open(self) -> bool:
        """True if there is a session, as far as the client knows."""
        return self._connection is not None

    def command(self, sql: str, timeout_s: float = inf) -> None:
        """Run statements without values.

        Raises DatabaseError, and ConnectionLost if that takes longer than `timeout_s`. The statement is not
        cancelled then: the server may still carry it out.
        """
        self.notices.clear()
        connection = self.session
        self._check(self._answer(lambda: connection.send_query(sql.encode()), timeout_s))

    def _answer(self, send: Callable[[], None], timeout_s: float = inf) -> pq.abc.PGresult:
        """Send a statement, and return its last result.

        Raises ConnectionLost, even if it is late.
        """
        connection = self.session
        timeout_s = min(timeout_s, self._timeout_s)
        try:
            send()
            answer = self._wait_for_answer(connection, time.monotonic() + timeout_s)
        except psycopg.Error as error:
            raise self._lost(str(error)) from error
        if answer is None:
            raise self._lost(f"no answer within {timeout_s:g} s")
        self._database.servers.note_answer()
        return answer

    @staticmethod
    def _wait_for_answer(connection: pq.abc.PGconn, until: float) -> pq.abc.PGresult | None:
        """Return the last result; None if it is late."""
        last: pq.abc.PGresult | None = None
        readable = select.poll()
        readable.register(connection.socket, select.POLLIN)
        while True:
            while connection.is_busy():
                if not readable.poll(max(0.0, until - time.monotonic()) * 1_000):
                    return None
                connection.consume_input()
            answer = connection.get_result()
            if answer is None:
                break
            last = answer
        return last

    def close(self) -> None:
        """Close the session, if there is one; its transaction is rolled back."""
        if self._connection is not None:
            self._database.release(self._connection)
            self._connection = None

    def _run(self, text: str, values: Sequence[Any], forms: list[pq.Format]) -> pq.abc.PGresult:
        connection = self.session
        name = self._prepared.get(text)
        if name is None:
            if len(self._prepared) >= _PREPARED_MAX:
                return self._check(
                    self._answer(
                        lambda: connection.send_query_params(
                            text.encode(), values, param_formats=forms, result_format=pq.Format.BINARY
                        )
                    )
                )
            new = b"p%d" % len(self._prepared)
            self._check(self._answer(lambda: connection.send_prepare(new, text.encode())))
            name = self._prepared[text] = new
        return self._check(
            self._answer(
                lambda: connection.send_query_prepared(
                    name, values, param_formats=forms, result_format=pq.Format.BINARY
                )
            )
        )

    def _check(self, answer: pq.abc.PGresult) -> pq.abc.PGresult:
        """Return a successful result; raise an error for any other."""
        if answer.status in _SUCCESS:
            return answer
        error = error_of(answer)
        if isinstance(error, ConnectionLost) or self.session.status != pq.ConnStatus.OK:
            raise self._lost(str(error))
        raise error

    def _lost(self, why: str) -> ConnectionLost:
        self.close()
        return ConnectionLost(why)

    def _record_notice(self, notice: pq.abc.PGresult) -> None:
        self.notices.append((notice.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())


class ThreadSession(psycopg.Connection[Any]):
    """A session that commits after each statement.

    Args:
        connection: as `Servers.open` returns it.
    """

    def __init__(self, connection: pq.abc.PGconn, servers: Servers) -> None:
        connection.nonblocking = 1  # psycopg polls the socket in Python
        super().__init__(connection)
        self.servers: Final = servers
        self.autocommit = True

    def close(self) -> None:
        """End the session."""
        super().close()
        self.servers.release(self.pgconn)
