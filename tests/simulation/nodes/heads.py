"""The heads of projects and the log after a position, on the one file: queries that a store of many nodes answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from deskwire.engine.events.ports import LogSegment, ProjectHead
from deskwire.engine.events.types import ERASURE
from deskwire.storage.sqlite.transaction import SqliteReader
from deskwire.storage.tables.events.events import EVENT_COLUMNS, event_of

_BEHIND = f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.position > ? AND e.project IN (?, 0) {{}} ORDER BY e.position LIMIT ?"


class NodesReader(SqliteReader):
    """A reader of a database that has one project.

    Args:
        head: the project's head as it is stored.
    """

    def __init__(self, connection: sqlite3.Connection, head: Callable[[], ProjectHead]) -> None:
        super().__init__(connection)
        self._head = head
        self.hidden: set[int] = set()
        """Positions that are assigned and not visible yet; only a planted bug adds one."""

    def heads(self, projects: Sequence[int]) -> Sequence[ProjectHead]:
        """See `HeadReader.heads`."""
        head = self._head()
        return [head] if head.project in projects else []

    def is_replaced(self, project: int, position: int, event_id: str) -> bool:
        """See `HeadReader.is_replaced`."""
        row = self.conn.execute("SELECT id FROM events WHERE position = ?", (position,)).fetchone()
        return row is not None and row[0] != event_id

    def segments(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        """See `HeadReader.segments`."""
        return [self._stretch(project, position, limit, "") for project, position in after]

    def erasures(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        """See `HeadReader.erasures`."""
        only = f"AND e.type = '{ERASURE}'"
        return [self._stretch(project, position, limit, only) for project, position in after]

    def _stretch(self, project: int, after: int, limit: int, only: str) -> LogSegment:
        rows = self.conn.execute(_BEHIND.format(only), (after, project, limit)).fetchall()
        events = [event_of(row) for row in rows if row[0] not in self.hidden]
        upto = events[-1].position if len(rows) == limit else max(after, self._head().events)
        gone = frozenset(int(each.body) for each in events if each.type == ERASURE)
        shown = [each for each in events if each.type != ERASURE and each.project == project]
        return LogSegment(project, upto, shown, gone)
