"""Retention by whole days: a day's partition is dropped, after rows that must outlive it are moved elsewhere (ADR 104)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import structlog

from deskwire.engine.webhooks.outcome import NOT_STORED
from deskwire.storage.connection import Connection
from deskwire.storage.postgres.commit.heads import LOCK
from deskwire.storage.postgres.driver.refusals import LOCK_NOT_AVAILABLE, NOT_ALLOWED, DatabaseError
from deskwire.storage.postgres.schema.days import ATTEMPTS, DELIVERIES, EVENTS, LOCK_TIMEOUT_MS, DayTable

log: Final = structlog.get_logger(__name__)

_LAST: Final = """
SELECT h.project, e.position, e.id FROM project_heads h CROSS JOIN LATERAL
    (SELECT v.position, v.id FROM {partition} v WHERE v.position > h.project << 40 AND v.position < (h.project + 1) << 40
    ORDER BY v.position DESC LIMIT 1) AS e ORDER BY h.project
"""
_NEWEST: Final = f"""
SELECT l.position FROM ({_LAST}) AS l
WHERE NOT EXISTS (SELECT 1 FROM events n WHERE n.position > l.position AND n.position < (l.project + 1) << 40)
"""
_MOVE: Final = "UPDATE events SET day = 0 WHERE day = CAST(? AS int) AND position = ANY(CAST(? AS bigint[]))"
WITHOUT_EVENT: Final = (
    "UPDATE deliveries SET status = 'dropped', reason = ?, ended_at = ? WHERE position IN ("
    "SELECT d.position FROM endpoints e JOIN deliveries d ON d.endpoint = e.rowid AND d.status = 'pending' AND d.event <= ? "
    "WHERE e.project = ? AND NOT EXISTS (SELECT 1 FROM events v WHERE v.position = d.event AND v.day <> ?))"
)
"""Ends a project's pending deliveries up to a position whose event is gone, or is of a day that is being dropped."""

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


_PENDING: Final = """
SELECT d.position FROM endpoints e JOIN {partition} d ON d.endpoint = e.rowid AND d.status = 'pending' LIMIT CAST(? AS bigint)
"""
"""By the endpoints, for which there is an index."""
_LOCK_TIMEOUT: Final = "SELECT set_config('lock_timeout', ?, true)"
_COLUMNS: Final = """
SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
WHERE attrelid = CAST(? AS regclass) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""


class DayHeldUp(Exception):
    """Another transaction has used the table for longer than the drop of a day may wait."""


class DayNotOwned(Exception):
    """The account may not drop the table, so rows of the day have to be deleted."""


class DayInUse(Exception):
    """More deliveries of the day are left than can be moved within a moment."""


def days_of(conn: Connection, table: DayTable) -> list[int]:
    """Return the days that have a partition, in order."""
    names = [name for (name,) in conn.execute(table.partitions).fetchall()]
    return sorted(day for day in map(table.day, names) if day is not None)


def drop_events_of(conn: Connection, day: int, at: int) -> int:
    """Drop a day's events in the transaction of `conn`; return their number.

    The newest event of a project is moved to the partition without a day. Deliveries whose event goes are ended.

    Raises DayHeldUp and DayNotOwned, with nothing changed.
    """
    partition = EVENTS.partition(day)
    with _whole_day(conn, [EVENTS], day):
        count = _drop(conn, partition, day, at)
    log.info("retention.day_dropped", partition=partition, rows=count)
    return count


def deliveries_of(conn: Connection, day: int, most: int) -> int:
    """Return the number of rows of a day's partition, all of which it reads; 0 if there is none.

    Raises DayInUse if more than `most` deliveries are pending.
    """
    if day not in days_of(conn, DELIVERIES):
        return 0
    _pending(conn, DELIVERIES.partition(day), most)
    ((count,),) = conn.execute(f"SELECT count(*) FROM {DELIVERIES.partition(day)}").fetchall()
    return int(count)


def drop_deliveries_of(conn: Connection, day: int, rows: int, most: int) -> int:
    """Drop a day's deliveries and their attempts in the transaction of `conn`; return the number of deliveries that are gone.

    Those that are pending are moved to the default partition, with their attempts.

    Args:
        rows: the number of the day's deliveries, counted before, because other transactions wait from the first lock on.
        most: the most pending deliveries to move, because others wait for that as well.

    Raises DayHeldUp, DayNotOwned and DayInUse, with nothing changed.
    """
    tables = [table for table in (DELIVERIES, ATTEMPTS) if day in days_of(conn, table)]
    with _whole_day(conn, tables, day):
        if len(tables) == 1:
            _drop_single(conn, tables[0], day)
            count = 0
        else:
            count = rows - _drop_both(conn, day, most)
    log.info("retention.day_dropped", partition=DELIVERIES.partition(day), rows=count)
    return count


@contextmanager
def _whole_day(conn: Connection, tables: Sequence[DayTable], day: int) -> Iterator[None]:
    """Run the body as a whole or not at all. Raises DayHeldUp, DayNotOwned and DayInUse."""
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
        if error.sqlstate not in (LOCK_NOT_AVAILABLE, NOT_ALLOWED):
            raise
        conn.execute("ROLLBACK TO SAVEPOINT whole_day")
        if error.sqlstate == NOT_ALLOWED:
            log.warning("retention.day_not_owned", partition=partitions[0], effect="its rows are deleted")
            raise DayNotOwned from error
        names = [*(table.name for table in tables), *partitions]
        holders = [who for (who,) in conn.execute(_HOLDERS, (names,)).fetchall()]
        log.warning("retention.day_held_up", partition=partitions[0], sessions=holders)
        raise DayHeldUp from error


def _drop_both(conn: Connection, day: int, most: int) -> int:
    """Drop a day's partitions of both tables; return the number of pending deliveries that were moved."""
    deliveries, attempts = DELIVERIES.partition(day), ATTEMPTS.partition(day)
    _detach(conn, DELIVERIES, deliveries)  # in the order in which results are recorded
    _detach(conn, ATTEMPTS, attempts)
    moved = _pending(conn, deliveries, most)
    _move(conn, DELIVERIES, deliveries, "position", moved)
    _move(conn, ATTEMPTS, attempts, "delivery", moved)
    conn.execute(f"DROP TABLE {deliveries}, {attempts}")
    return len(moved)


def _drop_single(conn: Connection, table: DayTable, day: int) -> None:
    """Drop the partition of a day that has none in the other table, once no delivery of the day is left. Raises DayInUse."""
    partition = table.partition(day)
    deliveries = partition if table is DELIVERIES else DELIVERIES.name
    _require_none(conn, deliveries, day)
    _detach(conn, table, partition)
    _require_none(conn, deliveries, day)  # one may have been added before the lock
    conn.execute(f"DROP TABLE {partition}")


def _require_none(conn: Connection, deliveries: str, day: int) -> None:
    if conn.execute(f"SELECT 1 FROM {deliveries} WHERE day = CAST(? AS int) LIMIT 1", (day,)).fetchone():
        raise DayInUse


def _pending(conn: Connection, partition: str, most: int) -> list[int]:
    """Return the positions of the deliveries that are still to be made. Raises DayInUse if there are more."""
    found = [position for (position,) in conn.execute(_PENDING.format(partition=partition), (most + 1,))]
    if len(found) > most:
        raise DayInUse
    return found


def _detach(conn: Connection, table: DayTable, partition: str) -> None:
    conn.execute(_LOCK_TIMEOUT, (f"{LOCK_TIMEOUT_MS}ms",))
    conn.execute(f"ALTER TABLE {table.name} DETACH PARTITION {partition}")


def _move(conn: Connection, table: DayTable, detached: str, column: str, positions: Sequence[int]) -> None:
    """Insert rows of a detached partition into the table again: their day has no partition, so they go to the default one."""
    if positions:
        ((columns,),) = conn.execute(_COLUMNS, (table.name,)).fetchall()
        conn.execute(
            f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {detached} WHERE {column} = ANY(CAST(? AS bigint[]))",
            (list(positions),),
        )


def _drop(conn: Connection, partition: str, day: int, at: int) -> int:
    last = _LAST.format(partition=partition)
    conn.execute(_LOCK_TIMEOUT, (f"{LOCK_TIMEOUT_MS}ms",))
    newest = conn.execute(_NEWEST.format(partition=partition)).fetchall()
    conn.execute(_MOVE, (day, [position for (position,) in newest]))
    pruned = conn.execute(last).fetchall()
    ((count,),) = conn.execute(f"SELECT count(*) FROM {partition}").fetchall()
    for project, upto, _ in pruned:
        conn.execute(WITHOUT_EVENT, (NOT_STORED, at, upto, project, day))
    _close(conn, partition)
    if conn.execute(last).fetchall() != pruned:
        raise DatabaseError(LOCK_NOT_AVAILABLE, "the day has got another event")
    save_pruned(conn, [(project, position, event_id) for project, position, event_id in pruned])
    conn.execute(f"DROP TABLE {partition}")
    return int(count)


def _close(conn: Connection, partition: str) -> None:
    """Lock a partition against writes. Erasures wait until the drop is committed, and so does a node whose clock is days late."""
    conn.execute(f"LOCK TABLE {partition} IN SHARE MODE")


def save_pruned(conn: Connection, pruned: Sequence[tuple[int, int, str]]) -> None:
    """Store the position up to which each project's log is pruned; call it last, because heads are locked after all else."""
    if pruned:
        projects, positions, ids = zip(*pruned, strict=True)
        conn.execute(LOCK, (projects,))  # in the order in which all lock them
        conn.execute(_SAVE_PRUNED, (projects, positions, ids))
