"""The lanes in which a node writes: each counts its commits in its own row, so that one without an answer can be check_values for.

It is check_values for by a write. A commit whose wait for the standby was broken off can be read, and is lost all the same
when that standby takes over; a write behind it is not answered before the standby has both (ADR 57). And one that
is still on its way when it is check_values for may not count any more: the question leaves its number in the row, negative, and
a commit counts only with a number that is greater than any before (ADR 57).

Of two processes of one name, the second of which is refused its lease and ends, the first takes its lanes back with the next write.
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

COUNT_COMMIT: Final = (
    "WITH counted AS (UPDATE lanes SET batch = ?1, touched = clock_timestamp() "
    "WHERE node = ?2 AND lane = ?3 AND run = ?4 AND abs(batch) < ?1 RETURNING 1) "
    "SELECT CAST(CASE count(*) WHEN 1 THEN '1' ELSE 'taken' END AS int) FROM counted"
)
"""Fails with LANE_TAKEN, and the transaction with it, if another process has taken the node's name, or if it comes late:
behind the question for this very commit, or behind a later commit."""
OPEN_LANE: Final = (
    "INSERT INTO lanes (node, lane, run, batch, touched) VALUES (?, ?, ?, 0, clock_timestamp()) "
    "ON CONFLICT (node, lane) DO UPDATE SET run = excluded.run, batch = 0, touched = excluded.touched"
)
CHECK_COMMIT: Final = (
    "UPDATE lanes SET touched = clock_timestamp(), "
    "batch = CASE WHEN abs(batch) < ?1 THEN -CAST(?1 AS bigint) ELSE batch END "
    "WHERE node = ?2 AND lane = ?3 AND run = ?4 RETURNING batch"
)
"""Returns the number of the commit if that is stored; else a negative one, and it never will be."""

_CLEAR: Final = "DELETE FROM lanes WHERE touched < clock_timestamp() - interval '1 day' AND node NOT IN (SELECT n.node FROM nodes n)"
"""A process that is away for as long and comes back is refused one write, and opens its lanes again."""
_CLEANUP_INTERVAL_S: Final = 3_600.0


class Lane(Struct):
    """One of a node's lanes.

    Args:
        batch: the number of the last commit that was begun.
        run: tells this opening of the lane from all others, by this process or by another of the same name.
    """

    node: str
    number: int
    batch: int = 0
    run: str = ""

    def open_values(self) -> tuple[str, int, str]:
        """Return the values of OPEN. What was sent under an earlier opening and comes behind it does nothing."""
        self.run = secrets.token_hex(8)
        return self.node, self.number, self.run

    def count_values(self) -> tuple[int, str, int, str]:
        """Return the values of COUNT for the next commit."""
        self.batch += 1
        return self.check_values()

    def check_values(self) -> tuple[int, str, int, str]:
        """Return the values of ASK for the last commit."""
        return self.batch, self.node, self.number, self.run


NOT_REPLICATED: Final = "01000"
"""The warning of a COMMIT whose wait for the standby was broken off: it may be lost, so it counts as none."""


async def clear_lanes(database: Database, interval_s: float = _CLEANUP_INTERVAL_S) -> None:
    """Remove the lanes of nodes that have been gone for a day, every so many seconds, until cancelled; a duty."""
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
    """Remove the lanes of nodes that have been gone for a day; return their number."""
    return conn.execute(_CLEAR).rowcount
