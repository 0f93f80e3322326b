"""Removal of erased data from the tables' files, by VACUUM or VACUUM FULL (ADR 61).

VACUUM frees the space of deleted rows, and mostly leaves their bytes there until the space is used again.
VACUUM FULL rewrites a table. Neither reaches the WAL.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import structlog
import trio
from psycopg import errors

from deskwire.storage.postgres.admin.preflight import connected
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.migrations.apply import require_migrated
from deskwire.storage.postgres.migrations.list import TABLES
from deskwire.storage.postgres.schema.days import VACUUM_DAYS_SETTING

log: Final = structlog.get_logger(__name__)

# the parent of a partition, or the table itself
_PARENT_TABLE: Final = (
    "coalesce((SELECT i.inhparent::regclass::text FROM pg_inherits i WHERE i.inhrelid = c.oid), c.relname)"
)
_TABLES: Final = f"""
SELECT quote_ident(c.relname), pg_total_relation_size(c.oid) FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND {_PARENT_TABLE} = ANY(%s) ORDER BY 2
"""
_NOT_ALLOWED: Final = f"""
SELECT c.relname FROM pg_class c, pg_database d WHERE d.datname = current_database()
AND c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND {_PARENT_TABLE} = ANY(%s)
AND NOT pg_has_role(c.relowner, 'USAGE') AND NOT pg_has_role(d.datdba, 'USAGE')
"""
_NOT_GRANTED: Final = "AND NOT has_table_privilege(c.oid, 'MAINTAIN')"
# the version from which other accounts than the owner may be allowed to vacuum
_MAINTAIN_SINCE: Final = 170_000
# Waits for running erasures; returns their count, and the time after them.
_BEGIN_SCRUB: Final = "UPDATE event_window SET erasures = erasures RETURNING erasures, clock_ms()"
# A request stays due until a vacuum is complete that began after it.
_END_SCRUB: Final = """
UPDATE event_window SET scrub_due = CASE WHEN erasures = %s OR scrub_due = 0 THEN 0 ELSE greatest(scrub_due, %s) END
"""
_WAITED: Final = "SELECT greatest(clock_ms() - scrub_due, 0) / 1000.0 FROM event_window WHERE scrub_due <> 0"
_NEXT_XID: Final = "SELECT CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid)"
# Sessions for which VACUUM keeps rows that were deleted before a transaction. Other vacuums and readers of
# catalogs alone are left out.
_HOLDERS: Final = """
SELECT who FROM (
    SELECT 'session ' || pid || ' (' || coalesce(nullif(application_name, ''), backend_type) || ')' AS who,
    greatest(age(backend_xid), age(backend_xmin)) AS old FROM pg_stat_activity a
    WHERE pid <> pg_backend_pid() AND (datname = current_database() OR backend_type = 'walsender')
    AND application_name <> 'deskwire/vacuum' AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)
    UNION ALL SELECT 'the replication slot ' || slot_name, age(xmin) FROM pg_replication_slots
    UNION ALL SELECT 'the prepared transaction ' || gid, age(transaction) FROM pg_prepared_xacts WHERE database = current_database()
) AS holders WHERE old > age(CAST(%s AS xid)) ORDER BY old DESC LIMIT 3
"""
_READERS_TIMEOUT_S: Final = 30.0  # A standby that reports its oldest reader does so every ten seconds.
_VACUUM_DAYS_OPTION: Final = f"-c {VACUUM_DAYS_SETTING}=on"
_READERS_POLL_INTERVAL_S: Final = 0.05
_CHECK_INTERVAL_S: Final = 600.0
_DUE_SHARE: Final = 0.5  # the share of the promised time after which a vacuum begins


def rewrite_tables(url: str) -> Iterator[tuple[str, int]]:
    """Rewrite all tables of the installation, the smallest first.

    Yields each name, and the size before. Raises DatabaseUnusableError.
    """
    require_migrated(url)
    try:
        with connected(url, "scrub", _VACUUM_DAYS_OPTION) as connection:
            _require_rights(connection)
            begun = connection.execute(_BEGIN_SCRUB).fetchall()[0]
            _require_no_readers(connection)
            for table, size in connection.execute(_TABLES, (sorted(TABLES),)).fetchall():
                if _vacuum(connection, "FULL, ANALYZE", table):
                    yield table, size
            connection.execute(_END_SCRUB, begun)
    except psycopg.Error as error:
        raise DatabaseUnusableError(
            f"The tables can't be rewritten: {' '.join(str(error).split())}"
        ) from error


def _require_rights(connection: psycopg.Connection[Any]) -> None:
    """Make sure that this account may vacuum all tables.

    VACUUM skips the others with only a warning. Raises DatabaseUnusableError.
    """
    since = connection.info.server_version >= _MAINTAIN_SINCE
    query = f"{_NOT_ALLOWED} {_NOT_GRANTED if since else ''} ORDER BY 1 LIMIT 1"
    if found := connection.execute(query.encode(), (sorted(TABLES),)).fetchone():
        raise DatabaseUnusableError(
            f"This account may not vacuum the tables ({found[0]} for one), so the bytes of erased rows stay in their files. Use "
            "the account that owns the tables, or GRANT MAINTAIN on them to this one, which PostgreSQL knows from version 17 on."
        )


def _require_no_readers(connection: psycopg.Connection[Any]) -> None:
    """Wait until no transaction can see rows that were erased before.

    Raises DatabaseUnusableError, which names the transactions that still can.
    """
    following = connection.execute(_NEXT_XID).fetchall()[0][0]
    until = time.monotonic() + _READERS_TIMEOUT_S
    while found := connection.execute(_HOLDERS, (following,)).fetchall():
        if time.monotonic() >= until:
            raise DatabaseUnusableError(
                f"The database still keeps erased rows for older transactions: {', '.join(holder for (holder,) in found)}. "
                "Nothing was vacuumed: end them (`SELECT pg_terminate_backend(…)` ends a session), then try again."
            )
        time.sleep(_READERS_POLL_INTERVAL_S)


def _vacuum(connection: psycopg.Connection[Any], how: str, table: str) -> bool:
    """Vacuum a table; return False if it was a day's partition that is gone."""
    try:
        connection.execute(f"VACUUM ({how}) {table}".encode())
    except errors.UndefinedTable:
        return False
    return True


class VacuumDuty:
    """Vacuums all tables within a time after an erasure. Run by the leader.

    Args:
        within_s: that time; 0 to leave it to autovacuum.
        servers: those of the node.
    """

    def __init__(self, url: str, within_s: float, servers: Servers | None = None) -> None:
        self._url = url
        self._servers = servers
        self._within_s = within_s
        self.due_since: float | None = None

    @property
    def delay_s(self) -> float:
        """The seconds since the oldest erasure without a vacuum; 0 if there is none.

        Only the leader knows them.
        """
        return 0 if self.due_since is None else time.monotonic() - self.due_since

    @property
    def late_s(self) -> float:
        """The seconds by which a vacuum is overdue.

        A vacuum waits on purpose, to cover many erasures.
        """
        return max(0.0, self.delay_s - self._within_s * _DUE_SHARE)

    async def run(self) -> None:
        """Vacuum when due, until cancelled."""
        if not self._within_s:
            await trio.sleep_forever()
        pause_s = min(_CHECK_INTERVAL_S, self._within_s * _DUE_SHARE)
        try:
            while True:
                await self._vacuum_and_log()
                await trio.sleep(pause_s)
        finally:
            self.due_since = None  # the next leader finds out

    async def _vacuum_and_log(self) -> None:
        try:
            await trio.to_thread.run_sync(self.vacuum_if_due, abandon_on_cancel=True)
        except (psycopg.Error, DatabaseUnusableError) as error:
            log.warning("storage.vacuum_failed", reason=" ".join(str(error).split()))

    def vacuum_if_due(self) -> bool:
        """Vacuum all tables if the oldest erasure is old enough; return whether it was.

        Raises DatabaseUnusableError, psycopg.Error.
        """
        with connected(self._url, "vacuum", _VACUUM_DAYS_OPTION, self._servers) as connection:
            is_due = self._is_due(connection)
            _require_rights(connection)
            if not is_due:
                return False
            begun = connection.execute(_BEGIN_SCRUB).fetchall()[0]
            _require_no_readers(connection)
            for table, _ in connection.execute(_TABLES, (sorted(TABLES),)).fetchall():
                _vacuum(connection, "INDEX_CLEANUP ON", table)
            connection.execute(_END_SCRUB, begun)
            self.due_since = None
            log.info("storage.vacuumed")
            return True

    def _is_due(self, connection: psycopg.Connection[Any]) -> bool:
        waited = connection.execute(_WAITED).fetchone()
        if waited is None:
            self.due_since = None
            return False
        self.due_since = time.monotonic() - float(waited[0])
        return self.delay_s >= self._within_s * _DUE_SHARE - 1
