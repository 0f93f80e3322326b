"""Reads of projects' event and delivery logs, including for followers (ADR 60).

Each project has positions of its own, of the form `project << 40 | n`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import orjson

from deskwire.engine.core.ids import day_of, id_before, is_id
from deskwire.engine.events.ports import LogSegment, ProjectHead
from deskwire.engine.events.types import ERASURE, REDACTION, StoredEvent
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import UNPLANNED
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.events.events import EVENT_COLUMNS, event_of

# Finds the position up to which nothing is newer than an id, because ids grow with positions. Everything up
# to `low` is not newer, and everything after `high` is.
_BISECTED: Final = """
WITH RECURSIVE bisected (low, high) AS (
    SELECT h.project << 40, {high} FROM project_heads h WHERE h.project = :project
    UNION ALL
    SELECT CASE WHEN e.id IS NULL OR e.id <= :id THEN b.middle ELSE b.low END,
        CASE WHEN e.id IS NULL OR e.id <= :id THEN b.high ELSE e.position - 1 END
    FROM (SELECT low, high, (low + high + 1) / 2 AS middle FROM bisected WHERE low < high) AS b LEFT JOIN LATERAL
        (SELECT t.position, t.id FROM {table} t WHERE t.position <= b.middle AND t.position > CAST(:project AS bigint) << 40 {chosen}
        ORDER BY t.position DESC LIMIT 1) AS e ON true)
SELECT low FROM bisected WHERE low >= high
"""
_EVENT: Final = _BISECTED.format(high="h.position", table="events", chosen="")
_DAY: Final = f"CAST(:day AS int){UNPLANNED}"
_OF_DAY: Final = f"AND t.day IN (0, {_DAY})"

# Deliveries of earlier days are older than the id, and those of later days newer; `end` is the position
# before the latter.
_DELIVERED_BEFORE: Final = _BISECTED.format(
    high="least(h.delivery, (SELECT CAST(:end AS bigint)))", table="deliveries", chosen=_OF_DAY
)

_END_OF_DAY: Final = f"""
SELECT min(position) - 1 FROM deliveries WHERE position > (SELECT CAST(:project AS bigint) << 40)
AND position < (SELECT (CAST(:project AS bigint) + 1) << 40) AND day > {_DAY}
"""
_DELIVERY: Final = (
    "SELECT n.position FROM (SELECT d.position, d.id FROM deliveries d WHERE d.position <= ("
    + _BISECTED.format(high="h.delivery", table="deliveries", chosen=_OF_DAY)
    + ") AND d.position > CAST(:project AS bigint) << 40 AND d.day IN (0, "
    + _DAY
    + ") ORDER BY d.position DESC LIMIT 1) AS n WHERE n.id = :id"
)


class LogReads(Queries):
    """Queries on the log of a project as a whole."""

    def event_position(self, project: int, event_id: str) -> int:
        row = self.conn.execute(_EVENT, {"project": project, "id": event_id}).fetchone()
        return 0 if row is None else int(row[0])

    def event_window(self, project: int) -> tuple[str | None, str | None]:
        row = self.conn.execute(
            "SELECT pruned_id, last_id FROM project_heads WHERE project = ?", (project,)
        ).fetchone()
        return (None, None) if row is None else (row[0], row[1])

    def pruned_position(self, project: int) -> int:
        row = self.conn.execute(
            "SELECT pruned_position FROM project_heads WHERE project = ?", (project,)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def last_event_position(self) -> int:
        (position,) = self.conn.execute("SELECT coalesce(max(position), 0) FROM project_heads").fetchone()
        return int(position)

    def delivery_position(self, project: int, delivery_id: str) -> int | None:
        if not is_id(delivery_id, "dlv"):
            return None
        values = {"project": project, "id": delivery_id, "day": day_of(delivery_id)}
        row = self.conn.execute(_DELIVERY, values).fetchone()
        return None if row is None else int(row[0])

    def delivery_position_before(self, project: int, at: int) -> int:
        return self.delivery_positions_before(project, [at])[0]

    def delivery_positions_before(self, project: int, times: Sequence[int]) -> list[int]:
        bounds = [id_before("dlv", at) for at in times]
        ends = {day: self._end_of_day(project, day) for day in dict.fromkeys(map(day_of, bounds))}
        return [self._delivered_before(project, bound, ends[day_of(bound)]) for bound in bounds]

    def _end_of_day(self, project: int, day: int) -> int | None:
        """Return the position before the first delivery of a later day."""
        (end,) = self.conn.execute(_END_OF_DAY, {"project": project, "day": day}).fetchone()
        return None if end is None else int(end)

    def _delivered_before(self, project: int, bound: str, end: int | None) -> int:
        values = {"project": project, "id": bound, "day": day_of(bound), "end": end}
        row = self.conn.execute(_DELIVERED_BEFORE, values).fetchone()
        return project << 40 if row is None else int(row[0])


_HEADS: Final = "SELECT project, position, delivery FROM project_heads WHERE project IN (SELECT unnest(CAST(? AS bigint[])))"
# The values are in sub-selects to hide them from the planner, which would otherwise plan each query again.
# Planning takes longer than a look into the partitions of all days.
# The head is read at the same moment as the events. So all events up to it are there, except erased and
# pruned ones.
_BEHIND: Final = f"""
SELECT w.project, h.position, {EVENT_COLUMNS} FROM unnest((SELECT CAST(? AS bigint[])), (SELECT CAST(? AS bigint[]))) AS w (project, after)
JOIN project_heads h ON h.project = w.project LEFT JOIN LATERAL
    (SELECT v.* FROM events v WHERE v.position > greatest(w.after, w.project << 40) AND v.position <= h.position {{chosen}}
    ORDER BY v.position LIMIT (SELECT CAST(? AS bigint))) AS e ON true
ORDER BY w.project, e.position
"""
_EVENTS: Final = _BEHIND.format(chosen="")
_NOTES: Final = _BEHIND.format(chosen=f"AND v.type IN ('{ERASURE}', '{REDACTION}')")
_AT: Final = f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.position = ANY(CAST(? AS bigint[]))"


class FollowerReads:
    """Queries of followers; the methods are those of `ports.HeadReader`."""

    conn: Connection

    def heads(self, projects: Sequence[int]) -> Sequence[ProjectHead]:
        rows = self.conn.execute(_HEADS, (tuple(projects),)).fetchall()
        return [ProjectHead(*row) for row in rows]

    def is_replaced(self, project: int, position: int, event_id: str) -> bool:
        row = self.conn.execute("SELECT id FROM events WHERE position = ?", (position,)).fetchone()
        return row is not None and row[0] != event_id

    def segments(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        return self._behind(_EVENTS, after, limit)

    def erasures(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        return self._behind(_NOTES, after, limit)

    def _behind(self, sql: str, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        projects, positions = zip(*after, strict=True)
        rows = self.conn.execute(sql, (projects, positions, limit)).fetchall()
        return [self._stretch([*some], limit) for _, some in groupby(rows, itemgetter(0))]

    def _rewritten(self, notes: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        """Return the events that redactions have rewritten, in their present form."""
        positions = [position for note in notes for position in orjson.loads(note.body)]
        if not positions:
            return ()
        return [event_of(row) for row in self.conn.execute(_AT, (tuple(positions),)).fetchall()]

    def _stretch(self, rows: Sequence[Sequence[Any]], limit: int) -> LogSegment:
        """Return the stretch of one project's rows; without events the only row has none."""
        project, head = rows[0][:2]
        events = [event_of(row[2:]) for row in rows if row[2] is not None]
        upto = events[-1].position if len(events) == limit else head
        erased = frozenset(int(event.body) for event in events if event.type == ERASURE)
        rewritten = self._rewritten([event for event in events if event.type == REDACTION])
        return LogSegment(project, upto, [event for event in events if event.project], erased, rewritten)
