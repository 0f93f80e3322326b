"""The events of a project by position: those for everybody, those for agents, and those for who names their type.

On PostgreSQL they are a range of positions. SQLite has an index of each level of `internal`. That of the events for everybody is a
table, `project_events`, which they are added to `TAIL` positions at a time (ADR 4): the newest ones are found in the log itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from deskwire.engine.events.types import REGISTRY, StoredEvent
from deskwire.storage.dialect import POSTGRES, SQLITE, Dialect
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.events.events import EVENT_COLUMNS, event_of, of_types

TAIL: Final = 64
"""Positions that SQLite adds to `project_events` at a time, and the most that a query reads one by one, in some 10 µs."""

_LARGEST: Final = (1 << 63) - 1
_COLUMNS: Final = EVENT_COLUMNS.removeprefix("e.position, ")
ADDED: Final = f"(SELECT max(position) / {TAIL} * {TAIL} FROM events)"
"""The position before which each event is in `project_events`. Later ones may be, too, once the newest were erased."""
_IN_TABLE: Final = f"l.project = :project AND l.position {{bound}} AND +l.position < {ADDED}"
_IN_TAIL: Final = (
    f"e.position >= {ADDED} AND +e.position {{bound}} AND e.project = :project AND e.internal = 0"
)
"""Of two bounds on one side SQLite searches by any; it tests the one that has a `+` before it."""
_COUNTED: Final = (f"project_events l WHERE {_IN_TABLE}", f"events e WHERE {_IN_TAIL}")
_TOLD: Final = (
    f"SELECT l.position AS position, {{columns}} FROM project_events l CROSS JOIN events e ON e.position = l.position WHERE {_IN_TABLE}",
    f"SELECT e.position, {{columns}} FROM events e WHERE {_IN_TAIL}",
)
_OF_LEVEL: Final = (
    "events e WHERE e.project = :project AND e.position {bound} AND e.internal = {level} {of_project}"
)
_NEWEST_OF_CONVERSATION: Final = (
    f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.conversation = "
    "(SELECT rowid FROM conversations WHERE id = :subject AND project = :project) "
    "AND e.position < :before{wanted} ORDER BY e.position DESC LIMIT :limit"
)


def _parts(dialect: Dialect, levels: Sequence[int], columns: str, bound: str, wanted: str) -> list[str]:
    """Return the queries that together find the events of these levels, each of them along an index.

    Args:
        columns: those behind the position.
        bound: a bound of the position, such as `> :after`.
        wanted: a further condition, or nothing.
    """
    of_level = (f"SELECT e.position, {{columns}} FROM {_OF_LEVEL}",)
    of_project = dialect.text("{of_project}")
    return [
        part.format(columns=columns, bound=bound, level=level, of_project=of_project) + wanted
        for level in levels
        for part in (_TOLD if dialect is SQLITE and level == 0 else of_level)
    ]


@lru_cache(maxsize=256)
def _behind(dialect: Dialect, levels: tuple[int, ...], wanted: str) -> str:
    """Return the query for what follows `:after`, as much as `:limit`."""
    parts = _parts(dialect, levels, _COLUMNS, "> :after", wanted)
    return f"{' UNION ALL '.join(parts)} ORDER BY position LIMIT :limit"


@lru_cache(maxsize=256)
def _newest(dialect: Dialect, levels: tuple[int, ...], columns: str, bound: str, wanted: str = "") -> str:
    """Return the query for the newest events, as many as `:limit`, the newest one first."""
    parts = _parts(dialect, levels, columns, bound, wanted)
    order = "ORDER BY position DESC LIMIT :limit"
    if dialect is POSTGRES and len(parts) > 1:
        parts = [f"SELECT * FROM ({part} {order}) AS part{number}" for number, part in enumerate(parts)]
    return f"{' UNION ALL '.join(parts)} {order}"


@lru_cache(maxsize=2)
def _count_behind(dialect: Dialect) -> str:
    """Return the query that counts what follows `:position`, up to `:limit`."""
    parts = _COUNTED if dialect is SQLITE else (_OF_LEVEL,)
    each = " UNION ALL ".join(f"SELECT 1 FROM {part}" for part in parts)
    each = each.format(bound="> :position", level=0, of_project=dialect.text("{of_project}"))
    return f"SELECT count(*) FROM ({each} LIMIT :limit) AS behind"


def _levels(types: frozenset[str]) -> tuple[int, ...]:
    return tuple(sorted({REGISTRY[name].level for name in types}))


class FeedReads(Queries):
    """Queries on the events of a project; the methods are those of `ports.Reader`."""

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        return self._events_behind((0,), project, after, limit, types)

    def agents_events(self, project: int, after: int, limit: int) -> Sequence[StoredEvent]:
        return self._events_behind((0, 1), project, after, limit, frozenset())

    def named_events(
        self, project: int, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        return self._events_behind(_levels(types), project, after, limit, types)

    def _events_behind(
        self, levels: tuple[int, ...], project: int, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        names, wanted = of_types(types)
        values = {"project": project, "after": after, "limit": limit, **names}
        rows = self.conn.execute(_behind(self.dialect, levels, wanted), values)
        return [event_of(row) for row in rows]

    def newest_events(
        self, project: int, before: int | None, limit: int, types: frozenset[str], conversation: str | None
    ) -> Sequence[StoredEvent]:
        names, wanted = of_types(types)
        values: dict[str, object] = {
            "project": project,
            "before": _LARGEST if before is None else before,
            "limit": limit,
            **names,
        }
        if conversation is None:
            sql = _newest(self.dialect, _levels(types), _COLUMNS, "< :before", wanted)
        else:
            sql = _NEWEST_OF_CONVERSATION.format(wanted=wanted)
            values["subject"] = conversation
        return [event_of(row) for row in self.conn.execute(sql, values)]

    def event_id_at(self, project: int, position: int) -> str | None:
        newest = self._newest_event((0,), project, position)
        return None if newest is None else newest[1]

    def newest_event(self, project: int) -> tuple[int, str] | None:
        return self._newest_event((0, 1), project, _LARGEST)

    def newest_event_id(self, project: int) -> str | None:
        newest = self.newest_event(project)
        return None if newest is None else newest[1]

    def newest_logged_id(self, project: int) -> str | None:
        newest = self._newest_event((0, 1, 2), project, _LARGEST)
        return None if newest is None else newest[1]

    def _newest_event(self, levels: tuple[int, ...], project: int, position: int) -> tuple[int, str] | None:
        """Return the position and the id of the newest event of these levels up to a position."""
        values = {"project": project, "position": position, "limit": 1}
        sql = _newest(self.dialect, levels, "e.id", "<= :position")
        row: tuple[int, str] | None = self.conn.execute(sql, values).fetchone()
        return row

    def events_behind(self, project: int, position: int, limit: int) -> int:
        values = {"project": project, "position": position, "limit": limit}
        return int(self.conn.execute(_count_behind(self.dialect), values).fetchone()[0])
