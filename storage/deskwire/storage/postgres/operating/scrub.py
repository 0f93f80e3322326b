"""The ways in which what was erased leaves the tables' files: VACUUM in time, or rewriting them; the WAL is not reached (ADR 63).

VACUUM makes the room of deleted rows free, and mostly leaves their bytes until others take it; VACUUM FULL writes a table anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import psycopg
import structlog
import trio

from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
from deskwire.storage.postgres.operating.preflight import connected

log: Final = structlog.get_logger(__name__)

_TABLES: Final = """
SELECT quote_ident(relname), pg_total_relation_size(oid) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY 2
"""
_MARK: Final = "2 + pg_backend_pid() % 32766"
_BEGUN: Final = f"UPDATE event_window SET scrub_due = {_MARK} WHERE scrub_due <> 0"
_DONE: Final = f"UPDATE event_window SET scrub_due = 0 WHERE scrub_due = {_MARK}"
"""What is due stays so until the session that has begun with it is through; an erasure meanwhile writes 1, which is due anew."""
_LOOK_S: Final = 600.0
_SHARE: Final = 0.5
"""The part of the promised time after which what is due is begun with."""


def rewrite(url: str) -> Iterator[tuple[str, int]]:
    """Write all tables anew, one after the other, the smallest first; yields each name, and its size before.

    Raises DatabaseUnusableError.
    """
    try:
        with connected(url, "scrub") as connection:
            connection.execute(_BEGUN)
            for table, size in connection.execute(_TABLES).fetchall():
                connection.execute(f"VACUUM (FULL, ANALYZE) {table}".encode())
                yield table, size
            connection.execute(_DONE)
    except psycopg.Error as error:
        raise DatabaseUnusableError(
            f"The tables can't be rewritten: {' '.join(str(error).split())}"
        ) from error


class Vacuums:
    """Vacuums all tables within a time after something was erased; of all nodes the one with the duties does.

    Args:
        within_s: that time; 0 leaves it to PostgreSQL's autovacuum.
    """

    def __init__(self, url: str, within_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._within_s = within_s
        self._clock = clock
        self.due_since: float | None = None

    @property
    def delay_s(self) -> float:
        """The seconds for which something that was erased has waited, as far as this node knows; 0 if nothing does."""
        return 0 if self.due_since is None else self._clock() - self.due_since

    async def run(self) -> None:
        """Vacuum what is due, until cancelled."""
        if not self._within_s:
            await trio.sleep_forever()
        pause_s = min(_LOOK_S, self._within_s * _SHARE)
        while True:
            try:
                await trio.to_thread.run_sync(self.vacuum_if_due, abandon_on_cancel=True)
            except (psycopg.Error, DatabaseUnusableError) as error:
                log.warning("storage.vacuum_failed", reason=" ".join(str(error).split()))
            await trio.sleep(pause_s)

    def vacuum_if_due(self) -> bool:
        """Vacuum all tables if something was erased long enough ago; tell whether it was. Raises DatabaseUnusableError, psycopg.Error."""
        with connected(self._url, "vacuum") as connection:
            if not self._is_time(connection):
                return False
            connection.execute(_BEGUN)
            for table, _ in connection.execute(_TABLES).fetchall():
                connection.execute(f"VACUUM (INDEX_CLEANUP ON) {table}".encode())
            connection.execute(_DONE)
            self.due_since = None
            log.info("storage.vacuumed")
            return True

    def _is_time(self, connection: psycopg.Connection[Any]) -> bool:
        if connection.execute("SELECT 1 FROM event_window WHERE scrub_due <> 0").fetchone() is None:
            self.due_since = None
            return False
        if self.due_since is None:
            self.due_since = self._clock()
        return self.delay_s >= self._within_s * _SHARE - 1
