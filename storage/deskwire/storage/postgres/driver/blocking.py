"""Connections for worker threads and commands, which wait for each statement.

`BlockingConnection` implements the store's connection with prepared statements. A transaction of reads needs no
round trips of its own: its BEGIN is queued for the first statement, and nothing waits for its ROLLBACK.
`ThreadSession` is a psycopg connection. Both end with all other sessions when the process leaves their server.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final

import psycopg
from psycopg import pq

from deskwire.storage.dialect import PLANNED_ONCE, POSTGRES
from deskwire.storage.postgres.driver.codec import (
    QueryResult,
    error_of,
    ordered_values,
    result_of,
    translate_placeholders,
)
from deskwire.storage.postgres.driver.errors import ConnectionLost
from deskwire.storage.postgres.driver.pipeline import Statement, bound_statement
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.driver.session import Database, Role

# Statements that a session keeps prepared: all of the program's, except rare variants.
_PREPARED_MAX: Final = 500

_ROLE_TIMEOUT_S: Final[dict[Role, float]] = {"beat": 10.0, "setup": 60.0}
# Time for one statement of any other role, some of which process many rows. The heartbeat detects a dead
# server much earlier.
_STATEMENT_TIMEOUT_S: Final = 600.0

_PLANNED_ONCE: Final = f"SELECT {PLANNED_ONCE}"
_SET_PLANS: Final = "SELECT set_config('plan_cache_mode', $1, true), set_config('enable_seqscan', $2, true), set_config('enable_sort', $2, true)"
_ONCE, _EACH_TIME = ("force_generic_plan", "off"), ("auto", "on")

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
        self._queued: list[Statement] = []
        self._plans_once = False  # for the statements of this transaction
        self._rolling_back = False  # a ROLLBACK was sent, and its result was not read
        self.notices: list[str] = []  # SQLSTATEs of the notices of the last `command`
        self.changed = False  # set by each statement that may have changed rows

    @property
    def session(self) -> pq.abc.PGconn:
        """The session, opened if necessary. Raises ConnectionLost."""
        if self._connection is None:
            connection = self._database.connect(self._role)
            connection.notice_handler = self._record_notice
            self._connection, self._prepared, self._rolling_back = connection, {}, False
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
        answer = self._run(bound_statement(text, ordered_values(names, values)))
        if not sql.startswith("SELECT"):
            self.changed = True
        return result_of(answer)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement once for each of the rows."""
        for row in rows:
            self.execute(sql, row)

    def queue(self, text: str, values: Sequence[Any] = ()) -> None:
        """Queue a statement with `$1` for its values, to be sent with the next one that is executed.

        If it fails, the next one is not executed, and raises its error.
        """
        self._queued.append(bound_statement(text, values))

    def roll_back(self) -> None:
        """Discard the queue, and roll back the transaction if there is one; the next statement waits for that."""
        self._queued.clear()
        self._plans_once = False
        if self._connection is None or not self.in_transaction:
            return
        try:
            self._connection.send_query(b"ROLLBACK")
        except psycopg.Error:
            self.close()
        else:
            self._rolling_back = True

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

        def send_one() -> int:
            send()
            return 1

        return self._answers(send_one, timeout_s)[0]

    def _answers(self, send: Callable[[], int], timeout_s: float = inf) -> Sequence[pq.abc.PGresult]:
        """Send statements, and return the last result of each; `send` returns how many. See `_answer`."""
        connection = self.session
        timeout_s = min(timeout_s, self._timeout_s)
        until = time.monotonic() + timeout_s
        answers: list[pq.abc.PGresult] = []
        try:
            rolling_back, self._rolling_back = self._rolling_back, False
            count = 1 if rolling_back else send()
            while len(answers) < count:
                answer = self._wait_for_answer(connection, until)
                if answer is None:
                    raise self._lost(f"no answer within {timeout_s:g} s")
                if connection.status != pq.ConnStatus.OK:
                    raise self._lost(str(error_of(answer)))
                if rolling_back:
                    rolling_back, count = False, send()
                else:
                    answers.append(answer)
        except psycopg.Error as error:
            raise self._lost(str(error)) from error
        self._database.servers.note_answer()
        return answers

    @staticmethod
    def _wait_for_answer(connection: pq.abc.PGconn, until: float) -> pq.abc.PGresult | None:
        """Return the last result of a statement; None if it is late."""
        last: pq.abc.PGresult | None = None
        while True:
            while connection.is_busy():
                readable = select.poll()
                readable.register(connection.socket, select.POLLIN)
                if not readable.poll(max(0.0, until - time.monotonic()) * 1_000):
                    return None
                connection.consume_input()
            answer = connection.get_result()
            if answer is None:
                return last
            last = answer

    def close(self) -> None:
        """Close the session, if there is one; its transaction is rolled back."""
        if self._connection is not None:
            self._database.release(self._connection)
            self._connection = None

    def _run(self, statement: Statement) -> pq.abc.PGresult:
        """Run the queued statements and then this one in one round trip; return its result."""
        plans_once = statement.sql.startswith(_PLANNED_ONCE)
        if plans_once is not self._plans_once:
            self.queue(_SET_PLANS, _ONCE if plans_once else _EACH_TIME)
            self._plans_once = plans_once
        statements = [*self._queued, statement]
        self._queued.clear()
        new: dict[str, tuple[bytes, int]] = {}
        answers = self._answers(lambda: self._send(statements, new))[:-1]
        self.session.exit_pipeline_mode()
        self._plans_once = plans_once and self.in_transaction
        self._prepared |= {text: name for text, (name, at) in new.items() if answers[at].status in _SUCCESS}
        for answer in answers:
            self._check(answer)
        return answers[-1]

    def _send(self, statements: Sequence[Statement], new: dict[str, tuple[bytes, int]]) -> int:
        """Send statements as a pipeline; return the number of their results, the end's included.

        Args:
            new: is filled with the names of the statements that are prepared, and the numbers of these results.
        """
        connection, count = self.session, 0
        connection.enter_pipeline_mode()
        for text, values, forms, _ in statements:
            name = new[text][0] if text in new else self._prepared.get(text)
            number = len(self._prepared) + len(new)
            if name is None and number < _PREPARED_MAX:
                name = b"p%d" % number
                new[text] = name, count
                connection.send_prepare(name, text.encode())
                count += 1
            if name is None:
                connection.send_query_params(
                    text.encode(), values, param_formats=forms, result_format=pq.Format.BINARY
                )
            else:
                connection.send_query_prepared(
                    name, values, param_formats=forms, result_format=pq.Format.BINARY
                )
            count += 1
        connection.pipeline_sync()
        return count + 1

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
