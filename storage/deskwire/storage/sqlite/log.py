"""Positions of events and deliveries on SQLite, where one process assigns them from counters in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import Message
from deskwire.engine.core.ids import IdGenerator, id_before
from deskwire.engine.events.types import EventDraft, StoredEvent, stored_event
from deskwire.engine.importing.ports import ConversationMark, MessageMark, MessageRow
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.outcome import NOT_STORED
from deskwire.storage.connection import Connection
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.conversations.conversations import ConversationWrites
from deskwire.storage.tables.conversations.imports import ImportWrites
from deskwire.storage.tables.events.events import LEVELS, ROW_COLUMNS, ROW_FIELDS, TAIL, EventWrites
from deskwire.storage.tables.reports.reports import AGENT, AUTHOR
from deskwire.storage.tables.webhooks.deliveries import (
    INSERT_DELIVERY,
    DeliveryWrites,
    delivery_at,
    delivery_row,
)

_NEWEST: Final = (
    "SELECT position, id FROM (SELECT * FROM (SELECT position, id FROM events ORDER BY position DESC LIMIT 1) "
    "UNION ALL SELECT spent_position, spent_id FROM event_window) ORDER BY position DESC LIMIT 1"
)
"""The newest assigned position and its id, even if that event was erased."""
_INSERT_EVENT: Final = f"INSERT INTO events ({ROW_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_START: Final = f"SELECT coalesce(max(position), 0) / {TAIL} * {TAIL} FROM events"
_ADD_EVENTS: Final = (
    "INSERT OR IGNORE INTO project_events (project, position) "
    "SELECT project, position FROM events WHERE position >= ? AND position < ? AND internal = 0 AND project > 0"
)
_WITHOUT_EVENT: Final = (
    "UPDATE deliveries SET status = 'dropped', reason = ?, ended_at = ? WHERE position IN ("
    "SELECT d.position FROM endpoints e JOIN deliveries d ON d.endpoint = e.rowid AND d.status = 'pending' AND d.event <= ? "
    "WHERE NOT EXISTS (SELECT 1 FROM events v WHERE v.position = d.event))"
)


class LogReads(Queries):
    """Queries on the log, whose positions are shared by all projects."""

    def event_position(self, project: int, event_id: str) -> int:
        low = found = 0
        high = self.last_event_position()
        while low < high:  # rows up to `low` are not newer, rows after `high` are
            middle = (low + high + 1) // 2
            row = self.conn.execute(
                "SELECT position, id FROM events WHERE position <= ? ORDER BY position DESC LIMIT 1",
                (middle,),
            ).fetchone()
            if row is None:
                low = found = middle
            elif row[1] <= event_id:
                # The row itself is found, because erasures and refused commits leave holes after it.
                low, found = middle, row[0]
            else:
                high = row[0] - 1
        return found

    def event_window(self, project: int) -> tuple[str | None, str | None]:
        pruned = self.conn.execute("SELECT pruned_id FROM event_window").fetchone()[0]
        return pruned, self.conn.execute(_NEWEST).fetchone()[1]

    def pruned_position(self, project: int) -> int:
        position: int = self.conn.execute("SELECT pruned_position FROM event_window").fetchone()[0]
        return position

    def last_event_position(self) -> int:
        position: int = self.conn.execute(_NEWEST).fetchone()[0]
        return position

    def delivery_position(self, project: int, delivery_id: str) -> int | None:
        """Bisect for the position of a delivery, because ids grow with positions."""
        low, high = 1, self.conn.execute("SELECT max(position) FROM deliveries").fetchone()[0] or 0
        while low <= high:
            middle = (low + high) // 2
            position, found = self.conn.execute(
                "SELECT position, id FROM deliveries WHERE position >= ? ORDER BY position LIMIT 1", (middle,)
            ).fetchone()
            if found == delivery_id:
                return int(position)
            if found < delivery_id:
                low = position + 1
            else:
                high = middle - 1
        return None

    def delivery_position_before(self, project: int, at: int) -> int:
        """Bisect for the last position before a time, because ids grow with positions and start with their time."""
        bound = id_before("dlv", at)
        low, high = 0, self.conn.execute("SELECT max(position) FROM deliveries").fetchone()[0] or 0
        while low < high:  # rows up to `low` are older, rows after `high` are not
            middle = (low + high + 1) // 2
            row = self.conn.execute(
                "SELECT position, id FROM deliveries WHERE position <= ? ORDER BY position DESC LIMIT 1",
                (middle,),
            ).fetchone()
            if row is None or row[1] < bound:
                low = middle
            else:
                high = row[0] - 1
        return low


class LogWrites(EventWrites, DeliveryWrites):
    """Appends to the log. The counters are in memory because only the writer appends.

    A rollback leaves a gap in the positions and never causes a repeat, so nothing new appears at a position that a reader
    has passed.
    """

    def start_events(self) -> None:
        """Initialize the counters from the stored events."""
        position, event_id = self.conn.execute(_NEWEST).fetchone()
        self._event_position: int = position
        self._event_ids = IdGenerator(event_id)
        self.start_feeds()

    def start_feeds(self) -> None:
        """Initialize the end of `project_events`, which a rollback may have moved back."""
        (self._added,) = self.conn.execute(_START).fetchone()

    def start_deliveries(self) -> None:
        """Initialize the counters from the stored deliveries."""
        sql = "SELECT position, id FROM deliveries ORDER BY position DESC LIMIT 1"
        row = self.conn.execute(sql).fetchone()
        self._delivery_position: int = row[0] if row else 0
        self._delivery_ids = IdGenerator(row[1] if row else None)

    def append_event(
        self,
        project: Project,
        draft: EventDraft,
        conversation: int | None,
        at: int,
        *,
        directed: bool = False,
        ticket: int | None = None,
    ) -> StoredEvent:
        self._event_position += 1
        position, event_id = self._event_position, self._event_ids.new("evt", at)
        event = stored_event(
            position, event_id, project, draft, conversation, at, directed=directed, ticket=ticket
        )
        # The values of `event_row`, without its call.
        self.conn.execute(_INSERT_EVENT, (*ROW_FIELDS(event), at, LEVELS[event.type], event.ticket))
        start = position // TAIL * TAIL
        if start > self._added:
            self.conn.execute(_ADD_EVENTS, (self._added, start))
            self._added = start
        if not directed:
            self.published.append(event)
        return event

    def add_delivery(
        self,
        endpoint: int,
        event: StoredEvent,
        ordering_key: int | None,
        previous: int | None,
        at: int,
        *,
        skipped: str | None = None,
        redelivery_of: int | None = None,
    ) -> Delivery:
        self._delivery_position += 1
        position, delivery_id = self._delivery_position, self._delivery_ids.new("dlv", at)
        delivery = delivery_at(
            position,
            delivery_id,
            endpoint,
            event,
            ordering_key,
            previous,
            at,
            redelivery=redelivery_of is not None,
        )
        self.conn.execute(INSERT_DELIVERY[self.dialect], delivery_row(delivery, skipped, redelivery_of))
        if skipped is None:
            self.deliveries.append(delivery)
        return delivery

    def note_spent(self) -> None:
        """Record the newest position, because its event may be about to be deleted."""
        self.conn.execute(f"UPDATE event_window SET scrub_due = 1, (spent_position, spent_id) = ({_NEWEST})")

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
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
            self.conn.execute("UPDATE event_window SET pruned_position = ?, pruned_id = ?", last[:2])
            if any(row[3] for row in old):  # deletion events, which contain the user id of a contact
                self.want_scrub()
            self.conn.execute(_WITHOUT_EVENT, (NOT_STORED, at, last[0]))
        return len(old)

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        rows = self.conn.execute(
            "SELECT position, created_at, status FROM deliveries ORDER BY position LIMIT ?", (limit,)
        ).fetchall()
        return self._delete([row for row in rows if row[1] < older_than and row[2] != "pending"])


MESSAGE_TIMES_BATCH_SIZE: Final = 512
"""Messages added together, at about eight pages and 0.4 ms. A report reads up to as many one by one."""

_ADD_MESSAGE_TIMES: Final = (
    f"INSERT INTO message_times SELECT project, created_at, rowid, conversation, {AUTHOR}, {AGENT} "
    "FROM messages WHERE rowid > (SELECT message FROM message_times_end) AND internal = 0"
)
_MOVE_MESSAGE_TIMES_END: Final = "UPDATE message_times_end SET message = (SELECT max(rowid) FROM messages)"
_MISSING_MESSAGE_TIMES: Final = (
    "SELECT coalesce(max(rowid), 0) - (SELECT message FROM message_times_end) FROM messages"
)


def add_untimed(connection: Connection) -> None:
    """Add all messages after `message_times_end` to the table."""
    connection.execute(_ADD_MESSAGE_TIMES)
    connection.execute(_MOVE_MESSAGE_TIMES_END)


class MessageTimes(ConversationWrites, ImportWrites):
    """Insertion of messages. `_untimed` is an upper bound of the messages missing in the table."""

    _untimed: int

    def start_message_times(self) -> None:
        """Count the missing messages, at the start and after a rollback."""
        (self._untimed,) = self.conn.execute(_MISSING_MESSAGE_TIMES).fetchone()

    def insert_message(self, conversation: int, message: Message, sequence: int | None) -> None:
        super().insert_message(conversation, message, sequence)
        self._untimed += 1
        if self._untimed >= MESSAGE_TIMES_BATCH_SIZE:
            self._add_untimed()

    def insert_imported(
        self,
        messages: Sequence[MessageRow],
        marks: Sequence[MessageMark],
        conversations: Sequence[ConversationMark],
    ) -> None:
        super().insert_imported(messages, marks, conversations)
        self._untimed += len(messages)
        if self._untimed >= MESSAGE_TIMES_BATCH_SIZE:
            self._add_untimed()

    def _add_untimed(self) -> None:
        add_untimed(self.conn)
        self._untimed = 0
