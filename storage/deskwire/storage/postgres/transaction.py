"""The store's reader and transaction on PostgreSQL, which run each statement on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import orjson

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.ports import Claimed
from deskwire.engine.conversations.writing_changes import WritingChange
from deskwire.engine.events.types import (
    ERASURE,
    NO_PROJECT,
    REDACTION,
    EventDraft,
    StoredEvent,
    contact_lane,
    stored_event,
    ticket_lane,
)
from deskwire.engine.idempotency.idempotent_requests import InProgress, StoredResponse
from deskwire.engine.ports import Commit
from deskwire.engine.tickets.ticket import Ticket
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.commit.positions import (
    ENDPOINTS_VERSION,
    SAVE_HEAD,
    LogHead,
    delivery_values,
    event_values,
    lock_head,
    project_of,
)
from deskwire.storage.postgres.driver.errors import DatabaseError
from deskwire.storage.postgres.log import FollowerReads, LogReads
from deskwire.storage.postgres.retention import LogWrites
from deskwire.storage.postgres.schema.days import TODAY
from deskwire.storage.postgres.search.lookup import PostgresSearchReads
from deskwire.storage.postgres.search.tickets import PostgresTicketReads, PostgresTicketWrites
from deskwire.storage.tables.all import AllReads, AllWrites
from deskwire.storage.tables.events.events import ROW_COLUMNS
from deskwire.storage.tables.webhooks.deliveries import INSERT_DELIVERY, delivery_at

INSERT_EVENT: Final = (
    f"INSERT INTO events ({ROW_COLUMNS}, about_conversation, about_user, day) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Its day is that of its time and not of its id, because the id may be as old as the project's newest event.
INSERT_NOTE: Final = (
    "INSERT INTO events (position, id, project, type, body, internal, created_at, day) VALUES (?, ?, ?, ?, ?, 1, "
    f"CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint), ({TODAY}))"
)

# The words that triggers have left in this transaction (schema/triggers.py).
CHANGES: Final = "SELECT current_setting('deskwire.changes', true)"

KEEP: Final = "INSERT INTO kept_answers (name, fingerprint, subject, sealed, at) VALUES (?, ?, ?, ?, ?)"
GENERATION: Final = "SELECT generation FROM couriers WHERE endpoint = ? FOR SHARE"
_PROJECT_OF: Final = "SELECT project FROM contacts WHERE rowid = ?"
_KEPT: Final = (
    "SELECT pg_try_advisory_xact_lock(CAST(? AS bigint)), k.name, k.fingerprint, k.subject, k.sealed, k.at "
    "FROM kept_answers k RIGHT JOIN (SELECT 1) AS one (n) ON k.name = ?"
)
_HELD: Final = "SELECT rowid FROM contacts WHERE rowid = ANY(CAST(? AS bigint[])) ORDER BY rowid FOR UPDATE"
_KEPT_CONTACT: Final = "SELECT rowid FROM contacts WHERE rowid = ? FOR KEY SHARE"
_LOCKED: Final = "SELECT rowid FROM conversations WHERE rowid = ? FOR UPDATE"
_LOCKED_OF_CONTACT: Final = "SELECT rowid FROM conversations WHERE contact = ? ORDER BY rowid FOR UPDATE"
_LOCKED_BY_ID: Final = "SELECT rowid FROM conversations WHERE id = ? AND project = ? FOR UPDATE"


class EndpointsMoved(DatabaseError):
    """The endpoints were changed after events were addressed, so the transaction is run again."""

    def __init__(self) -> None:
        super().__init__("40001", "the endpoints were changed")


class PostgresReader(PostgresSearchReads, PostgresTicketReads, FollowerReads, LogReads, AllReads):
    """`ports.Reader` on one connection."""

    dialect = POSTGRES

    def __init__(self, connection: Connection) -> None:
        self.conn = connection


class PostgresTransaction(PostgresReader, PostgresTicketWrites, LogWrites, AllWrites):
    """`ports.Transaction` on a connection with an open transaction; used once.

    Its results are collected until `commit` returns them, after `save_heads`.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.published: list[StoredEvent] = []
        self.deliveries: list[Delivery] = []
        self.erased: set[int] = set()
        self.redacted: set[int] = set()
        self.rewritten: list[StoredEvent] = []
        self.due: list[int] = []
        self.runs_due: list[int] = []
        self.snoozes_due: list[int] = []
        self.held_due: list[int] = []
        self.bulk_due: list[int] = []
        self.writing: list[WritingChange] = []
        self._heads: dict[int, LogHead] = {}
        self._endpoint_versions: dict[int, int] = {}
        self._locked_rowids: set[int] = set()
        self.clear_claims()
        self.start_endpoints()

    def save_heads(self) -> None:
        """Store the new ends of the logs. Must be the last statement before COMMIT."""
        for head in self._heads.values():
            self.conn.execute(SAVE_HEAD, head.values())

    def commit(self, changes: str | None = None) -> Commit:
        """Return the changes for the rest of the program; `changes` is the result of CHANGES."""
        words = (changes or "").split()
        return Commit(
            tuple(self.published),
            tuple(self.deliveries),
            frozenset(self.erased),
            tuple(self.due),
            tuple(self.runs_due),
            tuple(self.snoozes_due),
            "callers" in words,
            tuple(word.partition(":")[2] for word in words if word.startswith("session:")),
            "people" in words,
            tuple(head.advance for head in self._heads.values()),
            frozenset(self.redacted),
            tuple(self.rewritten),
            tuple(self.held_due),
            tuple(self.writing),
            tuple(self.bulk_due),
        )

    # Contacts: a transaction that refers to a contact locks it against merging and erasure until it commits.
    # Other changes of the contact do not wait.

    contact_lock = " FOR KEY SHARE"
    profile_lock = " FOR NO KEY UPDATE OF k"

    def lock_channels(self, project: int) -> None:
        self.conn.execute("SELECT rowid FROM projects WHERE rowid = ? FOR NO KEY UPDATE", (project,))

    def lock_contacts(self, *contacts: int) -> None:
        self.conn.execute(_HELD, (list(contacts),))

    def lock_writing_of(self, contact: int) -> None:
        # In the order of the transactions that write: the conversation, then its contact.
        self.conn.execute(_LOCKED_OF_CONTACT, (contact,))
        self.lock_contacts(contact)

    def survivor(self, contact: int) -> Contact | None:
        self.conn.execute(_KEPT_CONTACT, (contact,))
        return super().survivor(contact)

    # Conversations: a transaction that reads a conversation in order to change it locks its row.

    def conversation(self, project: int, conversation_id: str) -> tuple[Conversation, Contact] | None:
        row = self.conn.execute(_LOCKED_BY_ID, (conversation_id, project)).fetchone()
        if row is None:
            return None
        self._locked_rowids.add(row[0])
        return super().conversation(project, conversation_id)

    def claim(self, state: Conversation) -> Claimed:
        if state.rowid not in self._locked_rowids:
            self.conn.execute(_LOCKED, (state.rowid,))
            self._locked_rowids.add(state.rowid)
        return super().claim(state)

    def lock_across_nodes(self) -> None:
        """See `AccountTransaction.lock_across_nodes`."""
        self.conn.execute("SELECT one FROM installation FOR UPDATE")

    # Kept answers: a transaction that looks for an answer locks its name, so that the second of two
    # concurrent requests is refused. If both miss each other all the same, the second insert fails; its
    # transaction finds the answer and has no effect.

    def stored_response(self, name: bytes, place: str) -> StoredResponse | None:
        number = int.from_bytes(name[:8], signed=True)
        ((free, *kept),) = self.conn.execute(_KEPT, (number, name)).fetchall()
        if kept[0] is not None:
            return StoredResponse(*kept)
        if not free:
            raise InProgress
        return None

    def store_response(self, answer: StoredResponse) -> None:
        before = self.stored_response(answer.name, answer.place)
        if before is not None:
            self.conn.execute("DELETE FROM kept_answers WHERE name = ? AND at = ?", (before.name, before.at))
        self.conn.execute(KEEP, (answer.name, answer.fingerprint, answer.subject, answer.sealed, answer.at))

    # Endpoint leases: a new holder waits until the results of the previous generation are committed.

    def endpoint_lease_generation(self, endpoint: int) -> int | None:
        row = self.conn.execute(GENERATION, (endpoint,)).fetchone()
        return None if row is None else int(row[0])

    # The log

    def head(self, project: int) -> LogHead:
        """Return the locked head of a project's log. Raises EndpointsMoved."""
        head = self._heads.get(project)
        if head is None:
            head = self._heads[project] = lock_head(self.conn, project)
            if self._endpoint_versions.get(project, head.endpoints_version) != head.endpoints_version:
                raise EndpointsMoved
        return head

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
        position, event_id = self.head(project.rowid).events.next(at)
        event = stored_event(
            position, event_id, project, draft, conversation, at, directed=directed, ticket=ticket
        )
        self.conn.execute(INSERT_EVENT, event_values(event, at))
        if not directed:
            self.published.append(event)
        return event

    def erase_conversation(self, state: Conversation) -> None:
        super().erase_conversation(state)
        self._append_note(state.project, ERASURE, b"%d" % state.rowid)

    def erase_ticket(self, ticket: Ticket) -> None:
        super().erase_ticket(ticket)
        self._append_note(ticket.project, ERASURE, b"%d" % ticket_lane(ticket.rowid))

    def erase_response_events(self, survey: int, responses: Sequence[str]) -> None:
        before = frozenset(self.erased)
        super().erase_response_events(survey, responses)
        gone = sorted(self.erased - before)
        if gone:
            (project,) = self.conn.execute(
                "SELECT project FROM surveys WHERE rowid = ?", (survey,)
            ).fetchone()
            for lane in gone:
                self._append_note(project, ERASURE, b"%d" % lane)

    def erase_contact(self, contact: int) -> None:
        (project,) = self.conn.execute(_PROJECT_OF, (contact,)).fetchone()
        super().erase_contact(contact)
        self._append_note(project, ERASURE, b"%d" % contact_lane(contact))

    def rewrite_events(
        self, project: Project, conversation: int, message_id: str, rewritten: Callable[[bytes], bytes]
    ) -> None:
        before = len(self.rewritten)
        super().rewrite_events(project, conversation, message_id, rewritten)
        if positions := [event.position for event in self.rewritten[before:]]:
            self._append_note(project.rowid, REDACTION, orjson.dumps(positions))

    def _append_note(self, project: int, kind: str, body: bytes) -> None:
        """Append a note about erased or rewritten events, which all followers of the project read."""
        position, event_id = self.head(project).events.next(0)
        self.conn.execute(INSERT_NOTE, (position, event_id, NO_PROJECT, kind, body))

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
        position, delivery_id = self.head(project_of(event.position)).deliveries.next(at)
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
        self.conn.execute(INSERT_DELIVERY[POSTGRES], delivery_values(delivery, skipped, redelivery_of))
        if skipped is None:
            self.deliveries.append(delivery)
        return delivery

    def delivery_position(self, project: int, delivery_id: str) -> int | None:
        # Deliveries of this transaction are after the stored end of the log, because `save_heads` has not run
        # yet.
        made = (each.position for each in self.deliveries if each.id == delivery_id)
        found = next(made, None)
        return super().delivery_position(project, delivery_id) if found is None else found

    # Endpoints

    def routed_endpoints(self, project: int) -> Sequence[Endpoint]:
        if project not in self._heads and project not in self._endpoint_versions:
            row = self.conn.execute(ENDPOINTS_VERSION, (project,)).fetchone()
            self._endpoint_versions[project] = 0 if row is None else row[0]
        return super().routed_endpoints(project)
