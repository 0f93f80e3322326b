"""Tickets, their tags and their activity log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args

import orjson

from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.values import replace
from deskwire.engine.tickets.activity import TicketActivity, ticket_actor
from deskwire.engine.tickets.ticket import Priority, Ticket, TicketChange
from deskwire.storage.tables.base import Changes, Queries

PRIORITIES: Final[tuple[Priority, ...]] = get_args(Priority)
"""The priorities in ascending order; a ticket stores the index."""

TICKET: Final = (
    "SELECT t.id, t.project, t.title, t.created_at, t.updated_at, t.activity, t.rowid, t.description, t.type, t.status, "
    "t.priority, t.processing_user, t.processing_team, t.snoozed_until, t.conversation, t.contact, k.id, t.tags "
    "FROM tickets t LEFT JOIN contacts k ON k.rowid = t.contact"
)
_PRIORITY: Final = 10
_MUTABLE: Final = (
    "title", "description", "type", "status", "priority", "processing_user", "processing_team", "snoozed_until",
    "conversation", "contact", "tags", "updated_at", "activity",
)  # fmt: skip
_INSERT: Final = (
    f"INSERT INTO tickets (id, project, created_at, {', '.join(_MUTABLE)}) "
    f"VALUES (?, ?, ?, {', '.join('?' for _ in _MUTABLE)})"
)
_NO_ROW: Final = (1 << 63) - 1


def ticket_of(row: Sequence[Any]) -> Ticket:
    """Return the ticket in a row of TICKET."""
    fields = [*row[:-1], tuple(orjson.loads(row[-1]))]
    fields[_PRIORITY] = PRIORITIES[row[_PRIORITY]]
    return Ticket(*fields)


class TicketReads(Queries):
    """Queries on tickets; the methods are those of `tickets.ports.TicketReader`."""

    def ticket(self, project: int, ticket_id: str) -> Ticket | None:
        row = self.conn.execute(f"{TICKET} WHERE t.id = ? AND t.project = ?", (ticket_id, project)).fetchone()
        return None if row is None else ticket_of(row)

    def ticket_activity(self, ticket: int, before: int | None, limit: int) -> Sequence[TicketActivity]:
        rows = self.conn.execute(
            "SELECT id, at, user_id, user_name, action, changes, rowid FROM ticket_activity "
            "WHERE ticket = ? AND rowid < ? ORDER BY rowid DESC LIMIT ?",
            (ticket, before or _NO_ROW, limit),
        )
        return [_activity_of(row) for row in rows]

    def next_wake_up(self) -> int | None:
        row = self.conn.execute(
            "SELECT snoozed_until FROM tickets WHERE snoozed_until IS NOT NULL ORDER BY snoozed_until LIMIT 1"
        ).fetchone()
        return None if row is None else int(row[0])

    def snoozed_ticket(self, ticket_id: str) -> Ticket | None:
        row = self.conn.execute(
            f"{TICKET} WHERE t.id = ? AND t.snoozed_until IS NOT NULL", (ticket_id,)
        ).fetchone()
        return None if row is None else ticket_of(row)

    def snoozed_tickets(self, until: int, limit: int) -> Sequence[Ticket]:
        rows = self.conn.execute(
            f"{TICKET} WHERE t.snoozed_until <= ? ORDER BY t.snoozed_until LIMIT ?", (until, limit)
        )
        return [ticket_of(row) for row in rows]

    def tickets_of_team(self, team_id: str, limit: int) -> Sequence[Ticket]:
        rows = self.conn.execute(f"{TICKET} WHERE t.processing_team = ? LIMIT ?", (team_id, limit))
        return [ticket_of(row) for row in rows]


class TicketWrites(Changes):
    """Changes of tickets; the methods are those of `tickets.ports.TicketTransaction`."""

    due: list[int]

    def insert_ticket(self, ticket: Ticket) -> Ticket:
        values = (ticket.id, ticket.project, ticket.created_at, *_mutable(ticket))
        rowid = self.inserted(_INSERT, values)
        stored = replace(ticket, rowid=rowid)
        self._tag(stored, ticket.tags)
        self._note_snooze(None, stored)
        return stored

    def save_ticket(self, before: Ticket, after: Ticket) -> None:
        columns = zip(_MUTABLE, _mutable(before), _mutable(after), strict=True)
        changed = {name: new for name, old, new in columns if new != old}
        # Only changed columns: SQLite writes every index of an assigned column, even if the value stays.
        named = ", ".join(f"{name} = ?" for name in changed)
        self.conn.execute(f"UPDATE tickets SET {named} WHERE rowid = ?", (*changed.values(), after.rowid))
        if after.tags != before.tags:
            self._untag(before, set(before.tags) - set(after.tags))
            self._tag(after, set(after.tags) - set(before.tags))
        self._note_snooze(before.snoozed_until, after)

    def insert_activity(self, ticket: int, entry: TicketActivity) -> None:
        changes = orjson.dumps([[each.field, each.before, each.after] for each in entry.changes]).decode()
        self.conn.execute(
            "INSERT INTO ticket_activity (id, ticket, at, user_id, user_name, action, changes) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (entry.id, ticket, entry.at, entry.by.id, entry.by.name, entry.action, changes),
        )

    def touch_ticket(self, ticket_id: str, at: int) -> None:
        self.conn.execute("UPDATE tickets SET activity = ?1 WHERE id = ?2 AND activity < ?1", (at, ticket_id))

    def erase_ticket_rows(self, ticket: Ticket) -> None:
        """Delete the ticket, its tags and its log."""
        self.want_scrub()
        self.conn.execute("DELETE FROM ticket_activity WHERE ticket = ?", (ticket.rowid,))
        self._untag(ticket, ticket.tags)
        self.conn.execute("DELETE FROM tickets WHERE rowid = ?", (ticket.rowid,))

    def tickets_of(self, contact: int, limit: int) -> Sequence[Ticket]:
        rows = self.conn.execute(f"{TICKET} WHERE t.contact = ? LIMIT ?", (contact, limit)).fetchall()
        return [ticket_of(row) for row in rows]

    def _note_snooze(self, before: int | None, ticket: Ticket) -> None:
        if ticket.snoozed_until is not None and ticket.snoozed_until != before:
            self.due.append(ticket.snoozed_until)

    def _tag(self, ticket: Ticket, tags: Sequence[str] | set[str]) -> None:
        rows = ((ticket.project, tag, ticket.rowid, tag_key(tag)) for tag in tags)
        self.conn.executemany(
            "INSERT INTO ticket_tags (project, tag, ticket, folded) VALUES (?, ?, ?, ?)", rows
        )

    def _untag(self, ticket: Ticket, tags: Sequence[str] | set[str]) -> None:
        rows = ((ticket.project, tag_key(tag), ticket.rowid) for tag in tags)
        self.conn.executemany("DELETE FROM ticket_tags WHERE (project, folded, ticket) = (?, ?, ?)", rows)


def _mutable(ticket: Ticket) -> tuple[Any, ...]:
    return (
        ticket.title,
        ticket.description,
        ticket.type,
        ticket.status,
        PRIORITIES.index(ticket.priority),
        ticket.processing_user,
        ticket.processing_team,
        ticket.snoozed_until,
        ticket.conversation_id,
        ticket.contact,
        orjson.dumps(ticket.tags).decode(),
        ticket.updated_at,
        ticket.activity_at,
    )


def _activity_of(row: Sequence[Any]) -> TicketActivity:
    entry_id, at, user_id, user_name, action, changes, rowid = row
    actor = ticket_actor(user_id, user_name)
    return TicketActivity(
        entry_id, at, actor, action, [TicketChange(*each) for each in orjson.loads(changes)], rowid
    )
