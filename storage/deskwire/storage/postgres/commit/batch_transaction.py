"""The transaction of a batch's jobs, with buffered writes and an overlay.

Reads see the changes of earlier jobs in the batch. A read without an overlay is answered from the fetched
rows if no job of the batch can have changed them. Otherwise the job needs a transaction of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.listing import AgentDetails
from deskwire.engine.conversations.ports import Claimed
from deskwire.engine.core.errors import StaleState
from deskwire.engine.core.ids import day_of
from deskwire.engine.events.types import EventDraft, StoredEvent
from deskwire.engine.idempotency.idempotent_requests import StoredResponse
from deskwire.engine.tickets.ticket import Ticket
from deskwire.engine.webhooks.delivery import Attempt, Delivery, DeliveryStatus
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.commit.batch_statements import FetchedRows
from deskwire.storage.postgres.commit.overlay import (
    NeedsOwnTransaction,
    Overlay,
    SavedConversation,
    WriteBuffer,
    never_block,
)
from deskwire.storage.postgres.commit.positions import ENDPOINTS_VERSION, LogAppends, LogHead
from deskwire.storage.postgres.driver.recorded_reads import MissingRead, read_key
from deskwire.storage.postgres.transaction import GENERATION, PostgresTransaction
from deskwire.storage.tables.contacts.contacts import contact_of
from deskwire.storage.tables.conversations.columns import routed_of
from deskwire.storage.tables.conversations.conversations import (
    ConversationReads,
    attachments_json,
    require_same,
)
from deskwire.storage.tables.webhooks.endpoints import EndpointWrites

NEXT_ROWIDS: Final = (
    "SELECT nextval(pg_get_serial_sequence(CAST($1 AS text), 'rowid')) FROM generate_series(1, 256)"
)
_PENDING: Final = POSTGRES.text(
    "SELECT position FROM deliveries WHERE position = ? {of_day} AND status = 'pending' FOR UPDATE"
)
_INTO: Final = re.compile(r"INSERT INTO (?P<table>\w+) \((?P<columns>[^)]*)\) VALUES \(")
_INSERT_MESSAGE: Final = (
    "INSERT INTO messages (id, conversation, number, author_type, author_id, author_name, text, internal, "
    "created_at, attachments, sequence, project) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_LONG_MESSAGE: Final = (
    "INSERT INTO messages (id, conversation, number, author_type, author_id, author_name, text, internal, "
    "created_at, attachments, sequence, project, client_id, format) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_BESIDE_TABLES: Final = frozenset({"messages", "workflow_runs", "followers"})

# The endpoints that receive a project's events, with the endpoints version that was read before them.
Routes = tuple[int, tuple[Endpoint, ...]]


class NotLocked(BaseException):  # not an Exception, so that `except Exception` in a job does not catch it
    """Raised when a job needs a conversation that the batch has not locked."""

    def __init__(self, rowid: int, conversation_id: str) -> None:
        super().__init__(conversation_id)
        self.rowid = rowid
        self.conversation_id = conversation_id


class BufferedTransaction(PostgresTransaction):
    """`ports.Transaction` for the jobs of one batch, one after the other.

    Call `begin_job` before each job, and `undo_job` after a job whose changes are to be discarded.
    """

    def __init__(self, fetched: FetchedRows, routes: Mapping[int, Routes]) -> None:
        self.buffer: Final = WriteBuffer(fetched.rows)
        super().__init__(self.buffer)
        # The endpoints version that events were addressed with, by project.
        self.versions: dict[int, int] = {}
        self.routes: dict[int, Routes] = {}  # The endpoints that this batch has read, by project.
        self.appends: Final = LogAppends()
        self._fetched = fetched
        self._routes = routes
        self._overlay: Final = Overlay()
        appends = self.appends
        self._lists: Final[tuple[list[Any], ...]] = (
            appends.events,
            appends.deliveries,
            self.due,
            self.runs_due,
            self.snoozes_due,
            self.held_due,
            self.bulk_due,
            self.writing,
        )
        self._first_write = self._size_before = 0
        self._lengths_before: tuple[int, ...] = ()
        self._taken_rowids: list[tuple[str, int]] = []

    # Jobs

    def begin_job(self) -> None:
        """Begin a job; the changes of the job before stay."""
        self._overlay.begin()
        self._taken_rowids.clear()
        self._first_write, self._size_before = len(self.buffer.writes), self.buffer.size
        self._lengths_before = tuple(map(len, self._lists))

    def undo_job(self) -> None:
        """Discard the changes of the current job."""
        self._overlay.undo()
        while self._taken_rowids:
            table, rowid = self._taken_rowids.pop()
            self._fetched.rowids[table].append(rowid)
        self.buffer.truncate(self._first_write)
        self.buffer.size = self._size_before
        for each, length in zip(self._lists, self._lengths_before, strict=True):
            del each[length:]

    def never_blocks(self, heads: Collection[int]) -> bool:
        """Return whether the job's changes can be sent while these projects' heads are locked."""
        events, deliveries = (
            self.appends.events[self._lengths_before[0] :],
            self.appends.deliveries[self._lengths_before[1] :],
        )
        return (
            never_block(self.buffer.writes[self._first_write :])
            and all(each.project in heads for each in events)
            and all(each.project in heads for each in deliveries)
        )

    def assign_positions(self, heads: Mapping[int, LogHead]) -> dict[int | str, int | str]:
        """Assign positions and ids under the locked heads.

        Returns them by their provisional values.
        """
        real = self.appends.assign_positions(heads)
        self._heads.update(heads)
        self.published += self.appends.published()
        self.deliveries += self.appends.pending()
        return real

    def changed_conversations(self) -> list[SavedConversation]:
        """Return the stored conversations that the batch changes."""
        return [each for each in self._overlay.saved.values() if each.before is not None]

    # Conversations

    def conversation(self, project: int, conversation_id: str) -> tuple[Conversation, Contact] | None:
        for saved in self._overlay.saved.values():
            if saved.state.id == conversation_id:
                return saved.state, saved.claimed.contact
        with self.buffer.reading_unchanged_rows():
            found = ConversationReads.conversation(self, project, conversation_id)
        if found is not None and found[0].rowid not in self._fetched.locked:
            raise NotLocked(found[0].rowid, conversation_id)
        return found

    def claim(self, state: Conversation) -> Claimed:
        saved = self._saved(state.rowid)
        if saved is not None:
            require_same(state, (saved.state.revision, saved.state.sequence, saved.state.updated_at))
            return saved.claimed
        if state.rowid not in self._fetched.locked:
            raise NotLocked(state.rowid, state.id)
        row = self._fetched.claims.get(state.rowid)
        if row is None or row[1] != state.id:
            raise StaleState(f"conversation {state.id} no longer exists")
        require_same(state, row[2:5])
        claimed = Claimed(contact_of(row[6:]), routed_of(row[5]))
        self._overlay.put(self._overlay.saved, state.rowid, SavedConversation(None, state, claimed))
        return claimed

    def insert_conversation(
        self, state: Conversation, contact: int, routed: Mapping[int, int]
    ) -> Conversation:
        made = super().insert_conversation(state, contact, routed)
        self._overlay.put(self._overlay.made, made.rowid, state.project)
        return made

    def save_conversation(self, before: Conversation, state: Conversation, routed: Mapping[int, int]) -> None:
        known = self._saved(state.rowid)
        assert known is not None, "a conversation is claimed before it is saved"
        self._overlay.put(
            self._overlay.saved,
            state.rowid,
            SavedConversation(known.before or before, state, Claimed(known.claimed.contact, routed)),
        )

    def insert_message(self, conversation: int, message: Message, sequence: int | None) -> None:
        if message.mentions:
            raise NeedsOwnTransaction
        saved, author = self._saved(conversation), message.author
        project = self._overlay.made[conversation] if saved is None else saved.state.project
        self.buffer.size += len(message.text)
        client_id = message.client_id
        values = (
            message.id,
            conversation,
            message.index,
            author.type,
            author.id,
            author.name,
            message.text,
            message.internal,
            message.created_at,
            attachments_json(message.attachments),
            sequence,
            project,
        )
        if client_id is not None:
            self._overlay.put(self._overlay.client_messages, (conversation, client_id), message)
        if client_id is None and message.format is None:
            self.conn.execute(_INSERT_MESSAGE, values)
        else:
            self.conn.execute(_INSERT_LONG_MESSAGE, (*values, client_id, message.format))

    def message_by_client_id(self, conversation: int, client_id: str) -> Message | None:
        made = self._overlay.client_messages.get((conversation, client_id))
        if made is not None:
            return made
        with self.buffer.reading_unchanged_rows():
            return super().message_by_client_id(conversation, client_id)

    def conversation_by_client_id(self, contact: int, client_id: str) -> str | None:
        made = self._overlay.client_conversations.get((contact, client_id))
        if made is not None:
            return made
        with self.buffer.reading_unchanged_rows():
            return super().conversation_by_client_id(contact, client_id)

    def insert_conversation_client_id(self, contact: int, client_id: str, state: Conversation) -> None:
        super().insert_conversation_client_id(contact, client_id, state)
        self._overlay.put(self._overlay.client_conversations, (contact, client_id), state.id)

    def agent_details(self, conversations: Sequence[int]) -> Mapping[int, AgentDetails]:
        """See the port. Raises NeedsOwnTransaction if the batch adds to one of the conversations."""
        if any(self._has_written_to(each) for each in conversations):
            raise NeedsOwnTransaction
        with self.buffer.reading_unchanged_rows():
            return super().agent_details(conversations)

    def erase_conversation(self, state: Conversation) -> None:
        raise NeedsOwnTransaction

    def erase_ticket(self, ticket: Ticket) -> None:
        raise NeedsOwnTransaction

    def erase_response_events(self, survey: int, responses: Sequence[str]) -> None:
        raise NeedsOwnTransaction

    def _saved(self, rowid: int) -> SavedConversation | None:
        return self._overlay.saved.get(rowid)

    def _has_written_to(self, conversation: int) -> bool:
        """Return whether the batch may have written more of a conversation than its own row."""
        if conversation in self._overlay.made or self._overlay.existed_before(
            self._overlay.saved, conversation
        ):
            return True
        mine = self.buffer.writes[self._first_write :]
        return any(not _BESIDE_TABLES.isdisjoint(write.shape.tables) for write in mine)

    # Contacts

    def _contact(self, column: str, project: int, value: str) -> Contact | None:
        for (of, user_id), contact in self._overlay.contacts.items():
            if of == project and value == (user_id if column == "user_id" else contact.id):
                return contact
        with self.buffer.reading_unchanged_rows():
            return super()._contact(column, project, value)

    def insert_contact(self, project: int, contact: Contact) -> Contact:
        made = super().insert_contact(project, contact)
        self._overlay.put(self._overlay.contacts, (project, contact.user_id), made)
        return made

    def save_contact(self, contact: Contact) -> None:
        raise NeedsOwnTransaction

    def erase_contact(self, contact: int) -> None:
        raise NeedsOwnTransaction

    # New rows

    def inserted(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> int:
        """Insert a row, and return its key, which was reserved from the table's sequence."""
        into = _INTO.match(sql)
        if into is None or isinstance(values, Mapping):
            raise NeedsOwnTransaction
        table = into["table"]
        rowid = self._rowid(table)
        self._taken_rowids.append((table, rowid))
        self.conn.execute(_with_rowid(sql), (rowid, *values))
        return rowid

    def _rowid(self, table: str) -> int:
        """Return a key for a new row. Keys of this node only grow."""
        pool = self._fetched.rowids.setdefault(table, [])
        if not pool:
            key = NEXT_ROWIDS, (table,)
            if key not in self._fetched.rows:
                raise MissingRead(key)
            pool += sorted((rowid for (rowid,) in self._fetched.rows.pop(key)), reverse=True)
        return pool.pop()

    # Kept answers

    def stored_response(self, name: bytes, place: str) -> StoredResponse | None:
        kept = self._overlay.kept.get(name)
        if kept is not None:
            return kept
        with self.buffer.reading_unchanged_rows():
            return super().stored_response(name, place)

    def store_response(self, answer: StoredResponse) -> None:
        super().store_response(answer)
        self._overlay.put(self._overlay.kept, answer.name, answer)

    # The log

    def head(self, project: int) -> LogHead:
        raise NeedsOwnTransaction

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
        raise NeedsOwnTransaction  # may drop a table

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        raise NeedsOwnTransaction  # may drop tables

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
        event = self.appends.add_event(project, draft, conversation, at, directed=directed, ticket=ticket)
        self.buffer.size += len(event.body)
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
        return self.appends.add_delivery(
            endpoint, event, ordering_key, previous, at, skipped=skipped, redelivery_of=redelivery_of
        )

    def routed_endpoints(self, project: int) -> Sequence[Endpoint]:
        known = self._routes.get(project) or self.routes.get(project)
        if known is None:
            known = self.routes[project] = self._read_routes(project)
        self.versions[project] = known[0]
        return known[1]

    def _read_routes(self, project: int) -> Routes:
        """Return the endpoints and their version, which is read before them."""
        with self.buffer.reading_unchanged_rows():
            try:
                row = self.conn.execute(ENDPOINTS_VERSION, (project,)).fetchone()
            except MissingRead as first:
                try:
                    EndpointWrites.routed_endpoints(self, project)
                except MissingRead as second:
                    raise MissingRead(*first.keys, *second.keys) from None
                raise
            return row[0], tuple(EndpointWrites.routed_endpoints(self, project))

    # Results of deliveries

    def prefetch_results(self, endpoint: int, deliveries: Sequence[Delivery]) -> None:
        # Without this each result would ask for its row in turn, and many results would exceed a batch's
        # rounds of reads.
        wanted = [
            read_key(GENERATION, (endpoint,)),
            *(read_key(_PENDING, _pending_values(each)) for each in deliveries),
        ]
        missing = [key for key in wanted if key not in self._fetched.rows]
        if missing:
            raise MissingRead(*missing)

    def record_retry(self, planned: Delivery, attempt: Attempt) -> bool:
        if not self._is_pending(planned):
            return False
        with self.buffer.changing_one_row():
            return super().record_retry(planned, attempt)

    def record_end(
        self,
        delivery: Delivery,
        attempt: Attempt,
        status: DeliveryStatus,
        reason: str | None,
        *,
        missed: bool = False,
    ) -> bool:
        if not self._is_pending(delivery):
            return False
        self._overlay.put(self._overlay.ended, delivery.position, True)
        with self.buffer.changing_one_row():
            return super().record_end(delivery, attempt, status, reason, missed=missed)

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        if not self._is_pending(delivery):
            return False
        self._overlay.put(self._overlay.ended, delivery.position, True)
        with self.buffer.changing_one_row():
            return super().end_delivery(delivery, status, reason, at)

    def circuit_changes(self, endpoint: int, *, closed: bool) -> bool:
        raise NeedsOwnTransaction

    def _is_pending(self, delivery: Delivery) -> bool:
        if delivery.position in self._overlay.ended:
            return False
        with self.buffer.reading_unchanged_rows():
            return self.conn.execute(_PENDING, _pending_values(delivery)).fetchone() is not None


def _pending_values(delivery: Delivery) -> tuple[int, int]:
    """Return the values of _PENDING."""
    return delivery.position, day_of(delivery.id)


@lru_cache(maxsize=256)
def _with_rowid(sql: str) -> str:
    """Return an INSERT that sets the key as well."""
    return _INTO.sub(r"INSERT INTO \g<table> (rowid, \g<columns>) VALUES (?, ", sql)
