"""Conversations, their messages, and their network logs."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, is_
from typing import Any, Final, get_args

import orjson

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Author, Conversation, Message, Status
from deskwire.engine.conversations.listing import ConversationFilter, Listed, Page
from deskwire.engine.conversations.ports import Claimed
from deskwire.engine.core.errors import StaleState
from deskwire.engine.uploads.upload import Attachment
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of
from deskwire.storage.tables.workflows import run_of

_STATE: Final = (
    "id, project, created_at, updated_at, rowid, revision, title, status, closed_by, closed_at, unread, archived, "
    "attributes, rating, rated_at, ticket_id, visible, human, messages, last_message_at, sequence, "
    "assignee_type, assignee_id, assignee_name, archived_at, imported_at"
)
_COLUMNS: Final = ", ".join(f"c.{name}" for name in _STATE.split(", "))
_WIDTH: Final = len(_STATE.split(", "))
_ONE: Final = (
    f"SELECT r.state, {_COLUMNS}, {CONTACT_COLUMNS} FROM conversations c JOIN contacts k ON k.rowid = c.contact "
    "LEFT JOIN workflow_runs r ON r.conversation = c.rowid WHERE c.id = ? AND c.project = ?"
)
_MUTABLE: Final = (
    "revision, sequence, status, title, closed_by, closed_at, unread, archived, assignee_type, assignee_id, "
    "assignee_name, attributes, rating, rated_at, ticket_id, visible, messages, last_message_at, routed, "
    "activity, updated_at, human, archived_at"
)
_BY_MESSAGES: Final = "revision, sequence, unread, messages, last_message_at, activity, updated_at, routed"
"""Those that a message changes."""
_RARE: Final = 2
"""How many of them change rarely and are indexed: SQLite writes every index that has a column named, changed or not."""
_INSERT: Final = (
    f"INSERT INTO conversations (id, project, contact, created_at, imported_at, {_MUTABLE}) "
    f"VALUES (?, ?, ?, ?, ?, {', '.join('?' for _ in _MUTABLE.split(', '))})"
)
ALL, USUAL, BY_MESSAGES = (
    f"UPDATE conversations SET {', '.join(f'{name} = ?' for name in names)} WHERE rowid = ?"
    for names in (_MUTABLE.split(", "), _MUTABLE.split(", ")[:-_RARE], _BY_MESSAGES.split(", "))
)
_RARELY: Final = attrgetter("human", "archived_at")
_BY_COMMANDS: Final = attrgetter(
    "status", "title", "closed_by", "closed_at", "archived", "assignee", "attributes", "rating", "rated_at", "ticket_id",
    "visible",
)  # fmt: skip
_MESSAGE: Final = "id, author_type, author_id, author_name, text, created_at, internal, number, attachments"


_CLAIMED: Final = (
    f"SELECT c.revision, c.sequence, c.routed, {CONTACT_COLUMNS} FROM conversations c "
    "JOIN contacts k ON k.rowid = c.contact WHERE c.rowid = ? AND c.id = ?"
)
_CLAIMS_MAX: Final = 4_096
"""Conversations that were written to, of which is remembered what they are claimed with: 4 MB at most."""

_STATUSES: Final[Mapping[str, Status]] = {each: each for each in get_args(Status)}
"""So that there is each of them once in memory, and not with every state."""
_NO_ATTRIBUTES: Final[Mapping[str, Any]] = {}
"""Of all states that have none; nobody changes attributes in place."""

_Version = tuple[str, int, int]


class ConversationReads:
    """Queries on conversations; the methods are those of `ports.Reader`."""

    conn: sqlite3.Connection

    def conversation(self, project: int, conversation_id: str) -> tuple[Conversation, Contact] | None:
        row = self.conn.execute(_ONE, (conversation_id, project)).fetchone()
        if row is None:
            return None
        run, state = run_of(row[0]), _conversation_of((conversation_id, *row[2:]))  # the id is in memory once
        return (state if run is None else replace(state, run=run)), contact_of(row[1 + _WIDTH :])

    def conversations(
        self, project: int, wanted: ConversationFilter, after: Page | None, limit: int
    ) -> Sequence[Listed]:
        where, values = _conditions(wanted)
        # A contact has few conversations: the unary plus keeps the planner off the project's index.
        where.insert(0, "+c.project = ?" if wanted.contact is not None else "c.project = ?")
        if after is not None:
            where.append("(c.activity, c.rowid) < (?, ?)")
            values += [after.activity, after.rowid]
        sql = (
            f"SELECT c.activity, {_COLUMNS}, {CONTACT_COLUMNS} FROM conversations c "
            "JOIN contacts k ON k.rowid = c.contact "
            f"WHERE {' AND '.join(where)} ORDER BY c.activity DESC, c.rowid DESC LIMIT ?"
        )
        return [_listed(row) for row in self.conn.execute(sql, (project, *values, limit))]

    def conversation_ids(self, contact: int) -> Sequence[str]:
        rows = self.conn.execute("SELECT id FROM conversations WHERE contact = ?", (contact,))
        return [row[0] for row in rows]

    def message_rowid(self, conversation: int, message_id: str, *, internal: bool) -> int | None:
        row = self.conn.execute(
            "SELECT rowid FROM messages WHERE id = ? AND conversation = ? AND internal <= ?",
            (message_id, conversation, internal),
        ).fetchone()
        return None if row is None else int(row[0])

    def messages(
        self,
        conversation: int,
        *,
        internal: bool,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> Sequence[Message]:
        newest = before is not None and after is None
        sql = (
            f"SELECT {_MESSAGE} FROM messages WHERE conversation = ? AND internal <= ? AND rowid > ? "
            f"AND rowid < ? ORDER BY rowid {'DESC' if newest else 'ASC'} LIMIT ?"
        )
        values = (conversation, internal, after or 0, before or _NO_ROW, -1 if limit is None else limit)
        found = [_message_of(row) for row in self.conn.execute(sql, values)]
        return found[::-1] if newest else found

    def network_logs(self, conversation: int) -> bytes | None:
        row = self.conn.execute(
            "SELECT snapshot FROM network_logs WHERE conversation = ?", (conversation,)
        ).fetchone()
        return None if row is None else bytes(row[0])


class ConversationWrites:
    """Changes of conversations; the methods are those of `ports.Transaction`.

    What the busy ones are claimed with is remembered: all that is ever written goes through here.
    """

    conn: sqlite3.Connection
    _claims: dict[int, tuple[_Version, Claimed]]
    _claimed: tuple[int, Contact] | None  # the last one that was claimed, and its contact

    def forget_claims(self) -> None:
        """Remember nothing yet, or no more: at the start, after a rollback, and after every change of a contact."""
        self._claims = {}
        self._claimed = None

    def claim(self, state: Conversation) -> Claimed:
        known = self._claims.get(state.rowid)
        if known is not None and known[0] == _version(state):
            self._claimed = state.rowid, known[1].contact
            return known[1]
        row = self.conn.execute(_CLAIMED, (state.rowid, state.id)).fetchone()
        if row is None or (row[0], row[1]) != (state.revision, state.sequence):
            stored = "nothing" if row is None else f"revision {row[0]}, sequence {row[1]}"
            raise StaleState(f"expected revision {state.revision}, sequence {state.sequence}; found {stored}")
        routed = {int(endpoint): sequence for endpoint, sequence in orjson.loads(row[2]).items()}
        claimed = Claimed(contact_of(row[3:]), routed)
        self._claimed = state.rowid, claimed.contact
        return claimed

    def insert_conversation(
        self, state: Conversation, contact: int, routed: Mapping[int, int]
    ) -> Conversation:
        times = (state.created_at, state.imported_at)
        values = (state.id, state.project, contact, *times, *_mutable(state, routed))
        rowid = self.conn.execute(_INSERT, values).lastrowid
        assert rowid is not None
        return replace(state, rowid=rowid)

    def save_conversation(self, before: Conversation, state: Conversation, routed: Mapping[int, int]) -> None:
        if _RARELY(state) != _RARELY(before):
            self.conn.execute(ALL, (*_mutable(state, routed), state.rowid))
        elif not all(map(is_, _BY_COMMANDS(state), _BY_COMMANDS(before))):  # to Python 1 equals true
            self.conn.execute(USUAL, (*_mutable(state, routed)[:-_RARE], state.rowid))
        else:
            self.conn.execute(BY_MESSAGES, (*_counted(state, routed), state.rowid))
        if self._claimed is not None and self._claimed[0] == state.rowid:
            if len(self._claims) >= _CLAIMS_MAX:
                self._claims.clear()
            self._claims[state.rowid] = _version(state), Claimed(self._claimed[1], routed)

    def erase_conversation_rows(self, rowid: int) -> None:
        """Remove the conversation's own rows; events and deliveries are removed elsewhere."""
        self._claims.pop(rowid, None)
        for table in _OWN:
            self.conn.execute(f"DELETE FROM {table} WHERE conversation = ?", (rowid,))
        self.conn.execute("DELETE FROM conversations WHERE rowid = ?", (rowid,))

    def insert_message(self, conversation: int, message: Message) -> None:
        author = message.author
        self.conn.execute(
            "INSERT INTO messages (id, conversation, number, author_type, author_id, author_name, text, internal, "
            "created_at, attachments) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            ),
        )

    def put_network_logs(self, conversation: int, snapshot: bytes, at: int) -> None:
        self.conn.execute(
            "INSERT INTO network_logs VALUES (?, ?, ?) ON CONFLICT (conversation) "
            "DO UPDATE SET snapshot = excluded.snapshot, updated_at = excluded.updated_at",
            (conversation, snapshot, at),
        )


_NO_ROW: Final = (1 << 63) - 1
_OWN: Final = ("messages", "network_logs", "workflow_runs", "imported_messages", "imported_conversations")
"""Tables whose rows go with their conversation."""


def _version(state: Conversation) -> _Version:
    return state.id, state.revision, state.sequence


def _counted(state: Conversation, routed: Mapping[int, int]) -> tuple[Any, ...]:
    """The values of _BY_MESSAGES."""
    return (
        state.revision,
        state.sequence,
        state.unread,
        state.messages,
        state.last_message_at,
        state.last_message_at or state.created_at,
        state.updated_at,
        _sent(routed),
    )


def _sent(routed: Mapping[int, int]) -> str:
    if not routed:
        return "{}"
    return orjson.dumps({str(endpoint): sequence for endpoint, sequence in routed.items()}).decode()


def _mutable(state: Conversation, routed: Mapping[int, int]) -> tuple[Any, ...]:
    """The values of _MUTABLE."""
    assignee = state.assignee
    return (
        state.revision,
        state.sequence,
        state.status,
        state.title,
        state.closed_by,
        state.closed_at,
        state.unread,
        state.archived,
        assignee and assignee.type,
        assignee and assignee.id,
        assignee and assignee.name,
        orjson.dumps(state.attributes).decode(),
        state.rating,
        state.rated_at,
        state.ticket_id,
        state.visible,
        state.messages,
        state.last_message_at,
        _sent(routed),
        state.last_message_at or state.created_at,
        state.updated_at,
        state.human,
        state.archived_at,
    )


def _conversation_of(row: tuple[Any, ...]) -> Conversation:
    return Conversation(
        id=row[0],
        project=row[1],
        created_at=row[2],
        updated_at=row[3],
        rowid=row[4],
        revision=row[5],
        title=row[6],
        status=_STATUSES.get(row[7], row[7]),
        closed_by=row[8],
        closed_at=row[9],
        unread=bool(row[10]),
        archived=bool(row[11]),
        attributes=_NO_ATTRIBUTES if row[12] == "{}" else orjson.loads(row[12]),
        rating=row[13],
        rated_at=row[14],
        ticket_id=row[15],
        visible=bool(row[16]),
        human=bool(row[17]),
        messages=row[18],
        last_message_at=row[19],
        sequence=row[20],
        assignee=None if row[21] is None else Assignee(row[21], row[22], row[23]),
        archived_at=row[24],
        imported_at=row[25],
    )


def _message_of(row: tuple[Any, ...]) -> Message:
    author = Author(row[1], row[2], row[3])
    attachments = () if row[8] is None else tuple(Attachment(*each) for each in orjson.loads(row[8]))
    return Message(row[0], author, row[4], row[5], bool(row[6]), row[7], attachments)


def packed(attachments: Sequence[Attachment]) -> str | None:
    """A message's attachments as its row has them."""
    if not attachments:
        return None
    return orjson.dumps([[each.id, each.name, each.type, each.size] for each in attachments]).decode()


def _listed(row: tuple[Any, ...]) -> Listed:
    conversation = _conversation_of(row[1:])
    return Listed(conversation, contact_of(row[1 + _WIDTH :]), Page(row[0], conversation.rowid))


def _conditions(wanted: ConversationFilter) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []
    for column, value in (
        ("c.contact", wanted.contact),
        ("c.status", wanted.status),
        ("c.archived", wanted.archived),
        ("c.assignee_id", wanted.assignee),
    ):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if not wanted.hidden:
        where.append("c.visible = 1")
    if wanted.text is not None:
        where.append(_TEXT_SEARCH)
        values += [_contains(wanted.text)] * _TEXT_SEARCH.count("?")
    return where, values


_TEXT_SEARCH: Final = (
    "(c.title LIKE ? ESCAPE '!' OR k.name LIKE ? ESCAPE '!' OR k.email LIKE ? ESCAPE '!' OR k.user_id LIKE ? ESCAPE '!' "
    "OR EXISTS (SELECT 1 FROM messages m WHERE m.conversation = c.rowid AND m.text LIKE ? ESCAPE '!'))"
)


def _contains(text: str) -> str:
    """A LIKE pattern for `text` anywhere, its own wildcards taken literally."""
    escaped = text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"
