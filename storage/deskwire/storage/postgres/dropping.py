"""Retention by whole days: a day's partition is dropped, after rows that must outlive it are moved elsewhere (ADR 104)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from deskwire.engine.webhooks.outcome import NOT_STORED
from deskwire.storage.connection import Connection
from deskwire.storage.postgres.commit.heads import LOCK
from deskwire.storage.postgres.driver.refusals import LOCK_NOT_AVAILABLE, NOT_ALLOWED, DatabaseError
from deskwire.storage.postgres.schema.days import EVENTS, LOCK_TIMEOUT_MS, DayTable

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
WHERE l.relation IN (to_regclass(?), to_regclass(?)) AND l.granted AND l.pid <> pg_backend_pid() ORDER BY 1 LIMIT 3
"""


class DayHeldUp(Exception):
    """Another transaction has used the table for longer than the drop of a day may wait."""


class DayNotOwned(Exception):
    """The account may not drop the table, so rows of the day have to be deleted."""


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
    conn.execute("SAVEPOINT whole_day")
    try:
        count = _drop(conn, partition, day, at)
    except DatabaseError as error:
        if error.sqlstate not in (LOCK_NOT_AVAILABLE, NOT_ALLOWED):
            raise
        conn.execute("ROLLBACK TO SAVEPOINT whole_day")
        if error.sqlstate == NOT_ALLOWED:
            log.warning("retention.day_not_owned", partition=partition, effect="its rows are deleted")
            raise DayNotOwned from error
        holders = [who for (who,) in conn.execute(_HOLDERS, (EVENTS.name, partition)).fetchall()]
        log.warning("retention.day_held_up", partition=partition, sessions=holders)
        raise DayHeldUp from error
    log.info("retention.day_dropped", partition=partition, rows=count)
    return count


def _drop(conn: Connection, partition: str, day: int, at: int) -> int:
    last = _LAST.format(partition=partition)
    conn.execute("SELECT set_config('lock_timeout', ?, true)", (f"{LOCK_TIMEOUT_MS}ms",))
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
