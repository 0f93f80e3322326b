"""The transaction of a batch's jobs: buffered, with what earlier jobs of the batch have written laid over what is stored.

What is not laid over is read as it was fetched, if no job of the batch can have written it; else a job is run by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.agent_view import Beside
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.ports import Claimed
from deskwire.engine.core.errors import StaleState
from deskwire.engine.core.ids import day_of
from deskwire.engine.events.types import Draft, StoredEvent
from deskwire.engine.idempotency.idempotent_requests import StoredResponse
from deskwire.engine.tickets.ticket import Ticket
from deskwire.engine.webhooks.delivery import Attempt, Delivery, DeliveryStatus
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.commit.buffer import Buffer, NeedsAlone, never_wait
from deskwire.storage.postgres.commit.heads import VERSIONS, Head
from deskwire.storage.postgres.commit.laid import Laid, Saved
from deskwire.storage.postgres.commit.sealing import Unsealed
from deskwire.storage.postgres.driver.recall import Key, Wanted, key_of
from deskwire.storage.postgres.transaction import GENERATION, PostgresTransaction
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of
from deskwire.storage.tables.conversations.columns import routed_of
from deskwire.storage.tables.conversations.conversations import ConversationReads, packed, require_same
from deskwire.storage.tables.webhooks.endpoints import EndpointWrites

CLAIMED: Final = (
    f"SELECT c.rowid, c.id, c.revision, c.sequence, c.updated_at, c.routed, {CONTACT_COLUMNS} FROM conversations c "
    "JOIN contacts k ON k.rowid = c.contact WHERE c.rowid = ANY($1)"
)
LOCKED: Final = "SELECT rowid FROM conversations WHERE rowid = ANY($1) ORDER BY rowid FOR UPDATE SKIP LOCKED"
"""Locks those that nobody else has locked, so that no batch waits while it holds conversations."""

ROWIDS: Final = (
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
_BESIDE: Final = frozenset({"messages", "workflow_runs"})


Routes = tuple[int, tuple[Endpoint, ...]]
"""The endpoints that a project's events are for, with the version that the project's head had before."""


class NotLocked(BaseException):  # no error: it passes by whoever catches those
    """A job needs a conversation's row that is not locked for the batch, so nothing of it is known."""

    def __init__(self, rowid: int, conversation_id: str) -> None:
        super().__init__(conversation_id)
        self.rowid = rowid
        self.conversation_id = conversation_id


class Fetched:
    """The rows that were fetched for a batch, under its locks.

    `rows` are the answers to statements, `locked` the conversations whose rows it has, `claims` the rows of CLAIMED of those,
    by the conversation; `rowids` are keys for new rows, by their table.
    """

    def __init__(self, rowids: dict[str, list[int]]) -> None:
        self.rows: dict[Key, list[tuple[Any, ...]]] = {}
        self.locked: set[int] = set()
        self.claims: dict[int, Sequence[Any]] = {}
        self.rowids = rowids


class BatchTransaction(PostgresTransaction):
    """`ports.Transaction` for the jobs of one batch, one after the other: `begin` before each, `cut` behind one that leaves nothing."""

    def __init__(self, fetched: Fetched, routes: Mapping[int, Routes]) -> None:
        self.buffer: Final = Buffer(fetched.rows)
        super().__init__(self.buffer)
        self.versions: dict[int, int] = {}
        """The versions of the endpoints that events were addressed to, by project."""
        self.routes: dict[int, Routes] = {}
        """The endpoints that were read, with their version, by project."""
        self.unsealed: Final = Unsealed()
        self._fetched = fetched
        self._routes = routes
        self._laid: Final = Laid()
        unsealed = self.unsealed
        self._lists: Final[tuple[list[Any], ...]] = (
            unsealed.events,
            unsealed.deliveries,
            self.due,
            self.runs_due,
            self.wakings_due,
            self.held_due,
            self.writing,
        )
        self._mark = self._size = 0
        self._marks: tuple[int, ...] = ()
        self._taken: list[tuple[str, int]] = []

    # Jobs

    def begin(self) -> None:
        """Begin a job, and keep what the one before has written."""
        self._laid.begin()
        self._taken.clear()
        self._mark, self._size = len(self.buffer.writes), self.buffer.size
        self._marks = tuple(map(len, self._lists))

    def cut(self) -> None:
        """Forget what the job has written."""
        self._laid.cut()
        while self._taken:
            table, rowid = self._taken.pop()
            self._fetched.rowids[table].append(rowid)
        self.buffer.cut(self._mark)
        self.buffer.size = self._size
        for each, length in zip(self._lists, self._marks, strict=True):
            del each[length:]

    def never_waits(self, heads: Collection[int]) -> bool:
        """Return whether all changes of the job can be sent while these projects' heads are locked."""
        events, deliveries = (
            self.unsealed.events[self._marks[0] :],
            self.unsealed.deliveries[self._marks[1] :],
        )
        return (
            never_wait(self.buffer.writes[self._mark :])
            and all(each.project in heads for each in events)
            and all(each.project in heads for each in deliveries)
        )

    def seal(self, heads: Mapping[int, Head]) -> dict[int | str, int | str]:
        """Give all events and deliveries their places, under the locked heads; return these by their stand-ins."""
        real = self.unsealed.seal(heads)
        self._heads.update(heads)
        self.published += self.unsealed.published()
        self.deliveries += self.unsealed.pending()
        return real

    def changed_conversations(self) -> list[Saved]:
        """Return what becomes of conversations that are stored already."""
        return [each for each in self._laid.saved.values() if each.before is not None]

    # Conversations

    def conversation(self, project: int, conversation_id: str) -> tuple[Conversation, Contact] | None:
        for saved in self._laid.saved.values():
            if saved.state.id == conversation_id:
                return saved.state, saved.claimed.contact
        with self.buffer.untouched():
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
            raise StaleState(f"there is no conversation {state.id} any more")
        require_same(state, row[2:5])
        claimed = Claimed(contact_of(row[6:]), routed_of(row[5]))
        self._laid.put(self._laid.saved, state.rowid, Saved(None, state, claimed))
        return claimed

    def insert_conversation(
        self, state: Conversation, contact: int, routed: Mapping[int, int]
    ) -> Conversation:
        made = super().insert_conversation(state, contact, routed)
        self._laid.put(self._laid.made, made.rowid, state.project)
        return made

    def save_conversation(self, before: Conversation, state: Conversation, routed: Mapping[int, int]) -> None:
        known = self._saved(state.rowid)
        assert known is not None, "who saves has claimed"
        self._laid.put(
            self._laid.saved,
            state.rowid,
            Saved(known.before or before, state, Claimed(known.claimed.contact, routed)),
        )

    def insert_message(self, conversation: int, message: Message, sequence: int | None) -> None:
        saved, author = self._saved(conversation), message.author
        project = self._laid.made[conversation] if saved is None else saved.state.project
        self.buffer.size += len(message.text)
        self.conn.execute(
            _INSERT_MESSAGE,
            (
                message.id,
                conversation,
                message.index,
                author.type,
                author.id,
                author.name,
                message.text,
                message.internal,
                message.created_at,
                packed(message.attachments),
                sequence,
                project,
            ),
        )

    def beside(self, conversations: Sequence[int]) -> Mapping[int, Beside]:
        """See the port. Of a conversation whose messages this batch adds to, the newest is not stored yet."""
        if any(self._written_to(each) for each in conversations):
            raise NeedsAlone
        with self.buffer.untouched():
            return super().beside(conversations)

    def erase_conversation(self, state: Conversation) -> None:
        raise NeedsAlone

    def erase_ticket(self, ticket: Ticket) -> None:
        raise NeedsAlone

    def erase_response_events(self, survey: int, responses: Sequence[str]) -> None:
        raise NeedsAlone

    def _saved(self, rowid: int) -> Saved | None:
        return self._laid.saved.get(rowid)

    def _written_to(self, conversation: int) -> bool:
        """Tell whether anything but the row of a conversation may wait in this batch."""
        if conversation in self._laid.made or self._laid.earlier(self._laid.saved, conversation):
            return True
        mine = self.buffer.writes[self._mark :]
        return any(not _BESIDE.isdisjoint(write.shape.tables) for write in mine)

    # Contacts

    def _contact(self, column: str, project: int, value: str) -> Contact | None:
        for (of, user_id), contact in self._laid.contacts.items():
            if of == project and value == (user_id if column == "user_id" else contact.id):
                return contact
        with self.buffer.untouched():
            return super()._contact(column, project, value)

    def insert_contact(self, project: int, contact: Contact) -> Contact:
        made = super().insert_contact(project, contact)
        self._laid.put(self._laid.contacts, (project, contact.user_id), made)
        return made

    def save_contact(self, contact: Contact) -> None:
        raise NeedsAlone

    def erase_contact(self, contact: int) -> None:
        raise NeedsAlone

    # New rows

    def inserted(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> int:
        """Insert a row, and return its key, which was taken from the table's sequence before."""
        into = _INTO.match(sql)
        if into is None or isinstance(values, Mapping):
            raise NeedsAlone
        table = into["table"]
        rowid = self._rowid(table)
        self._taken.append((table, rowid))
        self.conn.execute(_with_rowid(sql), (rowid, *values))
        return rowid

    def _rowid(self, table: str) -> int:
        """Return the key for a new row, larger than those that this node has given to earlier rows."""
        pool = self._fetched.rowids.setdefault(table, [])
        if not pool:
            key = ROWIDS, (table,)
            if key not in self._fetched.rows:
                raise Wanted(key)
            pool += sorted((rowid for (rowid,) in self._fetched.rows.pop(key)), reverse=True)
        return pool.pop()

    # Kept answers

    def stored_response(self, name: bytes, place: str) -> StoredResponse | None:
        kept = self._laid.kept.get(name)
        if kept is not None:
            return kept
        with self.buffer.untouched():
            return super().stored_response(name, place)

    def store_response(self, answer: StoredResponse) -> None:
        super().store_response(answer)
        self._laid.put(self._laid.kept, answer.name, answer)

    # The log

    def head(self, project: int) -> Head:
        raise NeedsAlone

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
        raise NeedsAlone  # it may drop a table

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        raise NeedsAlone  # it may drop tables, too

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
        event = self.unsealed.append(project, draft, conversation, at, directed=directed, ticket=ticket)
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
        return self.unsealed.deliver(
            endpoint, event, ordering_key, previous, at, skipped=skipped, redelivery_of=redelivery_of
        )

    def routed_endpoints(self, project: int) -> Sequence[Endpoint]:
        known = self._routes.get(project) or self.routes.get(project)
        if known is None:
            known = self.routes[project] = self._read_routes(project)
        self.versions[project] = known[0]
        return known[1]

    def _read_routes(self, project: int) -> Routes:
        """Read the endpoints, and before them their version, in one round."""
        with self.buffer.untouched():
            try:
                row = self.conn.execute(VERSIONS, (project,)).fetchone()
            except Wanted as first:
                try:
                    EndpointWrites.routed_endpoints(self, project)
                except Wanted as second:
                    raise Wanted(*first.keys, *second.keys) from None
                raise
            return row[0], tuple(EndpointWrites.routed_endpoints(self, project))

    # Results of deliveries

    def prefetch_results(self, endpoint: int, deliveries: Sequence[Delivery]) -> None:
        # Otherwise each result asks for its row in turn, and many results need more rounds than a batch has.
        wanted = [key_of(GENERATION, (endpoint,)), *(key_of(_PENDING, _place(each)) for each in deliveries)]
        missing = [key for key in wanted if key not in self._fetched.rows]
        if missing:
            raise Wanted(*missing)

    def record_retry(self, planned: Delivery, attempt: Attempt) -> bool:
        if not self._is_pending(planned):
            return False
        with self.buffer.one_row():
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
        self._laid.put(self._laid.ended, delivery.position, True)
        with self.buffer.one_row():
            return super().record_end(delivery, attempt, status, reason, missed=missed)

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        if not self._is_pending(delivery):
            return False
        self._laid.put(self._laid.ended, delivery.position, True)
        with self.buffer.one_row():
            return super().end_delivery(delivery, status, reason, at)

    def circuit_changes(self, endpoint: int, *, closed: bool) -> bool:
        raise NeedsAlone

    def _is_pending(self, delivery: Delivery) -> bool:
        if delivery.position in self._laid.ended:
            return False
        with self.buffer.untouched():
            return self.conn.execute(_PENDING, _place(delivery)).fetchone() is not None


def _place(delivery: Delivery) -> tuple[int, int]:
    """Return the values of _PENDING."""
    return delivery.position, day_of(delivery.id)


@lru_cache(maxsize=256)
def _with_rowid(sql: str) -> str:
    """Return an INSERT that names the key as well."""
    return _INTO.sub(r"INSERT INTO \g<table> (rowid, \g<columns>) VALUES (?, ", sql)
