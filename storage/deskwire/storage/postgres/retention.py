"""Retention of events and deliveries by whole days (ADR 104).

A day's partition is dropped after the rows that must outlive it were moved to another partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import structlog

from deskwire.engine.core.ids import DAY_MS
from deskwire.engine.webhooks.outcome import NOT_STORED
from deskwire.storage.connection import Connection
from deskwire.storage.postgres.commit.positions import LOCK_HEADS
from deskwire.storage.postgres.driver.errors import INSUFFICIENT_PRIVILEGE, LOCK_NOT_AVAILABLE, DatabaseError
from deskwire.storage.postgres.schema.days import (
    ATTEMPTS,
    DELIVERIES,
    EVENTS,
    LOCK_TIMEOUT_MS,
    TODAY,
    DayTable,
)
from deskwire.storage.tables.events.events import EventWrites
from deskwire.storage.tables.webhooks.deliveries import DeliveryWrites

log: Final = structlog.get_logger(__name__)

_OLD: Final = """
SELECT h.project, e.position, e.id, e.conversation IS NULL AND e.internal = 0 FROM project_heads h CROSS JOIN LATERAL
    (SELECT v.position, v.id, v.created_at, v.conversation, v.internal FROM {partition} v
    WHERE v.position > h.project << 40 AND v.position < (h.project + 1) << 40
    ORDER BY v.position LIMIT :limit) AS e
WHERE e.created_at < :older_than
AND EXISTS (SELECT 1 FROM events n WHERE n.position > e.position AND n.position < (h.project + 1) << 40) LIMIT :limit
"""

_OLD_DELIVERIES: Final = """
SELECT d.position, d.day FROM project_heads h CROSS JOIN LATERAL
    (SELECT v.position, v.day, v.created_at, v.status FROM {partition} v
    WHERE v.position > h.project << 40 AND v.position < (h.project + 1) << 40
    ORDER BY v.position LIMIT :limit) AS d
WHERE d.created_at < :older_than AND d.status <> 'pending' LIMIT :limit
"""

# `scrub_due` is the time of the oldest erasure that no vacuum has covered.
REQUEST_SCRUB: Final = "UPDATE event_window SET scrub_due = CASE scrub_due WHEN 0 THEN clock_ms() ELSE scrub_due END, erasures = erasures + 1"

_NO_DAY: Final = -1

_LAST_EVENTS: Final = """
SELECT h.project, e.position, e.id FROM project_heads h CROSS JOIN LATERAL
    (SELECT v.position, v.id FROM {partition} v WHERE v.position > h.project << 40 AND v.position < (h.project + 1) << 40
    ORDER BY v.position DESC LIMIT 1) AS e ORDER BY h.project
"""
_NEWEST_OF_PROJECTS: Final = f"""
SELECT l.position FROM ({_LAST_EVENTS}) AS l
WHERE NOT EXISTS (SELECT 1 FROM events n WHERE n.position > l.position AND n.position < (l.project + 1) << 40)
"""
_MOVE_TO_UNDATED: Final = (
    "UPDATE events SET day = 0 WHERE day = CAST(? AS int) AND position = ANY(CAST(? AS bigint[]))"
)
# Ends a project's pending deliveries up to a position if their event is gone, or belongs to a day that is
# being dropped.
END_WITHOUT_EVENT: Final = (
    "UPDATE deliveries SET status = 'dropped', reason = ?, ended_at = ? WHERE position IN ("
    "SELECT d.position FROM endpoints e JOIN deliveries d ON d.endpoint = e.rowid AND d.status = 'pending' AND d.event <= ? "
    "WHERE e.project = ? AND NOT EXISTS (SELECT 1 FROM events v WHERE v.position = d.event AND v.day <> ?))"
)

_SAVE_PRUNED: Final = (
    "UPDATE project_heads h SET pruned_position = p.position, pruned_id = p.id "
    "FROM unnest(CAST(? AS bigint[]), CAST(? AS bigint[]), CAST(? AS text[])) AS p (project, position, id) "
    "WHERE h.project = p.project AND h.pruned_position < p.position"
)
_HOLDERS: Final = """
SELECT DISTINCT a.pid || ' (' || coalesce(nullif(a.application_name, ''), a.backend_type) || ')'
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.relation IN (SELECT to_regclass(unnest(CAST(? AS text[])))) AND l.granted AND l.pid <> pg_backend_pid() ORDER BY 1 LIMIT 3
"""

# By endpoint, which has an index.
_PENDING: Final = """
SELECT d.position FROM endpoints e JOIN {partition} d ON d.endpoint = e.rowid AND d.status = 'pending' LIMIT CAST(? AS bigint)
"""
_LOCK_TIMEOUT: Final = "SELECT set_config('lock_timeout', ?, true)"
_COLUMNS: Final = """
SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
WHERE attrelid = CAST(? AS regclass) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""


class DayLocked(Exception):
    """Another transaction has locked the table for longer than the drop of a day may wait."""


class DayNotOwned(Exception):
    """The account may not drop the table, so that rows of the day must be deleted."""


class DayInUse(Exception):
    """The day has more pending deliveries than can be moved quickly."""


def partition_days(conn: Connection, table: DayTable) -> list[int]:
    """Return the days that have a partition, in order."""
    names = [name for (name,) in conn.execute(table.partitions).fetchall()]
    return sorted(day for day in map(table.day, names) if day is not None)


def drop_day_of_events(conn: Connection, day: int, at: int) -> int:
    """Drop a day's events in the transaction of `conn`; return their number.

    The newest event of a project is moved to the partition without a day. Deliveries whose event is dropped
    are ended.

    Raises DayLocked and DayNotOwned, with nothing changed.
    """
    partition = EVENTS.partition(day)
    with _all_or_nothing(conn, [EVENTS], day):
        count = _drop_events_partition(conn, partition, day, at)
    log.info("retention.day_dropped", partition=partition, rows=count)
    return count


def count_day_deliveries(conn: Connection, day: int, pending_max: int) -> int:
    """Return the number of rows of a day's partition; 0 if there is none.

    Reads the whole partition. Raises DayInUse if more than `pending_max` deliveries are pending.
    """
    if day not in partition_days(conn, DELIVERIES):
        return 0
    _pending(conn, DELIVERIES.partition(day), pending_max)
    ((count,),) = conn.execute(f"SELECT count(*) FROM {DELIVERIES.partition(day)}").fetchall()
    return int(count)


def drop_day_of_deliveries(conn: Connection, day: int, rows: int, pending_max: int) -> int:
    """Drop a day's deliveries and attempts in the transaction of `conn`.

    Returns the number of dropped deliveries. Pending deliveries are moved to the default partition with their
    attempts.

    Args:
        rows: the number of the day's deliveries, which is counted before, because the first lock makes others
            wait.
        pending_max: maximum number of pending deliveries to move, because others wait for that as well.

    Raises DayLocked, DayNotOwned and DayInUse, with nothing changed.
    """
    tables = [table for table in (DELIVERIES, ATTEMPTS) if day in partition_days(conn, table)]
    with _all_or_nothing(conn, tables, day):
        if len(tables) == 1:
            _drop_single(conn, tables[0], day)
            count = 0
        else:
            count = rows - _drop_both(conn, day, pending_max)
    log.info("retention.day_dropped", partition=DELIVERIES.partition(day), rows=count)
    return count


@contextmanager
def _all_or_nothing(conn: Connection, tables: Sequence[DayTable], day: int) -> Iterator[None]:
    """Run the body completely or not at all. Raises DayLocked, DayNotOwned and DayInUse."""
    partitions = [table.partition(day) for table in tables]
    ((timeout,),) = conn.execute("SELECT current_setting('lock_timeout')").fetchall()
    conn.execute("SAVEPOINT whole_day")
    try:
        yield
        conn.execute(_LOCK_TIMEOUT, (timeout,))
    except DayInUse:
        conn.execute("ROLLBACK TO SAVEPOINT whole_day")
        raise
    except DatabaseError as error:
        if error.sqlstate not in (LOCK_NOT_AVAILABLE, INSUFFICIENT_PRIVILEGE):
            raise
        conn.execute("ROLLBACK TO SAVEPOINT whole_day")
        if error.sqlstate == INSUFFICIENT_PRIVILEGE:
            log.warning("retention.day_not_owned", partition=partitions[0], effect="its rows are deleted")
            raise DayNotOwned from error
        names = [*(table.name for table in tables), *partitions]
        holders = [who for (who,) in conn.execute(_HOLDERS, (names,)).fetchall()]
        log.warning("retention.day_held_up", partition=partitions[0], sessions=holders)
        raise DayLocked from error


def _drop_both(conn: Connection, day: int, pending_max: int) -> int:
    """Drop a day's partitions of both tables; return the number of moved deliveries."""
    deliveries, attempts = DELIVERIES.partition(day), ATTEMPTS.partition(day)
    _detach(conn, DELIVERIES, deliveries)  # in the order in which results are recorded
    _detach(conn, ATTEMPTS, attempts)
    moved = _pending(conn, deliveries, pending_max)
    _move(conn, DELIVERIES, deliveries, "position", moved)
    _move(conn, ATTEMPTS, attempts, "delivery", moved)
    conn.execute(f"DROP TABLE {deliveries}, {attempts}")
    return len(moved)


def _drop_single(conn: Connection, table: DayTable, day: int) -> None:
    """Drop the only partition of a day once it has no delivery. Raises DayInUse."""
    partition = table.partition(day)
    deliveries = partition if table is DELIVERIES else DELIVERIES.name
    _require_none(conn, deliveries, day)
    _detach(conn, table, partition)
    _require_none(conn, deliveries, day)  # one may have been added before the lock
    conn.execute(f"DROP TABLE {partition}")


def _require_none(conn: Connection, deliveries: str, day: int) -> None:
    if conn.execute(f"SELECT 1 FROM {deliveries} WHERE day = CAST(? AS int) LIMIT 1", (day,)).fetchone():
        raise DayInUse


def _pending(conn: Connection, partition: str, pending_max: int) -> list[int]:
    """Return the positions of pending deliveries. Raises DayInUse if there are more."""
    found = [
        position for (position,) in conn.execute(_PENDING.format(partition=partition), (pending_max + 1,))
    ]
    if len(found) > pending_max:
        raise DayInUse
    return found


def _detach(conn: Connection, table: DayTable, partition: str) -> None:
    conn.execute(_LOCK_TIMEOUT, (f"{LOCK_TIMEOUT_MS}ms",))
    conn.execute(f"ALTER TABLE {table.name} DETACH PARTITION {partition}")


def _move(conn: Connection, table: DayTable, detached: str, column: str, positions: Sequence[int]) -> None:
    """Insert rows of a detached partition again.

    Without a partition of their day they go to the default one.
    """
    if positions:
        ((columns,),) = conn.execute(_COLUMNS, (table.name,)).fetchall()
        conn.execute(
            f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {detached} WHERE {column} = ANY(CAST(? AS bigint[]))",
            (list(positions),),
        )


def _drop_events_partition(conn: Connection, partition: str, day: int, at: int) -> int:
    last = _LAST_EVENTS.format(partition=partition)
    conn.execute(_LOCK_TIMEOUT, (f"{LOCK_TIMEOUT_MS}ms",))
    newest = conn.execute(_NEWEST_OF_PROJECTS.format(partition=partition)).fetchall()
    conn.execute(_MOVE_TO_UNDATED, (day, [position for (position,) in newest]))
    pruned = conn.execute(last).fetchall()
    ((count,),) = conn.execute(f"SELECT count(*) FROM {partition}").fetchall()
    for project, upto, _ in pruned:
        conn.execute(END_WITHOUT_EVENT, (NOT_STORED, at, upto, project, day))
    _lock_against_writes(conn, partition)
    if conn.execute(last).fetchall() != pruned:
        raise DatabaseError(LOCK_NOT_AVAILABLE, "another event of the day was stored")
    save_pruned(conn, [(project, position, event_id) for project, position, event_id in pruned])
    conn.execute(f"DROP TABLE {partition}")
    return int(count)


def _lock_against_writes(conn: Connection, partition: str) -> None:
    """Lock a partition against writes.

    Erasures wait until the drop is committed, and so do writes of a node whose clock is days late.
    """
    conn.execute(f"LOCK TABLE {partition} IN SHARE MODE")


def save_pruned(conn: Connection, pruned: Sequence[tuple[int, int, str]]) -> None:
    """Store the position up to which each project's log is pruned.

    Call it last, because heads are locked after everything else.
    """
    if pruned:
        projects, positions, ids = zip(*pruned, strict=True)
        conn.execute(LOCK_HEADS, (projects,))  # in the order in which every transaction locks heads
        conn.execute(_SAVE_PRUNED, (projects, positions, ids))


class LogWrites(EventWrites, DeliveryWrites):
    """Changes of the logs of all projects."""

    def want_scrub(self) -> None:
        self.conn.execute(REQUEST_SCRUB)
        self.scrub_wanted = True

    def note_spent(self) -> None:
        self.want_scrub()  # positions are never assigned again, because the heads keep them

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
        """Drop expired days; if there are none, delete expired rows without a day.

        A row of a day is dropped with its whole day.
        """
        (today,) = self.conn.execute(TODAY).fetchone()
        days = partition_days(self.conn, EVENTS)
        past = [day for day in days if day < today]
        count, by_row = self._drop_days([day for day in past if (day + 1) * DAY_MS <= older_than], at)
        if count:
            return count
        standing = [day * DAY_MS for day in past if day not in by_row]
        by_row += [day for day in days if day >= today and day * DAY_MS < older_than]
        before = min([older_than, *standing])
        for partition in (EVENTS.undated, EVENTS.default, *map(EVENTS.partition, by_row)):
            count += self._prune_rows(partition, before, limit - count, at)
        return count

    def _drop_days(self, days: Sequence[int], at: int) -> tuple[int, list[int]]:
        """Drop days, oldest first, until one is locked.

        Returns the number of dropped events, and the days whose rows must be deleted instead.
        """
        count = 0
        for day in days:
            try:
                count += drop_day_of_events(self.conn, day, at)
            except DayLocked:
                break
            except DayNotOwned:
                return count, [*days]
        return count, []

    def _prune_rows(self, partition: str, older_than: int, limit: int, at: int) -> int:
        if limit <= 0:
            return 0
        sql = _OLD.format(partition=partition)
        rows = self.conn.execute(sql, {"older_than": older_than, "limit": limit}).fetchall()
        last: dict[int, tuple[int, str]] = {}
        for project, position, event_id, _ in rows:
            last[project] = max(last.get(project, (0, "")), (position, event_id))
        pruned = [(project, *newest) for project, newest in sorted(last.items())]
        for project, upto, _ in pruned:
            self._prune(partition, project, upto, older_than, at)
        if any(row[3] for row in rows):  # deletions contain the user id of a contact
            self.want_scrub()
        save_pruned(self.conn, pruned)
        return len(rows)

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        """Drop expired days; if there are none, delete expired rows of other partitions.

        Those are the rows without a day, and the rows of days that can't be dropped yet.
        """
        (today,) = self.conn.execute(TODAY).fetchone()
        stored = partition_days(self.conn, DELIVERIES)
        past = sorted(day for day in {*stored, *partition_days(self.conn, ATTEMPTS)} if day < today)
        count, by_row = self._drop_delivery_days(
            [day for day in past if (day + 1) * DAY_MS <= older_than], limit
        )
        if count:
            return count
        by_row += [day for day in stored if day >= today and day * DAY_MS < older_than]
        names = [DELIVERIES.partition(day) for day in by_row if day in stored]
        for partition in (DELIVERIES.undated, DELIVERIES.default, *names):
            values = {"older_than": older_than, "limit": limit - count}
            rows = self.conn.execute(_OLD_DELIVERIES.format(partition=partition), values).fetchall()
            count += self._delete(rows)
        return count

    def _drop_delivery_days(self, days: Sequence[int], limit: int) -> tuple[int, list[int]]:
        """Drop days, oldest first, up to a number of deliveries.

        Returns the number of dropped deliveries, and the days whose rows must be deleted instead.
        """
        sizes: dict[int, int] = {}
        count, by_row = 0, []
        for day in days:
            try:
                sizes[day] = count_day_deliveries(self.conn, day, limit)
            except DayInUse:
                by_row.append(day)
            if sum(sizes.values()) >= limit:
                break
        for day, size in sizes.items():
            try:
                count += drop_day_of_deliveries(self.conn, day, size, limit)
            except DayInUse:
                by_row.append(day)
            except DayLocked:
                break
            except DayNotOwned:
                return count, [*by_row, *[each for each in days if each >= day]]
        return count, by_row

    def _prune(self, partition: str, project: int, upto: int, older_than: int, at: int) -> None:
        self.conn.execute(
            f"DELETE FROM {partition} WHERE position > CAST(? AS bigint) << 40 AND position <= ? AND created_at < ?",
            (project, upto, older_than),
        )
        self.conn.execute(END_WITHOUT_EVENT, (NOT_STORED, at, upto, project, _NO_DAY))
