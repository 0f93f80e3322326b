"""The looks of all tasks at a few rows, on one connection: what is asked for while an exchange is under way shares the next.

A query of several statements gets them all in one transaction, and so from one moment: when it has asked for another
one, all of them are fetched together, until it asks for nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import structlog
import trio
from msgspec import Struct, field
from psycopg import pq

from deskwire.engine.core.tasks.oneshot import OneShot
from deskwire.engine.ports import SharedReader
from deskwire.storage.postgres.driver.codec import rows_of
from deskwire.storage.postgres.driver.recall import Key, Recall, Wanted, single
from deskwire.storage.postgres.driver.refusals import ConnectionLost, DatabaseError, unread
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.driver.wire import Statement, Wire
from deskwire.storage.postgres.transaction import PostgresReader

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)

_AT_ONCE: Final = 256
"""Looks that share an exchange."""

_STATEMENTS_MAX: Final = 16
_BEGIN: Final = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_END: Final = Statement("COMMIT")
_PAUSE_S: Final = 0.05


class TooManyStatements(Exception):
    """A query is not one of a few rows: it is to be run on a connection of its own."""


class _Look(Struct, eq=False):
    keys: list[Key]
    slot: OneShot[list[list[tuple[Any, ...]]]] = field(default_factory=OneShot)

    def statements(self) -> list[Statement]:
        asked = [single(*key) for key in self.keys]
        return asked if len(asked) == 1 else [_BEGIN, *asked, _END]

    def take(self, answers: Sequence[pq.abc.PGresult]) -> None:
        """Answer with those of `statements`."""
        rows = answers if len(answers) == 1 else answers[1:-1]
        self.slot.put([rows_of(each) for each in rows])


class Look:
    """The connection that all tasks look through.

    Args:
        patience_s: how long a database that can't be reached is waited for.
    """

    def __init__(self, database: Database, patience_s: float) -> None:
        self._wire = Wire(database, "look")
        self._patience_s = patience_s
        self._waiting: deque[_Look] = deque()
        self._wakeup = trio.Event()

    async def ask(self, query: Callable[[SharedReader], T]) -> T:
        """Return the query's result.

        Raises Unavailable if the database can't be read, TooManyStatements if the query asks for a lot.
        """
        recall = Recall()
        reader: Any = PostgresReader(recall)
        keys: list[Key] = []
        while True:
            try:
                return query(reader)
            except Wanted as wanted:
                if len(keys) >= _STATEMENTS_MAX:
                    raise TooManyStatements from None
                keys += wanted.keys
            for key, rows in zip(keys, await self._fetched(keys), strict=True):
                recall.known[key] = rows

    async def open(self) -> None:
        """Open the connection before it is used. Raises ConnectionLost."""
        await self._wire.open()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Fetch what is asked for until cancelled."""
        task_status.started()
        while True:
            await self._wakeup.wait()
            looks = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
            if not self._waiting:
                self._wakeup = trio.Event()
            await self._answer(looks)

    def close(self) -> None:
        """Close the connection; nobody looks any more."""
        self._wire.close()

    async def _fetched(self, keys: list[Key]) -> list[list[tuple[Any, ...]]]:
        look = _Look(list(keys))
        self._waiting.append(look)
        self._wakeup.set()
        return await look.slot.take()

    async def _answer(self, looks: Sequence[_Look]) -> None:
        """Fetch for all in one exchange; if one of them spoils it, for each in one of its own."""
        # Those with a transaction of their own first: no isolation level can be chosen behind a look in the same exchange.
        looks = sorted(looks, key=lambda look: len(look.keys) == 1)
        each = [look.statements() for look in looks]
        try:
            answers = await self._exchange([statement for some in each for statement in some])
        except ConnectionLost as lost:
            for look in looks:
                look.slot.put(unread(lost))
        except DatabaseError as error:
            if len(looks) == 1:
                self._wire.close()  # it may be in a failed transaction
                looks[0].slot.put(unread(error))
                return
            self._wire.close()
            for look in looks:
                await self._answer([look])
        else:
            first = 0
            for look, some in zip(looks, each, strict=True):
                _take(look, answers[first : first + len(some)])
                first += len(some)

    async def _exchange(self, statements: Sequence[Statement]) -> list[pq.abc.PGresult]:
        """Exchange, on another connection if this one is lost: to look twice does no harm."""
        until = trio.current_time() + self._patience_s
        while True:
            try:
                return await self._wire.exchange(statements, self._patience_s)
            except ConnectionLost as lost:
                if lost.final or trio.current_time() >= until:
                    raise
                log.info("storage.look_again", error=str(lost))
                await trio.sleep(_PAUSE_S)


def _take(look: _Look, answers: Sequence[pq.abc.PGresult]) -> None:
    try:
        look.take(answers)
    except TypeError as error:  # of a type that is not read: whoever asks is told, the others go on
        look.slot.put(error)
