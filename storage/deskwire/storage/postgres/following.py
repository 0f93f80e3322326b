"""The queries of followers: where the projects' lines of events end, and what lies behind a position in each (ADR 60)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import orjson

from deskwire.engine.events.ports import LogSegment, ProjectHead
from deskwire.engine.events.types import ERASURE, REDACTION, StoredEvent
from deskwire.storage.connection import Connection
from deskwire.storage.tables.events.events import EVENT_COLUMNS, event_of

_HEADS: Final = "SELECT project, position, delivery FROM project_heads WHERE project IN (SELECT unnest(CAST(? AS bigint[])))"
# The values are in sub-selects to hide them from the planner, which would otherwise plan each query again. That takes longer
# than looking into the partitions of all days.
_BEHIND: Final = f"""
SELECT w.project, h.position, {EVENT_COLUMNS} FROM unnest((SELECT CAST(? AS bigint[])), (SELECT CAST(? AS bigint[]))) AS w (project, after)
JOIN project_heads h ON h.project = w.project LEFT JOIN LATERAL
    (SELECT v.* FROM events v WHERE v.position > greatest(w.after, w.project << 40) AND v.position <= h.position {{chosen}}
    ORDER BY v.position LIMIT (SELECT CAST(? AS bigint))) AS e ON true
ORDER BY w.project, e.position
"""
"""The head is of the same moment as the events: each of those up to it is there, unless it was erased or pruned."""
_EVENTS: Final = _BEHIND.format(chosen="")
_NOTES: Final = _BEHIND.format(chosen=f"AND v.type IN ('{ERASURE}', '{REDACTION}')")
_AT: Final = f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.position = ANY(CAST(? AS bigint[]))"


class HeadReads:
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
        """Return the events that redactions have rewritten, as they are at this moment: as these left them, or later ones."""
        positions = [position for note in notes for position in orjson.loads(note.body)]
        if not positions:
            return ()
        return [event_of(row) for row in self.conn.execute(_AT, (tuple(positions),)).fetchall()]

    def _stretch(self, rows: Sequence[Sequence[Any]], limit: int) -> LogSegment:
        """Return the stretch of one project's rows, one of which has no event if there is none."""
        project, head = rows[0][:2]
        events = [event_of(row[2:]) for row in rows if row[2] is not None]
        upto = events[-1].position if len(events) == limit else head
        erased = frozenset(int(event.body) for event in events if event.type == ERASURE)
        rewritten = self._rewritten([event for event in events if event.type == REDACTION])
        return LogSegment(project, upto, [event for event in events if event.project], erased, rewritten)
