"""The event log's table. Positions grow in commit order, and with them the ids.

A row that is `internal` is for agents alone: a query without `internal = 0` is one that may show it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.ids import Mint
from deskwire.engine.events.types import AGENTS, Draft, StoredEvent, Topic, encode_envelope, topics_of
from deskwire.storage.scrub import ScrubWish

EVENT_COLUMNS: Final = "e.position, e.id, e.type, e.project, e.conversation, e.sequence, e.body"

NO_PROJECT: Final = 0
"""Stands in the row of an event that is for one endpoint alone, so that no feed finds it."""

_NEWEST: Final = (
    "SELECT position, id FROM (SELECT * FROM (SELECT position, id FROM events ORDER BY position DESC LIMIT 1) "
    "UNION ALL SELECT spent_position, spent_id FROM event_window) ORDER BY position DESC LIMIT 1"
)
"""The newest position ever given and its id, also if that event was erased."""

_DELETION: Final = (
    "SELECT position FROM events WHERE conversation IS NULL AND project = :project AND position > :after AND internal = 0 "
    "AND json_extract(CAST(body AS TEXT), '$.data.conversation.{}') = :subject"
)
_ERASURE: Final = (
    "SELECT position FROM events WHERE conversation IS NULL AND +project = :project AND position > :after AND internal = 0 "
    "AND json_extract(CAST(body AS TEXT), '$.data.conversation.contact.userId') IS NULL "
    "AND json_extract(CAST(body AS TEXT), '$.data.contact.userId') = :subject"
)
"""A contact's own last event, found among those of all contacts that were erased since: the index has them together."""
_OF_CONVERSATION: Final = (
    "SELECT position FROM events WHERE position > :after AND internal = 0 AND conversation = "
    "(SELECT rowid FROM conversations WHERE id = :subject AND project = :project) "
    f"UNION ALL {_DELETION.format('id')}"
)
_CONTACTS: Final = " UNION ALL ".join(  # a term for each of the two partial indexes
    f"SELECT rowid FROM contacts WHERE project = :project AND user_id = :subject AND erasing = {erasing}"
    for erasing in (0, 1)
)
_OF_CONTACT: Final = (
    f"WITH contact AS ({_CONTACTS}) "
    "SELECT position FROM events WHERE position > :after AND internal = 0 AND conversation IN (SELECT -rowid FROM contact "
    "UNION ALL SELECT v.rowid FROM contact k JOIN conversations v ON v.contact = k.rowid) "
    f"UNION ALL {_DELETION.format('contact.userId')} UNION ALL {_ERASURE}"
)
_OF_AGENTS: Final = " UNION ALL ".join(  # a term for each of the two partial indexes, merged
    f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.project = :project AND e.position > :after AND e.internal = {internal}"
    for internal in (0, 1)
)
_NEWEST_OF_PROJECT: Final = " UNION ALL ".join(
    "SELECT * FROM (SELECT position, id FROM events "
    f"WHERE project = :project AND internal = {internal} ORDER BY position DESC LIMIT 1)"
    for internal in (0, 1)
)
_OF_LANE: Final = {"conversation": _OF_CONVERSATION, "contact": _OF_CONTACT}
"""Positions of a lane's events; each part is found by an index."""


def event_of(row: Sequence[Any]) -> StoredEvent:
    """Return the event in a row of EVENT_COLUMNS."""
    return StoredEvent(*row)


class EventReads:
    """Queries on the log; the methods are those of `ports.Reader`."""

    conn: sqlite3.Connection

    def conversation_events(self, conversation: int, after: int, limit: int) -> Sequence[bytes]:
        rows = self.conn.execute(
            "SELECT body FROM events WHERE conversation = ? AND sequence > ? AND internal = 0 "
            "ORDER BY sequence LIMIT ?",
            (conversation, after, limit),
        )
        return [row[0] for row in rows]

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        condition = "e.project = :project AND e.position > :after AND e.internal = 0"
        return self._chosen(condition, limit, types, project, after)

    def agents_events(self, project: int, after: int, limit: int) -> Sequence[StoredEvent]:
        rows = self.conn.execute(
            f"{_OF_AGENTS} ORDER BY position LIMIT :limit",
            {"project": project, "after": after, "limit": limit},
        )
        return [event_of(row) for row in rows]

    def lane_events(
        self, lane: Topic, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        positions = f"e.position IN ({_OF_LANE[lane.kind]})"
        return self._chosen(positions, limit, types, lane.project, after, lane.subject)

    def _chosen(
        self, where: str, limit: int, types: frozenset[str], project: int, after: int, subject: str = ""
    ) -> Sequence[StoredEvent]:
        values: dict[str, object] = {"project": project, "after": after, "subject": subject, "limit": limit}
        names = {f"type{number}": name for number, name in enumerate(types)}
        wanted = f"AND e.type IN ({', '.join(f':{name}' for name in names)})" if names else ""
        sql = f"SELECT {EVENT_COLUMNS} FROM events e WHERE {where} {wanted} ORDER BY e.position LIMIT :limit"
        return [event_of(row) for row in self.conn.execute(sql, values | names)]

    def event_position(self, event_id: str) -> int:
        low, high = 0, self.last_event_position()
        while low < high:  # everything up to `low` is not newer; everything behind `high` is
            middle = (low + high + 1) // 2
            row = self.conn.execute(
                "SELECT position, id FROM events WHERE position <= ? ORDER BY position DESC LIMIT 1",
                (middle,),
            ).fetchone()
            if row is None or row[1] <= event_id:
                low = middle
            else:
                high = row[0] - 1
        return low

    def event_window(self) -> tuple[str | None, str | None]:
        pruned = self.conn.execute("SELECT pruned_id FROM event_window").fetchone()[0]
        return pruned, self.conn.execute(_NEWEST).fetchone()[1]

    def last_event_position(self) -> int:
        position: int = self.conn.execute(_NEWEST).fetchone()[0]
        return position

    def event_id_at(self, project: int, position: int) -> str | None:
        row = self.conn.execute(
            "SELECT id FROM events WHERE project = ? AND position <= ? AND internal = 0 "
            "ORDER BY position DESC LIMIT 1",
            (project, position),
        ).fetchone()
        return None if row is None else row[0]

    def newest_event(self, project: int) -> tuple[int, str] | None:
        row: tuple[int, str] | None = self.conn.execute(
            f"SELECT position, id FROM ({_NEWEST_OF_PROJECT}) ORDER BY position DESC LIMIT 1",
            {"project": project},
        ).fetchone()
        return row

    def newest_event_id(self, project: int) -> str | None:
        newest = self.newest_event(project)
        return None if newest is None else newest[1]

    def is_event_at(self, project: int, position: int, event_id: str) -> bool:
        row = self.conn.execute(
            "SELECT 1 FROM events WHERE position = ? AND id = ? AND project = ?",
            (position, event_id, project),
        ).fetchone()
        return row is not None

    def events_behind(self, project: int, position: int, limit: int) -> int:
        row = self.conn.execute(
            "SELECT count(*) FROM (SELECT 1 FROM events WHERE project = ? AND position > ? AND internal = 0 LIMIT ?)",
            (project, position, limit),
        ).fetchone()
        return int(row[0])


class EventWrites(ScrubWish):
    """Additions to the log. The counters live here, as the writer is all that ever adds.

    A rolled back commit leaves a hole in the positions, never a repeat: a reader that has passed a
    position will not find something new there.
    """

    conn: sqlite3.Connection
    published: list[StoredEvent]
    erased: set[int]

    def start_events(self) -> None:
        """Go on behind what is stored."""
        position, event_id = self.conn.execute(_NEWEST).fetchone()
        self._event_position: int = position
        self._event_ids = Mint(event_id)

    def append_event(
        self,
        project: Project,
        draft: Draft,
        conversation: int | None,
        at: int,
        *,
        directed: bool = False,
        ticket: int | None = None,
    ) -> StoredEvent:
        internal = draft.type in AGENTS
        assert not (internal and (directed or draft.sequence is not None)), (
            "what agents are told has no number"
        )
        self._event_position += 1
        event_id = self._event_ids.new("evt", at)
        event = StoredEvent(
            self._event_position,
            event_id,
            draft.type,
            NO_PROJECT if directed else project.rowid,
            conversation,
            draft.sequence,
            encode_envelope(draft, event_id, project.id, at),
            () if directed or internal else topics_of(project.rowid, draft.data),
        )
        self.conn.execute(
            "INSERT INTO events (position, id, type, project, conversation, sequence, body, created_at, internal, ticket) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                event.position,
                event.id,
                event.type,
                event.project,
                event.conversation,
                event.sequence,
                event.body,
                at,
                int(internal),
                ticket,
            ),
        )
        if not directed:
            self.published.append(event)
        return event

    def erase_events(self, conversation: int) -> None:
        """Remove a conversation's events, also from what this commit is about to publish.

        The newest may be one of them, and its position must not be given again after a restart.
        """
        self._note_spent()
        self.conn.execute("DELETE FROM events WHERE conversation = ?", (conversation,))
        self.published[:] = [event for event in self.published if event.conversation != conversation]
        self.erased.add(conversation)

    def erase_ticket_events(self, ticket: int) -> None:
        """Remove a ticket's events, which are all internal."""
        self._note_spent()
        self.conn.execute("DELETE FROM events WHERE ticket = ?", (ticket,))

    def _note_spent(self) -> None:
        self.conn.execute(f"UPDATE event_window SET scrub_due = 1, (spent_position, spent_id) = ({_NEWEST})")

    def prune_event_rows(self, older_than: int, limit: int) -> tuple[int, int]:
        """Prune as `prune_events` says. Return the number of events, and the last position looked at."""
        newest = self.conn.execute("SELECT max(position) FROM events").fetchone()[0]
        rows = self.conn.execute(
            "SELECT position, id, created_at, conversation IS NULL AND internal = 0 FROM events "
            "WHERE position < ? ORDER BY position LIMIT ?",
            (newest or 0, limit),
        ).fetchall()
        old = [row for row in rows if row[2] < older_than]
        if old:
            last = old[-1]
            self.conn.execute(
                "DELETE FROM events WHERE position <= ? AND created_at < ?", (last[0], older_than)
            )
            self.conn.execute("UPDATE event_window SET pruned_id = ?", (last[1],))
            if any(row[3] for row in old):  # deletions, each with the user id of a contact
                self.want_scrub()
        return len(old), old[-1][0] if old else 0
