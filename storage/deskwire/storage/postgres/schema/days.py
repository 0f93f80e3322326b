"""Partitions by day, so that retention drops a day instead of deleting its rows (ADR 104).

`events_20261128` has the rows whose ids were made on that day in UTC. `events_undated` has the rows from
before the split and those that outlive their day, and `events_default` those of a day without a partition.
Each partition has the keys and indexes that the table had before. The parent has none, because PostgreSQL
requires the day in each unique key of a parent.

A pending delivery and its attempts always have the day of the delivery's id. So the recorder of a result
knows the partition, and a repeated attempt replaces the first one. Deliveries that had ended before the split
have no day.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import psycopg
import structlog
from msgspec import Struct
from psycopg import errors

from deskwire.engine.core.ids import DAY_MS, day_of, id_before

log: Final = structlog.get_logger(__name__)

DAYS_AHEAD: Final = 3  # days after today whose partition is added in advance

# Time that a change of partitions may wait for a lock; all other users of the table queue for that long.
LOCK_TIMEOUT_MS: Final = 100

# Limits the queueing of others to a twentieth of the time while a dump reads the table.
_RETRY_DELAY_S: Final = 2.0

_EPOCH: Final = date(1970, 1, 1)
VACUUM_DAYS_SETTING: Final = "deskwire.vacuums_days"  # set in sessions that also vacuum the partitions

# An older program beside this one skips the partitions when it vacuums, so it must not clear `scrub_due`.
_KEEP_DUE: Final = (
    f"""
CREATE OR REPLACE FUNCTION keep_scrub_due() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('application_name') IN ('deskwire/vacuum', 'deskwire/scrub')
        AND current_setting('{VACUUM_DAYS_SETTING}', true) IS DISTINCT FROM 'on' THEN NEW.scrub_due := OLD.scrub_due; END IF;
    RETURN NEW; END $$
""",
    "CREATE OR REPLACE TRIGGER keep_scrub_due BEFORE UPDATE ON event_window FOR EACH ROW EXECUTE FUNCTION keep_scrub_due()",
)
_COLUMNS_ALONE: Final = "INCLUDING ALL EXCLUDING INDEXES EXCLUDING CONSTRAINTS"
TODAY: Final = "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) / 86400) AS int)"
_GRANTS: Final = """
SELECT concat('GRANT ', a.privilege_type, ' ON ', quote_ident(CAST(%s AS text)), ' TO ',
    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
    CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = CAST(%s AS regclass) AND a.grantee <> c.relowner
"""
_SESSION: Final = "SELECT set_config(%s, %s, true)"


class DayTable(Struct, frozen=True):
    """A table with partitions by day.

    Args:
        options: the storage parameters of new partitions, which PostgreSQL does not copy.
        key: the columns of the parent's primary key, which ON CONFLICT needs; empty for none.
    """

    name: str
    options: str = ""
    key: str = ""

    @property
    def undated(self) -> str:
        """The partition of rows without a day."""
        return f"{self.name}_undated"

    @property
    def default(self) -> str:
        """The partition of rows whose day has no partition."""
        return f"{self.name}_default"

    @property
    def partitions(self) -> str:
        """The query for the names of the partitions."""
        return (
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            f"WHERE i.inhparent = '{self.name}'::regclass ORDER BY c.relname"
        )

    @property
    def storage(self) -> str:
        """The clause of CREATE TABLE with the options of a partition."""
        return f"WITH ({self.options})" if self.options else ""

    def partition(self, day: int) -> str:
        """Return the name of a day's partition."""
        return f"{self.name}_{_EPOCH + timedelta(days=day):%Y%m%d}"

    def day(self, partition: str) -> int | None:
        """Return the day of a partition; None for the other partitions."""
        digits = partition.removeprefix(f"{self.name}_")
        if not digits.isdigit():
            return None
        return (datetime.strptime(digits, "%Y%m%d").replace(tzinfo=UTC).date() - _EPOCH).days


EVENTS: Final = DayTable("events")
DELIVERIES: Final = DayTable(
    "deliveries", "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05"
)
ATTEMPTS: Final = DayTable("attempts", key="delivery, number, day")
DAY_TABLES: Final = (EVENTS, DELIVERIES, ATTEMPTS)


def split_by_day(table: DayTable) -> Callable[[psycopg.Connection[Any]], None]:
    """Return the step of a migration that makes a table the first partition of a new parent.

    The parent takes the table's name. No row is rewritten, and none is ever refused: a program that does not
    know days omits the column, so that its rows have day 0. The step may be stopped at any point and run
    again.
    """

    def run(connection: psycopg.Connection[Any]) -> None:
        if _kind(connection, table) != "p":
            _change_with_retries(connection, [*_KEEP_DUE, *_forbid_days(table)])
            # Reads the whole table without blocking writers, so that the split itself reads nothing.
            connection.execute(f"ALTER TABLE {table.name} VALIDATE CONSTRAINT {table.name}_no_day".encode())
            _change_with_retries(
                connection,
                _split_statements(table),
                lambda: _grant(connection, table, table.undated, table.name),
            )
        today = _today(connection)
        for day in range(today, today + DAYS_AHEAD + 1):
            add_day(connection, table, day)
        # Autovacuum never analyzes a parent, and the planner uses the parent's statistics for joins.
        connection.execute(f"ANALYZE {table.name}".encode())

    return run


def add_day(connection: psycopg.Connection[Any], table: DayTable, day: int) -> bool:
    """Add a day's partition if there is none; return whether it exists.

    A day that already has rows in the default partition stays without one.

    Raises psycopg.errors.LockNotAvailable if the table stays locked for too long.
    """
    name = table.partition(day)
    if _exists(connection, name):
        return True
    spare = _has_rows(connection, table.default)
    if spare and not _exclude_day(connection, table, day):
        return False
    try:
        _change(
            connection,
            _attach_statements(table, name, day),
            lambda: _grant(connection, table, table.name, name),
        )
    except (errors.DuplicateTable, errors.UniqueViolation):
        log.info("storage.day_added_elsewhere", partition=name)
    finally:
        if spare:
            unblock_default(connection, table)
    return True


def unblock_default(connection: psycopg.Connection[Any], table: DayTable) -> None:
    """Allow rows of every day in the default partition again, after an interrupted `add_day`.

    Raises psycopg.errors.LockNotAvailable.
    """
    query = "SELECT 1 FROM pg_constraint WHERE conname = %s AND conrelid = %s::regclass"
    if connection.execute(query, (_exclusion_name(table), table.default)).fetchone() is not None:
        _change(
            connection, [f"ALTER TABLE {table.default} DROP CONSTRAINT IF EXISTS {_exclusion_name(table)}"]
        )


def _forbid_days(table: DayTable) -> list[str]:
    name = table.name
    return [
        f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS day integer NOT NULL DEFAULT 0",
        f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS {name}_no_day",
        f"ALTER TABLE {name} ADD CONSTRAINT {name}_no_day CHECK (day < 1) NOT VALID",
    ]


def _split_statements(table: DayTable) -> list[str]:
    name, undated = table.name, table.undated
    add_key = f"ALTER TABLE {name} ADD PRIMARY KEY ({table.key})"
    return [
        f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE",
        *([f"ALTER TABLE {name} DROP CONSTRAINT {name}_pkey", add_key] if table.key else []),
        f"ALTER TABLE {name} RENAME TO {undated}",
        f"CREATE TABLE {name} (LIKE {undated} {_COLUMNS_ALONE}) PARTITION BY RANGE (day)",
        f"ALTER TABLE {name} ATTACH PARTITION {undated} FOR VALUES FROM (MINVALUE) TO (1)",
        f"ALTER TABLE {undated} DROP CONSTRAINT {name}_no_day",
        f"CREATE TABLE {table.default} (LIKE {undated} INCLUDING ALL) {table.storage}",
        f"ALTER TABLE {name} ATTACH PARTITION {table.default} DEFAULT",
        *([add_key] if table.key else []),
    ]


def _attach_statements(table: DayTable, name: str, day: int) -> list[str]:
    return [
        f"CREATE TABLE {name} (LIKE {table.undated} INCLUDING ALL) {table.storage}",
        f"ALTER TABLE {table.name} ATTACH PARTITION {name} FOR VALUES FROM ({day}) TO ({day + 1})",
    ]


def _exclusion_name(table: DayTable) -> str:
    return f"{table.default}_spared"


def _exclude_day(connection: psycopg.Connection[Any], table: DayTable, day: int) -> bool:
    """Prove that the default partition has no row of a day; return whether that is so.

    With the proof, attaching the day's partition reads nothing under its lock. The proof refuses rows of the
    day until its partition exists, so it is made at least a whole day ahead.
    """
    if day <= _today(connection) + 1:
        return False
    check = f"CHECK (day < {day} OR day >= {day + 1})"
    unblock_default(connection, table)
    _change(
        connection, [f"ALTER TABLE {table.default} ADD CONSTRAINT {_exclusion_name(table)} {check} NOT VALID"]
    )
    try:
        connection.execute(
            f"ALTER TABLE {table.default} VALIDATE CONSTRAINT {_exclusion_name(table)}".encode()
        )
    except errors.CheckViolation:
        unblock_default(connection, table)
        return False
    return True


def _change_with_retries(
    connection: psycopg.Connection[Any], statements: list[str], then: Callable[[], None] | None = None
) -> None:
    """Run statements in one transaction, and repeat it until their locks are free."""
    while True:
        try:
            return _change(connection, statements, then)
        except errors.LockNotAvailable:
            log.info("storage.waits_for_lock", statement=statements[-1])
            time.sleep(_RETRY_DELAY_S)


def _change(
    connection: psycopg.Connection[Any], statements: list[str], then: Callable[[], None] | None = None
) -> None:
    """Run statements in one transaction.

    Raises psycopg.errors.LockNotAvailable if their locks are not free soon.
    """
    with connection.transaction():
        connection.execute(_SESSION, ("lock_timeout", f"{LOCK_TIMEOUT_MS}ms"))
        for statement in statements:
            connection.execute(statement.encode())
        if then is not None:
            then()


def _grant(connection: psycopg.Connection[Any], table: DayTable, source: str, target: str) -> None:
    """Copy the grants on a table to a new table and to the default partition."""
    for name in {target, table.default} - {source}:
        for (statement,) in connection.execute(_GRANTS, (name, source)).fetchall():
            connection.execute(statement.encode())


def _kind(connection: psycopg.Connection[Any], table: DayTable) -> str:
    query = "SELECT relkind::text FROM pg_class WHERE oid = %s::regclass"
    return str(connection.execute(query, (table.name,)).fetchall()[0][0])


def _exists(connection: psycopg.Connection[Any], name: str) -> bool:
    return connection.execute("SELECT to_regclass(%s)", (name,)).fetchone() != (None,)


def _has_rows(connection: psycopg.Connection[Any], name: str) -> bool:
    return connection.execute(f"SELECT 1 FROM {name} LIMIT 1".encode()).fetchone() is not None


def _today(connection: psycopg.Connection[Any]) -> int:
    return int(connection.execute(TODAY.encode()).fetchall()[0][0])


_BATCH_SIZE: Final = 5_000
_UNDATED: Final = f"""
SELECT d.position, d.id FROM endpoints e JOIN {DELIVERIES.undated} d ON d.endpoint = e.rowid AND d.status = 'pending'
WHERE d.id >= %s LIMIT %s
"""
_DATED: Final = id_before("dlv", DAY_MS)  # smaller ids are of day 0, which means no day

_DATE_DELIVERIES: Final = """
UPDATE deliveries SET day = m.day FROM unnest(%s::bigint[], %s::int[]) AS m (position, day)
WHERE deliveries.day = 0 AND deliveries.position = m.position
"""
_DATE_ATTEMPTS: Final = """
UPDATE attempts SET day = m.day FROM unnest(%s::bigint[], %s::int[]) AS m (position, day)
WHERE attempts.day = 0 AND attempts.delivery = m.position
"""


def split_deliveries(connection: psycopg.Connection[Any]) -> None:
    """Split both tables, then set the day of pending deliveries; a step of a migration.

    It may be stopped at any point and run again. No older program may run beside it, because such a program
    does not set the day, which is part of the key of `attempts` from then on.
    """
    split_by_day(DELIVERIES)(connection)
    split_by_day(ATTEMPTS)(connection)
    date_pending(connection)


def date_pending(connection: psycopg.Connection[Any]) -> None:
    """Set the day of undated pending deliveries and of their attempts.

    The rows move to the partitions of these days.
    """
    while rows := connection.execute(_UNDATED, (_DATED, _BATCH_SIZE)).fetchall():
        values = [position for position, _ in rows], [day_of(delivery_id) for _, delivery_id in rows]
        with connection.transaction():
            connection.execute(_DATE_DELIVERIES, values)
            connection.execute(_DATE_ATTEMPTS, values)
