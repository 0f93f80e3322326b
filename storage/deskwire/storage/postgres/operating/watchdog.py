"""The watchdog: ends sessions of nodes that hold locks, and will not let go of them by themselves.

A client that stops in the middle of a pipeline is active to PostgreSQL and not idle, so that
`idle_in_transaction_session_timeout` does not end it; `transaction_timeout` does, which PostgreSQL has from version 17 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
import trio

from deskwire.storage.connection import Connection
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.refusals import DatabaseError
from deskwire.storage.postgres.driver.session import PREFIX, Database

log: Final = structlog.get_logger(__name__)

OLDEST_S: Final = 10
"""How old a batch's transaction may become. One takes milliseconds, and waits for locks for eight seconds at most."""

WAIT_S: Final = 3.0
"""How long a write may take before the node looks whether somebody stuck is to blame."""

_STUCK: Final = (
    f"SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '{PREFIX}/batch/%' "
    "AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid() "
    "AND xact_start < clock_timestamp() - CAST(? AS double precision) * interval '1 s' "
    "AND wait_event IS DISTINCT FROM 'SyncRep'"
)
"""A COMMIT that waits for a standby is not stuck: it is carried out, and was to be waited for."""


async def watch(database: Database, each_s: float = OLDEST_S, oldest_s: float = OLDEST_S) -> None:
    """End stuck sessions every so many seconds, until cancelled; a duty."""
    connection = BlockingConnection(database, "setup")
    try:
        while True:
            await _look(connection, oldest_s)
            await trio.sleep(each_s)
    finally:
        connection.close()


async def watch_waits(
    database: Database, waited_s: Callable[[], float], longest_s: float = WAIT_S, oldest_s: float = OLDEST_S
) -> None:
    """End stuck sessions while this node's writes wait for longer than others take, until cancelled.

    Each node does, as whoever holds the duties may be the one that is stuck. It has no session while nothing waits.

    Args:
        waited_s: for how long the write that has waited longest has waited by now.
    """
    connection = BlockingConnection(database, "setup")
    try:
        while True:
            if waited_s() > longest_s:
                await _look(connection, oldest_s)
            else:
                connection.close()
            await trio.sleep(min(1.0, longest_s))
    finally:
        connection.close()


async def _look(connection: BlockingConnection, oldest_s: float) -> None:
    try:
        ended = await trio.to_thread.run_sync(end_stuck, connection, oldest_s)
    except DatabaseError as error:
        log.warning("storage.not_watched", reason=str(error))
    else:
        if ended:
            log.warning("storage.stuck_sessions_ended", sessions=ended)


def end_stuck(conn: Connection, oldest_s: float = OLDEST_S) -> int:
    """End the batches' sessions whose transaction is older than so many seconds; return their number.

    An account may do so to sessions of its own, which all nodes' are.
    """
    return len(conn.execute(_STUCK, (float(oldest_s),)).fetchall())
