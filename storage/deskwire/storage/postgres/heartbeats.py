"""A store for a node's lease, on a session of its own.

So heartbeats wait for no other work. A heartbeat also detects a server that has stopped answering. After one
second without a response, all hosts are asked for their identity. If the server in use does not answer that
within another second, all of the node's sessions with it are ended; if another server was promoted, the node
moves there. A server that only delays the heartbeat, for a standby or a lock, answers the second question and
keeps its sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import SharedReader, Transaction
from deskwire.storage.postgres.commit.commit_log import NOT_REPLICATED
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.errors import ConnectionLost, DatabaseError, read_failed, unavailable
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.transaction import PostgresTransaction

T = TypeVar("T")

# Time for a heartbeat: half of it until the server's identity is queried on another session, and half for
# that query.
ANSWER_TIMEOUT_S: Final = 2.0


class HeartbeatStore:
    """A `Store` that runs one query or job at a time, each in its own transaction.

    Jobs must be idempotent, because a commit without a response is not looked up.

    Args:
        nursery: runs submitted jobs and the check of the servers.
    """

    def __init__(self, database: Database, nursery: trio.Nursery) -> None:
        self._database = database
        self._connection = BlockingConnection(database, "beat")
        self._thread: Final = trio.CapacityLimiter(1)
        self._nursery = nursery

    async def read(self, query: Callable[[SharedReader], T]) -> T:
        """See `Store.read`."""
        return await self._run(query, read_failed)

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        return await self._run(job, unavailable)

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        self._nursery.start_soon(self._carry_out, job, ended)

    def close(self) -> None:
        """Close the session."""
        self._connection.close()

    async def _carry_out(
        self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]
    ) -> None:
        try:
            ended(await self.write(job))
        except Unavailable as refusal:
            ended(refusal)

    async def _run(self, work: Callable[[Any], T], refusal: Callable[[DatabaseError], Unavailable]) -> T:
        watching = trio.CancelScope()
        self._nursery.start_soon(self._check_hosts_while_waiting, watching)
        try:
            return await trio.to_thread.run_sync(
                partial(self._with_retry, work), limiter=self._thread, abandon_on_cancel=False
            )
        except DatabaseError as error:
            raise refusal(error) from error
        finally:
            watching.cancel()

    async def _check_hosts_while_waiting(self, watching: trio.CancelScope) -> None:
        """Check the servers repeatedly while a heartbeat has no response."""
        check = partial(self._database.check_hosts, ANSWER_TIMEOUT_S / 2)
        with watching:
            while True:
                await trio.sleep(ANSWER_TIMEOUT_S / 2)
                if self._connection.is_open:
                    await trio.to_thread.run_sync(check, abandon_on_cancel=True)

    def _with_retry(self, work: Callable[[Any], T]) -> T:
        try:
            return self._attempt(work)
        except ConnectionLost as lost:  # the session may have been idle for long, so try again on a new one
            if lost.final:
                raise
            return self._attempt(work)

    def _attempt(self, work: Callable[[Any], T]) -> T:
        connection = self._connection
        connection.command("BEGIN")
        done = False
        try:
            result = work(PostgresTransaction(connection))
            done = True
        finally:
            if connection.in_transaction:
                connection.command("COMMIT" if done else "ROLLBACK")
        if NOT_REPLICATED in connection.notices:
            raise ConnectionLost("the commit has not reached the standby")
        return result
