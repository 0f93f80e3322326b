"""A non-blocking libpq connection for Trio's thread, with several statements in flight.

An exchange is one round trip: statements, a Sync, and all their results. After a failed statement the server
skips the others up to the Sync. An exchange must end before the next one begins, so an exchange that is
cancelled ends the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple

import psycopg
import trio
from psycopg import pq

from deskwire.storage.postgres.driver.codec import encode_value, error_of, formats
from deskwire.storage.postgres.driver.errors import ConnectionLost, DatabaseError
from deskwire.storage.postgres.driver.session import Database, Role

_PREPARED_MAX: Final = 500
_BAD: Final = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE})
_SYNC: Final = pq.ExecStatus.PIPELINE_SYNC
_ABORTED: Final = pq.ExecStatus.PIPELINE_ABORTED
_BINARY: Final = pq.Format.BINARY


class Statement(NamedTuple):
    """A statement with encoded values.

    Args:
        sql: with `$1` for its values.
        values, forms: the values and their formats, as `codec` encodes them.
        types: the type OIDs of the values, if they are named.
    """

    sql: str
    values: Sequence[Any] = ()
    forms: Sequence[pq.Format] = ()
    types: Sequence[int] = ()


_NOTHING: Final = Statement("")


class PipelineConnection:
    """A pipelined session for one task at a time.

    The session is opened at its first use, and again after it was lost.
    """

    def __init__(self, database: Database, role: Role) -> None:
        self._database: Final = database
        self.role: Final[Role] = role
        self._connection: pq.abc.PGconn | None = None
        self._prepared: dict[str, bytes] = {}
        self._named = 0
        self.notices: list[str] = []  # SQLSTATEs of the notices of the last exchange

    @property
    def is_open(self) -> bool:
        """True if there is a session, as far as the client knows."""
        return self._connection is not None

    async def open(self) -> None:
        """Open the session if there is none. Raises ConnectionLost."""
        if self._connection is not None:
            return
        opening = _SessionOpening(partial(self._database.connect, self.role), self._database.release)
        try:
            connection = await trio.to_thread.run_sync(opening.run, abandon_on_cancel=True)
        except trio.Cancelled:
            opening.abandon()
            raise
        self._connection, self._prepared = connection, {}
        with self._close_on_error():
            connection.nonblocking = 1
            connection.notice_handler = self._record_notice
            connection.enter_pipeline_mode()

    async def exchange(
        self, statements: Sequence[Statement], timeout_s: float = inf
    ) -> list[pq.abc.PGresult]:
        """Run statements in one round trip, and return their results.

        Raises DatabaseError for the first statement that is refused; the server skips all later ones. Raises
        ConnectionLost if it is unknown how many were run, or after `timeout_s`.
        """
        await self.open()
        answers: list[pq.abc.PGresult] = []
        with self._close_on_error():
            with trio.move_on_after(timeout_s) as timeout:
                names = self._send(statements)
                await self._flush()
                refused = await self._receive(statements, names, answers)
            if timeout.cancelled_caught:
                raise _no_answer(timeout_s)
        self._database.servers.note_answer()
        if refused is not None:
            raise refused
        return answers

    async def describe(self, texts: Sequence[str], timeout_s: float = inf) -> list[tuple[int, ...]]:
        """Return the type OIDs of each statement's values.

        Raises DatabaseError as `exchange` does.
        """
        await self.open()
        answers: list[pq.abc.PGresult] = []
        with self._close_on_error():
            connection = self._session()
            with trio.move_on_after(timeout_s) as timeout:
                for text in texts:
                    connection.send_prepare(b"", text.encode())
                    connection.send_describe_prepared(b"")
                connection.pipeline_sync()
                await self._flush()
                refused = await self._receive([_NOTHING] * (2 * len(texts)), {}, answers)
            if timeout.cancelled_caught:
                raise _no_answer(timeout_s)
        if refused is not None:
            raise refused
        return [tuple(each.param_type(at) for at in range(each.nparams)) for each in answers[1::2]]

    def close(self) -> None:
        """End the session, if there is one.

        The server rolls back its transaction, unless a COMMIT has arrived.
        """
        if self._connection is not None:
            self._database.release(self._connection)
            self._connection = None

    def _session(self) -> pq.abc.PGconn:
        assert self._connection is not None
        return self._connection

    def _close_on_error(self) -> _CloseOnError:
        return _CloseOnError(self.close)

    def _send(self, statements: Sequence[Statement]) -> dict[int, tuple[str, bytes]]:
        """Queue statements for sending; return the names of those to prepare, by their index."""
        connection = self._session()
        self.notices.clear()
        names: dict[int, tuple[str, bytes]] = {}
        coming: dict[str, bytes] = {}
        for at, (sql, values, forms, types) in enumerate(statements):
            name = self._prepared.get(sql) or coming.get(sql)
            if name is None:
                if len(self._prepared) + len(coming) >= _PREPARED_MAX:
                    connection.send_query_params(
                        sql.encode(),
                        values,
                        param_types=types or None,
                        param_formats=forms or None,
                        result_format=_BINARY,
                    )
                    continue
                self._named += 1
                name = coming[sql] = b"d%d" % self._named
                names[at] = sql, name
                connection.send_prepare(name, sql.encode(), param_types=types or None)
            connection.send_query_prepared(name, values, param_formats=forms or None, result_format=_BINARY)
        connection.pipeline_sync()
        return names

    async def _receive(
        self,
        statements: Sequence[Statement],
        names: dict[int, tuple[str, bytes]],
        answers: list[pq.abc.PGresult],
    ) -> DatabaseError | None:
        """Receive all results up to the Sync; return the first refusal. Raises ConnectionLost."""
        refused: DatabaseError | None = None
        for at in range(len(statements)):
            if at in names:
                prepared = await self._answer()
                if prepared.status in _BAD:
                    refused = refused or error_of(prepared)
                elif prepared.status != _ABORTED:
                    sql, name = names[at]
                    self._prepared[sql] = name
            answer = await self._answer()
            if answer.status in _BAD:
                refused = refused or error_of(answer)
            answers.append(answer)
            if isinstance(refused, ConnectionLost):
                raise refused
        last = await self._next()
        if last is None or last.status != _SYNC:
            raise ConnectionLost("the results do not end with the Sync")
        return refused

    async def _answer(self) -> pq.abc.PGresult:
        """Receive the result of one statement, and the end mark after it."""
        answer = await self._next()
        if answer is None:
            raise ConnectionLost(self._session().get_error_message())
        if (behind := await self._next()) is not None:
            raise (
                error_of(behind) if behind.status in _BAD else ConnectionLost("more results than statements")
            )
        return answer

    async def _next(self) -> pq.abc.PGresult | None:
        connection = self._session()
        while connection.is_busy():
            await trio.lowlevel.wait_readable(connection.socket)
            connection.consume_input()
        return connection.get_result()

    async def _flush(self) -> None:
        """Send everything, and read in the meantime: otherwise both sides may wait for each other."""
        connection = self._session()
        while connection.flush():
            async with trio.open_nursery() as nursery:
                for ready in (trio.lowlevel.wait_readable, trio.lowlevel.wait_writable):
                    nursery.start_soon(_wait_first, ready, connection.socket, nursery.cancel_scope)
            connection.consume_input()

    def _record_notice(self, notice: pq.abc.PGresult) -> None:
        self.notices.append((notice.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())


def _no_answer(timeout_s: float) -> ConnectionLost:
    return ConnectionLost(f"no answer within {timeout_s:g} s")


class _CloseOnError:
    """Ends the session if an exchange is left early, for any reason."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        self._close()
        if isinstance(error, psycopg.Error | OSError):
            raise ConnectionLost(str(error)) from error


class _SessionOpening:
    """A session that a thread opens, and closes itself if its task was cancelled."""

    def __init__(
        self, connect: Callable[[], pq.abc.PGconn], release: Callable[[pq.abc.PGconn], None]
    ) -> None:
        self._connect = connect
        self._release = release
        self._connection: pq.abc.PGconn | None = None
        self._abandoned = False

    def run(self) -> pq.abc.PGconn:
        self._connection = connection = self._connect()
        if self._abandoned:
            self._release(connection)
        return connection

    def abandon(self) -> None:
        self._abandoned = True
        if self._connection is not None:
            self._release(self._connection)


async def _wait_first(ready: Callable[[int], Any], socket: int, others: trio.CancelScope) -> None:
    await ready(socket)
    others.cancel()


def bound_statement(text: str, values: Sequence[Any]) -> Statement:
    """Return a statement with its encoded values."""
    return Statement(text, [encode_value(each) for each in values], formats(values))
