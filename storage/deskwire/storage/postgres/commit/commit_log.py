"""The commit log of a node, in which the result of an unanswered COMMIT is found.

A lane is one of the node's writing connections. Each commit stores its number in the lane's row of `lanes`.

The lookup is a write. After a commit whose wait for the standby was aborted, its rows can be read, yet they
are lost if that standby takes over; a later write is only acknowledged once the standby has both (ADR 57).
The lookup stores the number it asks for as a negative one, and a commit needs a greater number than any
before. So a commit that arrives after the lookup fails (ADR 57).

If two processes use one name, the second one is refused its lease and ends. The first one takes its lanes
back with its next write.
"""

from __future__ import annotations

import secrets
from typing import Final

import structlog
import trio
from msgspec import Struct

from deskwire.storage.connection import Connection
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.errors import DatabaseError
from deskwire.storage.postgres.driver.session import Database

log: Final = structlog.get_logger(__name__)

# Fails with LANE_TAKEN, and aborts the transaction, if another process has taken the node's name, or if the
# commit arrives after its own lookup or after a later commit.
COUNT_COMMIT: Final = (
    "WITH counted AS (UPDATE lanes SET batch = ?1, touched = clock_timestamp() "
    "WHERE node = ?2 AND lane = ?3 AND run = ?4 AND abs(batch) < ?1 RETURNING 1) "
    "SELECT CAST(CASE count(*) WHEN 1 THEN '1' ELSE 'taken' END AS int) FROM counted"
)
OPEN_LANE: Final = (
    "INSERT INTO lanes (node, lane, run, batch, touched) VALUES (?, ?, ?, 0, clock_timestamp()) "
    "ON CONFLICT (node, lane) DO UPDATE SET run = excluded.run, batch = 0, touched = excluded.touched"
)
# Returns the number of the commit if it is stored. Otherwise the number is negative, and the commit will
# never be stored.
CHECK_COMMIT: Final = (
    "UPDATE lanes SET touched = clock_timestamp(), "
    "batch = CASE WHEN abs(batch) < ?1 THEN -CAST(?1 AS bigint) ELSE batch END "
    "WHERE node = ?2 AND lane = ?3 AND run = ?4 RETURNING batch"
)

# A process that returns after such a time is refused one write, and then opens its lanes again.
_CLEAR: Final = "DELETE FROM lanes WHERE touched < clock_timestamp() - interval '1 day' AND node NOT IN (SELECT n.node FROM nodes n)"
_CLEANUP_INTERVAL_S: Final = 3_600.0


class Lane(Struct):
    """One of a node's writing connections, as its row in `lanes` knows it.

    Args:
        batch: the number of the last commit that was started.
        run: identifies this session of the lane among all others, also those of another process of the same
            name.
    """

    node: str
    number: int
    batch: int = 0
    run: str = ""

    def open_values(self) -> tuple[str, int, str]:
        """Return the values of OPEN_LANE.

        Statements of an earlier `run` that arrive later have no effect.
        """
        self.run = secrets.token_hex(8)
        return self.node, self.number, self.run

    def count_values(self) -> tuple[int, str, int, str]:
        """Return the values of COUNT_COMMIT for the next commit."""
        self.batch += 1
        return self.check_values()

    def check_values(self) -> tuple[int, str, int, str]:
        """Return the values of CHECK_COMMIT for the last commit."""
        return self.batch, self.node, self.number, self.run


# The warning of a COMMIT whose wait for the standby was aborted. The commit may be lost, so it does not count
# as stored.
NOT_REPLICATED: Final = "01000"


async def clear_lanes(database: Database, interval_s: float = _CLEANUP_INTERVAL_S) -> None:
    """Delete the lanes of nodes that have been gone for a day, at each interval.

    Runs until cancelled, on the leader.
    """
    connection = BlockingConnection(database, "setup")
    try:
        while True:
            try:
                cleared = await trio.to_thread.run_sync(delete_old_lanes, connection)
            except DatabaseError as error:
                log.warning("storage.lanes_not_cleared", reason=str(error))
            else:
                log.debug("storage.lanes_cleared", lanes=cleared)
            await trio.sleep(interval_s)
    finally:
        connection.close()


def delete_old_lanes(conn: Connection) -> int:
    """Delete the lanes of nodes that have been gone for a day; return their number."""
    return conn.execute(_CLEAR).rowcount
