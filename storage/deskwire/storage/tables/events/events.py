"""The event log's table. Positions grow in commit order, and with them the ids.

A row whose `internal` is 1 is for agents, one with 2 for those who name its type: a query without `internal = 0` is one that
may show it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from deskwire.engine.core.values import replace
from deskwire.engine.events.types import (
    REGISTRY,
    StoredEvent,
    Topic,
    ticket_lane,
)
from deskwire.storage.dialect import differing, either
from deskwire.storage.tables.base import Changes, Queries

EVENT_COLUMNS: Final = "e.position, e.id, e.type, e.project, e.conversation, e.sequence, e.body, e.ticket"

ROW_COLUMNS: Final = "position, id, type, project, conversation, sequence, body, created_at, internal, ticket"
"""The columns that `event_row` has the values of."""

LEVELS: Final[Mapping[str, int]] = {name: kind.level for name, kind in REGISTRY.items()}
"""The values of `internal` by type."""

ROW_FIELDS: Final = attrgetter("position", "id", "type", "project", "conversation", "sequence", "body")
"""The first values of ROW_COLUMNS, of an event."""

_DELETED_CONVERSATION: Final = differing(
    sqlite="e.conversation IS NULL AND json_extract(CAST(e.body AS TEXT), '$.data.conversation.id') = :subject",
    postgres="e.about_conversation = :subject",
)
_DELETED_OF_CONTACT: Final = differing(
    sqlite="e.conversation IS NULL AND json_extract(CAST(e.body AS TEXT), '$.data.conversation.contact.userId') = :subject",
    postgres="e.about_user = :subject AND e.about_conversation IS NOT NULL",
)
_ERASED_CONTACT: Final = differing(
    sqlite="e.conversation IS NULL AND json_extract(CAST(e.body AS TEXT), '$.data.conversation.contact.userId') IS NULL "
    "AND json_extract(CAST(e.body AS TEXT), '$.data.contact.userId') = :subject",
    postgres="e.about_user = :subject AND e.about_conversation IS NULL",
)
"""A contact's own last event. SQLite finds it among those of all contacts that were erased since: its index has them together."""
_BEHIND: Final = "SELECT e.position FROM events e WHERE e.position > :after AND e.internal = 0"
_OF_CONVERSATION: Final = (
    f"{_BEHIND} AND e.conversation = (SELECT rowid FROM conversations WHERE id = :subject AND project = :project) "
    f"UNION ALL {_BEHIND} AND e.project = :project AND {{deleted_conversation}}"
)
_CONTACTS: Final = " UNION ALL ".join(  # a term for each of the partial indexes
    f"SELECT rowid FROM contacts WHERE project = :project AND user_id = :subject AND {condition}"
    for condition in ("erasing = 0", "erasing = 1", "erasing >= 2")
)
_BEFORE_IT_MOVED: Final = (
    "EXISTS (SELECT 1 FROM moved_conversations m WHERE m.conversation = e.conversation AND m.upto > e.id)"
)
_WHILE_IT_WAS_THEIRS: Final = (
    "UNION ALL SELECT e.position FROM contact k JOIN moved_conversations m ON m.contact = k.rowid "
    "JOIN events e ON e.conversation = m.conversation WHERE e.position > :after AND e.internal = 0 "
    "AND e.id >= m.since AND e.id < m.upto"
)
"""Events of conversations that were moved to another contact since, which stay on the channel of the one before."""
_OF_CONTACT: Final = (
    f"WITH contact AS ({_CONTACTS}) {_BEHIND} AND e.conversation IN (SELECT -rowid FROM contact "
    "UNION ALL SELECT v.rowid FROM contact k JOIN conversations v ON v.contact = k.rowid) "
    f"AND NOT {_BEFORE_IT_MOVED} {_WHILE_IT_WAS_THEIRS} "
    f"UNION ALL {_BEHIND} AND e.project = :project AND {{deleted_of_contact}} "
    f"UNION ALL {_BEHIND} AND {{unindexed}}e.project = :project AND {{erased_contact}}"
)
_OF_LANE: Final = {
    kind: either(
        template,
        deleted_conversation=_DELETED_CONVERSATION,
        deleted_of_contact=_DELETED_OF_CONTACT,
        erased_contact=_ERASED_CONTACT,
    )
    for kind, template in (("conversation", _OF_CONVERSATION), ("contact", _OF_CONTACT))
}
"""Positions of a lane's events; each part is found by an index."""

_NAMING: Final = differing(
    sqlite=f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.conversation = ? AND instr(e.body, ?) > 0 ORDER BY e.position",
    postgres=f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.conversation = ? AND position(CAST(? AS bytea) IN e.body) > 0 "
    "ORDER BY e.position",
)
"""The events of a conversation whose envelopes name a message."""


def of_types(types: frozenset[str]) -> tuple[dict[str, str], str]:
    """Return the values of these types by their marks, and the condition with the marks: none for no types."""
    names = {f"type{number}": name for number, name in enumerate(sorted(types))}
    return names, f" AND e.type IN ({', '.join(f':{name}' for name in names)})" if names else ""


def event_of(row: Sequence[Any]) -> StoredEvent:
    """Return the event in a row of EVENT_COLUMNS."""
    return StoredEvent(*row)


def event_row(event: StoredEvent, at: int) -> tuple[object, ...]:
    """Return the values of ROW_COLUMNS."""
    return (*ROW_FIELDS(event), at, LEVELS[event.type], event.ticket)


class EventReads(Queries):
    """Queries on the log; the methods are those of `ports.Reader`."""

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
        """Find the newest event that is not newer."""

    def confirmed_sequence(self, conversation: int, event_id: str) -> int | None:
        row = self.conn.execute(
            "SELECT max(sequence) FROM events WHERE conversation = ? AND internal = 0 AND id <= ?",
            (conversation, event_id),
        ).fetchone()
        return None if row is None else row[0]

    def lane_events(
        self, lane: Topic, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        names, wanted = of_types(types)
        values = {"project": lane.project, "after": after, "subject": lane.subject, "limit": limit, **names}
        sql = (
            f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.position IN ({_OF_LANE[lane.kind][self.dialect]})"
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
    """Erasures from the log. Whoever adds to it gives the positions: another one for each database."""

    published: list[StoredEvent]
    erased: set[int]
    redacted: set[int]
    rewritten: list[StoredEvent]

    @abstractmethod
    def note_spent(self) -> None:
        """See to it that no position is given again, whatever is deleted after this."""

    def erase_events(self, conversation: int) -> None:
        """Remove a conversation's events, also from what this commit is about to publish.

        The newest may be one of them, and its position must not be given again after a restart.
        """
        self.note_spent()
        self.conn.execute("DELETE FROM events WHERE conversation = ?", (conversation,))
        self.published[:] = [event for event in self.published if event.conversation != conversation]
        self.erased.add(conversation)

    def put_rewritten(
        self, conversation: int, message_id: str, rewritten: Callable[[bytes], bytes]
    ) -> Sequence[StoredEvent]:
        """Rewrite the conversation's envelopes that name a message, also those that this commit is about to publish."""
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
        """Remove a ticket's events, which are all internal, also from what this commit is about to publish."""
        self.note_spent()
        self.conn.execute("DELETE FROM events WHERE ticket = ?", (ticket,))
        self.published[:] = [event for event in self.published if event.ticket != ticket]
        self.erased.add(ticket_lane(ticket))
