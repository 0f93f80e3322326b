"""Queries on the event log. Positions grow in commit order, and ids with them.

The column `internal` is the level of the event's audience: 0 for `all`, 1 for `agents`, 2 for `named`. A query without
`internal = 0` may return internal events.

A project's events by position are a range of positions on PostgreSQL. SQLite has an index for each level; the one for level 0 is
a table, `project_events`, to which events are added `TAIL` positions at a time (ADR 4). Newer events are found in the log itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from deskwire.engine.core.values import replace
from deskwire.engine.events.types import (
    REGISTRY,
    StoredEvent,
    Topic,
    ticket_lane,
)
from deskwire.storage.dialect import POSTGRES, SQLITE, Dialect, differing, either
from deskwire.storage.tables.base import Changes, Queries

EVENT_COLUMNS: Final = "e.position, e.id, e.type, e.project, e.conversation, e.sequence, e.body, e.ticket"

# The columns for the values of `event_row`.
ROW_COLUMNS: Final = "position, id, type, project, conversation, sequence, body, created_at, internal, ticket"

LEVELS: Final[Mapping[str, int]] = {name: kind.level for name, kind in REGISTRY.items()}  # `internal` by type

# The first values of ROW_COLUMNS, of an event.
ROW_FIELDS: Final = attrgetter("position", "id", "type", "project", "conversation", "sequence", "body")

_DELETED_CONVERSATION: Final = differing(
    sqlite="e.conversation IS NULL AND json_extract(CAST(e.body AS TEXT), '$.data.conversation.id') = :subject",
    postgres="e.about_conversation = :subject",
)
_DELETED_OF_CONTACT: Final = differing(
    sqlite="e.conversation IS NULL AND json_extract(CAST(e.body AS TEXT), '$.data.conversation.contact.userId') = :subject",
    postgres="e.about_user = :subject AND e.about_conversation IS NOT NULL",
)
# A contact's own last event, after its erasure.
_ERASED_CONTACT: Final = differing(
    sqlite="e.conversation IS NULL AND +json_extract(CAST(e.body AS TEXT), '$.data.conversation.contact.userId') IS NULL "
    "AND json_extract(CAST(e.body AS TEXT), '$.data.contact.userId') = :subject",
    postgres="e.about_user = :subject AND e.about_conversation IS NULL",
)
_AFTER: Final = "SELECT e.position FROM events e WHERE e.position > :after AND e.internal = 0"
_OF_CONVERSATION: Final = (
    f"{_AFTER} AND e.conversation = (SELECT rowid FROM conversations WHERE id = :subject AND project = :project) "
    f"UNION ALL {_AFTER} AND e.project = :project AND {{deleted_conversation}}"
)
_CONTACTS: Final = " UNION ALL ".join(  # a term for each of the partial indexes
    f"SELECT rowid FROM contacts WHERE project = :project AND user_id = :subject AND {condition}"
    for condition in ("erasing = 0", "erasing = 1", "erasing >= 2")
)
_BEFORE_IT_MOVED: Final = (
    "EXISTS (SELECT 1 FROM moved_conversations m WHERE m.conversation = e.conversation AND m.upto > e.id)"
)
# Earlier events of conversations that were moved to another contact; they stay on the previous contact's channel.
_WHILE_IT_WAS_THEIRS: Final = (
    # CROSS JOIN keeps SQLite from beginning with all newer events.
    "UNION ALL SELECT e.position FROM contact k CROSS JOIN moved_conversations m CROSS JOIN events e "
    "WHERE m.contact = k.rowid AND e.conversation = m.conversation AND e.position > :after AND e.internal = 0 "
    "AND e.id >= m.since AND e.id < m.upto"
)
_OF_CONTACT: Final = (
    f"WITH contact AS ({_CONTACTS}) {_AFTER} AND e.conversation IN (SELECT -rowid FROM contact "
    "UNION ALL SELECT v.rowid FROM contact k JOIN conversations v ON v.contact = k.rowid) "
    f"AND NOT {_BEFORE_IT_MOVED} {_WHILE_IT_WAS_THEIRS} "
    f"UNION ALL {_AFTER} AND e.project = :project AND {{deleted_of_contact}} "
    f"UNION ALL {_AFTER} AND e.project = :project AND {{erased_contact}}"
)
# Positions of a topic's events; an index finds each part.
_OF_TOPIC: Final = {
    kind: either(
        template,
        deleted_conversation=_DELETED_CONVERSATION,
        deleted_of_contact=_DELETED_OF_CONTACT,
        erased_contact=_ERASED_CONTACT,
    )
    for kind, template in (("conversation", _OF_CONVERSATION), ("contact", _OF_CONTACT))
}

# The events of a conversation whose envelopes contain the id of a message.
_NAMING: Final = differing(
    sqlite=f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.conversation = ? AND instr(e.body, ?) > 0 ORDER BY e.position",
    postgres=f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.conversation = ? AND position(CAST(? AS bytea) IN e.body) > 0 "
    "ORDER BY e.position",
)


def of_types(types: frozenset[str]) -> tuple[dict[str, str], str]:
    """Return the parameters for these types, and the SQL condition that uses them; both are empty for no types."""
    names = {f"type{number}": name for number, name in enumerate(sorted(types))}
    return names, f" AND e.type IN ({', '.join(f':{name}' for name in names)})" if names else ""


def event_of(row: Sequence[Any]) -> StoredEvent:
    """Return the event in a row of EVENT_COLUMNS."""
    return StoredEvent(*row)


def event_row(event: StoredEvent, at: int) -> tuple[object, ...]:
    """Return the values of ROW_COLUMNS."""
    return (*ROW_FIELDS(event), at, LEVELS[event.type], event.ticket)


class EventReads(Queries):
    """Queries on the log; the methods implement `ports.Reader`."""

    def conversation_events(self, conversation: int, after: int, limit: int) -> Sequence[bytes]:
        rows = self.conn.execute(
            "SELECT body FROM events WHERE conversation = ? AND sequence > ? AND internal = 0 "
            "ORDER BY sequence LIMIT ?",
            (conversation, after, limit),
        )
        return [row[0] for row in rows]

    def event(self, project: int, event_id: str) -> StoredEvent | None:
        row = self.conn.execute(
            f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.position = ? AND e.id = ? AND e.project = ?",
            (self.event_position(project, event_id), event_id, project),
        ).fetchone()
        return None if row is None else event_of(row)

    @abstractmethod
    def event_position(self, project: int, event_id: str) -> int:
        """Return the position of the newest event up to this id."""

    def confirmed_sequence(self, conversation: int, event_id: str) -> int | None:
        row = self.conn.execute(
            "SELECT max(sequence) FROM events WHERE conversation = ? AND internal = 0 AND id <= ?",
            (conversation, event_id),
        ).fetchone()
        return None if row is None else row[0]

    def topic_events(
        self, topic: Topic, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        names, wanted = of_types(types)
        values = {"project": topic.project, "after": after, "subject": topic.subject, "limit": limit, **names}
        sql = (
            f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.position IN ({_OF_TOPIC[topic.kind][self.dialect]})"
            f"{wanted} ORDER BY e.position LIMIT :limit"
        )
        return [event_of(row) for row in self.conn.execute(sql, values)]

    def is_event_at(self, project: int, position: int, event_id: str) -> bool:
        row = self.conn.execute(
            "SELECT 1 FROM events WHERE position = ? AND id = ? AND project = ?",
            (position, event_id, project),
        ).fetchone()
        return row is not None


class EventWrites(Changes):
    """Erasures from the log. Each database has its own subclass, which assigns the positions of new events."""

    published: list[StoredEvent]
    erased: set[int]
    redacted: set[int]
    rewritten: list[StoredEvent]

    @abstractmethod
    def note_spent(self) -> None:
        """Record the newest position, so that it is not assigned again after deletions."""

    def erase_events(self, conversation: int) -> None:
        """Delete a conversation's events, and remove them from the events that this commit publishes."""
        # The newest event may be among them, and its position must not be assigned again after a restart.
        self.note_spent()
        self.conn.execute("DELETE FROM events WHERE conversation = ?", (conversation,))
        self.published[:] = [event for event in self.published if event.conversation != conversation]
        self.erased.add(conversation)

    def put_rewritten(
        self, conversation: int, message_id: str, rewritten: Callable[[bytes], bytes]
    ) -> Sequence[StoredEvent]:
        """Rewrite the conversation's envelopes that contain a message's id, including those of the events that this commit publishes."""
        rows = self.conn.execute(_NAMING[self.dialect], (conversation, message_id.encode())).fetchall()
        events = [replace(event, body=rewritten(event.body)) for event in map(event_of, rows)]
        for event in events:
            self.conn.execute("UPDATE events SET body = ? WHERE position = ?", (event.body, event.position))
        bodies = {event.position: event.body for event in events}
        self.published[:] = [
            replace(event, body=bodies.get(event.position, event.body)) for event in self.published
        ]
        self.rewritten += events
        return events

    def erase_ticket_events(self, ticket: int) -> None:
        """Delete a ticket's events, which are all internal, and remove them from the events that this commit publishes."""
        self.note_spent()
        self.conn.execute("DELETE FROM events WHERE ticket = ?", (ticket,))
        self.published[:] = [event for event in self.published if event.ticket != ticket]
        self.erased.add(ticket_lane(ticket))


# Positions that SQLite adds to `project_events` at a time. A query reads at most that many rows of the log,
# in about 10 µs.
TAIL: Final = 64

_LARGEST: Final = (1 << 63) - 1
_COLUMNS: Final = EVENT_COLUMNS.removeprefix("e.position, ")
# The position before which `project_events` is complete. It may have later events, if the newest ones were erased.
ADDED: Final = f"(SELECT max(position) / {TAIL} * {TAIL} FROM events)"
_IN_TABLE: Final = f"l.project = :project AND l.position {{bound}} AND +l.position < {ADDED}"
# SQLite may search by either of two bounds; a `+` before a column makes it search by the other one.
_IN_TAIL: Final = (
    f"e.position >= {ADDED} AND +e.position {{bound}} AND e.project = :project AND e.internal = 0"
)
_COUNTED: Final = (f"project_events l WHERE {_IN_TABLE}", f"events e WHERE {_IN_TAIL}")
_PUBLISHED: Final = (
    f"SELECT l.position AS position, {{columns}} FROM project_events l CROSS JOIN events e ON e.position = l.position WHERE {_IN_TABLE}",
    f"SELECT e.position, {{columns}} FROM events e WHERE {_IN_TAIL}",
)
_OF_LEVELS: Final = (
    "events e WHERE e.project = :project AND e.position {bound} AND e.internal {levels} {of_project}"
)
_NEWEST_OF_CONVERSATION: Final = (
    f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.conversation = "
    "(SELECT rowid FROM conversations WHERE id = :subject AND project = :project) "
    "AND e.position < :before{wanted} ORDER BY e.position DESC LIMIT :limit"
)


def _parts(dialect: Dialect, levels: Sequence[int], columns: str, bound: str, wanted: str) -> list[str]:
    """Return the queries that together find the events of these levels, each one by an index.

    SQLite has an index of each level. PostgreSQL has one of all levels, by position; a query of each level would read past the
    events of the others, so there is one query of all.

    Args:
        columns: the columns after the position.
        bound: a bound of the position, such as `> :after`.
        wanted: an additional condition, or an empty text.
    """
    of_levels = (f"SELECT e.position, {{columns}} FROM {_OF_LEVELS}",)
    of_project = dialect.text("{of_project}")
    together = (
        [f"IN ({', '.join(map(str, levels))})"] if dialect is POSTGRES else [f"= {level}" for level in levels]
    )
    return [
        part.format(columns=columns, bound=bound, levels=chosen, of_project=of_project) + wanted
        for chosen in together
        for part in (_PUBLISHED if dialect is SQLITE and chosen == "= 0" else of_levels)
    ]


@lru_cache(maxsize=256)
def _after(dialect: Dialect, levels: tuple[int, ...], wanted: str) -> str:
    """Return the query for up to `:limit` events after `:after`."""
    parts = _parts(dialect, levels, _COLUMNS, "> :after", wanted)
    return f"{' UNION ALL '.join(parts)} ORDER BY position LIMIT :limit"


@lru_cache(maxsize=256)
def _newest(dialect: Dialect, levels: tuple[int, ...], columns: str, bound: str, wanted: str = "") -> str:
    """Return the query for up to `:limit` events, newest first."""
    parts = _parts(dialect, levels, columns, bound, wanted)
    return f"{' UNION ALL '.join(parts)} ORDER BY position DESC LIMIT :limit"


@lru_cache(maxsize=2)
def _count_query(dialect: Dialect) -> str:
    """Return the query that counts the events after `:position`, up to `:limit`."""
    parts = _COUNTED if dialect is SQLITE else (_OF_LEVELS,)
    each = " UNION ALL ".join(f"SELECT 1 FROM {part}" for part in parts)
    each = each.format(bound="> :position", levels="= 0", of_project=dialect.text("{of_project}"))
    return f"SELECT count(*) FROM ({each} LIMIT :limit) AS newer"


def _levels(types: frozenset[str]) -> tuple[int, ...]:
    return tuple(sorted({REGISTRY[name].level for name in types}))


class FeedReads(Queries):
    """Queries on a project's events by position; the methods implement `ports.Reader`."""

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        return self._select_after((0,), project, after, limit, types)

    def agents_events(self, project: int, after: int, limit: int) -> Sequence[StoredEvent]:
        return self._select_after((0, 1), project, after, limit, frozenset())

    def named_events(
        self, project: int, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        return self._select_after(_levels(types), project, after, limit, types)

    def _select_after(
        self, levels: tuple[int, ...], project: int, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        names, wanted = of_types(types)
        values = {"project": project, "after": after, "limit": limit, **names}
        rows = self.conn.execute(_after(self.dialect, levels, wanted), values)
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

    def newest_id_of_any_event(self, project: int) -> str | None:
        newest = self._newest_event((0, 1, 2), project, _LARGEST)
        return None if newest is None else newest[1]

    def _newest_event(self, levels: tuple[int, ...], project: int, position: int) -> tuple[int, str] | None:
        """Return position and id of the newest event of these levels up to a position."""
        values = {"project": project, "position": position, "limit": 1}
        sql = _newest(self.dialect, levels, "e.id", "<= :position")
        row: tuple[int, str] | None = self.conn.execute(sql, values).fetchone()
        return row

    def count_events_after(self, project: int, position: int, limit: int) -> int:
        values = {"project": project, "position": position, "limit": limit}
        return int(self.conn.execute(_count_query(self.dialect), values).fetchone()[0])
