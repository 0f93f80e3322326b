"""Tasks that watch the database: they end stuck sessions, and notice another primary.

To PostgreSQL, a client that stops in the middle of a pipeline is active and not idle, so that
`idle_in_transaction_session_timeout` does not end its session. `transaction_timeout` does, from version 17
on.

Sessions stay open for days, so the identity that a session found when it was opened may be out of date.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import structlog
import trio

from deskwire.storage.connection import Connection
from deskwire.storage.postgres.admin.installation import NOTE_SEEN
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.errors import DatabaseError
from deskwire.storage.postgres.driver.server_identity import KnownServer
from deskwire.storage.postgres.driver.session import SESSION_NAME_PREFIX, Database

log: Final = structlog.get_logger(__name__)

# Maximum age of a batch's transaction. A transaction takes milliseconds, and waits for locks for at most
# eight seconds.
TRANSACTION_MAX_S: Final = 10

WRITE_WAIT_MAX_S: Final = 3.0  # Time for a write before the node looks for a stuck session.

# A COMMIT that waits for a standby is not stuck, and must be waited for.
_STUCK: Final = (
    f"SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '{SESSION_NAME_PREFIX}/batch/%' "
    "AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid() "
    "AND xact_start < clock_timestamp() - CAST(? AS double precision) * interval '1 s' "
    "AND wait_event IS DISTINCT FROM 'SyncRep'"
)


async def run_watchdog(
    database: Database, interval_s: float = TRANSACTION_MAX_S, transaction_max_s: float = TRANSACTION_MAX_S
) -> None:
    """End stuck sessions at each interval, until cancelled. Run by the leader."""
    connection = BlockingConnection(database, "setup")
    try:
        while True:
            await _end_and_log(connection, transaction_max_s)
            await trio.sleep(interval_s)
    finally:
        connection.close()


async def run_wait_watchdog(
    database: Database,
    waited_s: Callable[[], float],
    wait_max_s: float = WRITE_WAIT_MAX_S,
    transaction_max_s: float = TRANSACTION_MAX_S,
) -> None:
    """End stuck sessions while this node's writes take too long, until cancelled.

    Each node runs this, because the leader may be the node that is stuck. It has no session while no write
    takes long.

    Args:
        waited_s: returns the time for which the oldest write has waited.
    """
    connection = BlockingConnection(database, "setup")
    try:
        while True:
            if waited_s() > wait_max_s:
                await _end_and_log(connection, transaction_max_s)
            else:
                connection.close()
            await trio.sleep(min(1.0, wait_max_s))
    finally:
        connection.close()


async def _end_and_log(connection: BlockingConnection, transaction_max_s: float) -> None:
    try:
        ended = await trio.to_thread.run_sync(end_stuck_sessions, connection, transaction_max_s)
    except DatabaseError as error:
        log.warning("storage.not_watched", reason=str(error))
    else:
        if ended:
            log.warning("storage.stuck_sessions_ended", sessions=ended)


def end_stuck_sessions(conn: Connection, transaction_max_s: float = TRANSACTION_MAX_S) -> int:
    """End batch sessions whose transaction is older than this; return their number.

    An account may end its own sessions, and all nodes use the same account.
    """
    return len(conn.execute(_STUCK, (float(transaction_max_s),)).fetchall())


SERVER_CHECK_INTERVAL_S: Final = 5.0
_ANSWER_TIMEOUT_S: Final = 2.0


async def watch_servers(database: Database, interval_s: float = SERVER_CHECK_INTERVAL_S) -> None:
    """Ask all hosts for their identity at each interval, until cancelled. Run by each node.

    A newer timeline is recorded with the installation, so that a node that starts later knows it.
    """
    recorded = KnownServer()
    while True:
        await trio.to_thread.run_sync(
            partial(database.check_hosts, _ANSWER_TIMEOUT_S), abandon_on_cancel=True
        )
        seen = database.servers.seen
        if seen not in (recorded, KnownServer()) and await trio.to_thread.run_sync(
            _record_identity, database, seen, abandon_on_cancel=True
        ):
            recorded = seen
        await trio.sleep(interval_s)


def _record_identity(database: Database, seen: KnownServer) -> bool:
    """Record the newest identity with the installation; return whether that was possible."""
    connection = BlockingConnection(database, "setup")
    try:
        connection.execute(NOTE_SEEN, (seen.system, seen.timeline))
    except DatabaseError as error:
        log.warning("storage.timeline_not_kept", reason=str(error))
        return False
    finally:
        connection.close()
    return True
