"""Conversations, their messages and network logs, and the conversations past their retention period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Author, Conversation, Message
from deskwire.engine.conversations.ports import Claimed, ExpiredConversation
from deskwire.engine.core.errors import StaleState
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.upload import Attachment
from deskwire.storage.dialect import differing, either, postgres_json
from deskwire.storage.tables.accounts.people import PROJECT, as_project
from deskwire.storage.tables.base import Changes, Queries
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of
from deskwire.storage.tables.conversations.columns import (
    INSERT,
    SELECTED,
    WIDTH,
    conversation_of,
    insertion,
    routed_of,
    update,
)
from deskwire.storage.tables.conversations.mentions import mentions_json, mentions_of
from deskwire.storage.tables.workflows import run_of

WITH_CONTACT: Final = (
    f"SELECT r.state, {SELECTED}, {CONTACT_COLUMNS} FROM conversations c JOIN contacts k ON k.rowid = c.contact "
    "LEFT JOIN workflow_runs r ON r.conversation = c.rowid"
)
_ONE: Final = f"{WITH_CONTACT} WHERE c.id = ? AND c.project = ?"
MESSAGE: Final = "id, author_type, author_id, author_name, text, created_at, internal, number, attachments, redacted_at, deleted_at, client_id, format, mentions, shown_in"
_INSERTED: Final = "id, conversation, number, author_type, author_id, author_name, text, internal, created_at, attachments, sequence"
INSERT_MESSAGE: Final = (
    f"INSERT INTO messages ({_INSERTED}, project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
    "(SELECT project FROM conversations WHERE rowid = ?2))"
)
# Only messages with a client id or a format need these columns; the statement for the many others stays short.
INSERT_LONG_MESSAGE: Final = (
    f"INSERT INTO messages ({_INSERTED}, project, client_id, format) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
    "(SELECT project FROM conversations WHERE rowid = ?2), ?12, ?13)"
)
INSERT_MENTIONING_NOTE: Final = (
    f"INSERT INTO messages ({_INSERTED}, project, format, mentions) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
    "(SELECT project FROM conversations WHERE rowid = ?2), ?12, ?13)"
)
_REQUESTS: Final = differing(
    sqlite="SELECT updated_at, coalesce(json_array_length(CAST(snapshot AS TEXT), '$.requests'), 0) "
    "FROM network_logs WHERE conversation = ?",
    postgres="SELECT updated_at, CASE json_typeof(s.requests) WHEN 'array' THEN json_array_length(s.requests) ELSE 0 END "
    f"FROM (SELECT updated_at, {postgres_json('snapshot')} -> 'requests' AS requests "
    "FROM network_logs WHERE conversation = ?) AS s",
)
NEWEST_SHOWN: Final = (
    "(SELECT max(s.rowid) FROM conversations c JOIN messages s ON s.shown_in = c.id "
    "WHERE c.rowid = k.value AND s.deleted_at IS NULL AND s.internal <= {})"
)
"""The newest message of another conversation that `k` shows; for conversations that were split off, and have none of their own."""
_NEWEST: Final = either(
    f"SELECT k.value, {', '.join(f'm.{column}' for column in MESSAGE.split(', '))} FROM {{numbers}} k "
    "{and_then} messages m ON m.rowid = coalesce((SELECT rowid FROM messages WHERE conversation = k.value AND internal = 0 "
    f"AND deleted_at IS NULL ORDER BY rowid DESC LIMIT 1), {NEWEST_SHOWN.format(0)})"
)
_CLAIMED: Final = (
    f"SELECT c.revision, c.sequence, c.updated_at, c.routed, {CONTACT_COLUMNS} FROM conversations c "
    "JOIN contacts k ON k.rowid = c.contact WHERE c.rowid = ? AND c.id = ?"
)
_CLAIMS_MAX: Final = 4_096
"""Conversations in the cache of claims, at most 4 MB."""

_Version = tuple[str, int, int]


def conversation_with_contact(row: Sequence[Any]) -> tuple[Conversation, Contact]:
    """Return the conversation and the contact in a row of WITH_CONTACT."""
    run, state = run_of(row[0]), conversation_of(row[1:])
    return (state if run is None else replace(state, run=run)), contact_of(row[1 + WIDTH :])


class ConversationReads(Queries):
    """Queries on conversations; see `conversations.ports.ConversationReader`."""

    def conversation(self, project: int, conversation_id: str) -> tuple[Conversation, Contact] | None:
        row = self.conn.execute(_ONE, (conversation_id, project)).fetchone()
        if row is None:
            return None
        return conversation_with_contact((row[0], conversation_id, *row[2:]))  # shares the caller's string

    def conversation_ids(self, contact: int) -> Sequence[str]:
        sql = "SELECT id FROM conversations WHERE contact = ? ORDER BY created_at, rowid"
        return [row[0] for row in self.conn.execute(sql, (contact,))]

    def message_rowid(self, conversation: int, message_id: str, *, internal: bool) -> int | None:
        row = self.conn.execute(
            "SELECT rowid FROM messages WHERE id = ? AND conversation = ? AND internal <= ?",
            (message_id, conversation, internal),
        ).fetchone()
        return None if row is None else int(row[0])

    def message(self, conversation: int, message_id: str, *, internal: bool) -> Message | None:
        row = self.conn.execute(
            f"SELECT {MESSAGE} FROM messages WHERE id = ? AND conversation = ? AND internal <= ? AND deleted_at IS NULL",
            (message_id, conversation, internal),
        ).fetchone()
        return None if row is None else message_of(row)

    def message_by_client_id(self, conversation: int, client_id: str) -> Message | None:
        row = self.conn.execute(
            f"SELECT {MESSAGE} FROM messages WHERE conversation = ? AND client_id = ?",
            (conversation, client_id),
        ).fetchone()
        return None if row is None else message_of(row)

    def conversation_by_client_id(self, contact: int, client_id: str) -> str | None:
        row = self.conn.execute(
            "SELECT c.id FROM conversation_client_ids i JOIN conversations c ON c.rowid = i.conversation "
            "WHERE i.contact = ? AND i.client_id = ?",
            (contact, client_id),
        ).fetchone()
        return None if row is None else str(row[0])

    def visible_conversation(self, project: int, contact: int, conversation_id: str) -> int | None:
        row = self.conn.execute(
            "SELECT rowid FROM conversations WHERE id = ? AND project = ? AND contact = ? AND visible = 1",
            (conversation_id, project, contact),
        ).fetchone()
        return None if row is None else int(row[0])

    def newest_messages(self, conversations: Sequence[int]) -> Mapping[int, Message]:
        rows = self.conn.execute(_NEWEST[self.dialect], (self.dialect.listed(conversations),))
        return {row[0]: message_of(row[1:]) for row in rows}

    def message_index(self, conversation: int, message_id: str) -> int | None:
        row = self.conn.execute(
            "SELECT number FROM messages WHERE id = ? AND conversation = ?", (message_id, conversation)
        ).fetchone()
        return None if row is None else row[0]

    def message_id_at(self, conversation: int, index: int) -> str | None:
        # Newest first, because the message is usually among the newest ones.
        row = self.conn.execute(
            "SELECT id FROM messages WHERE conversation = ? AND number = ? ORDER BY rowid DESC LIMIT 1",
            (conversation, index),
        ).fetchone()
        return None if row is None else str(row[0])

    def messages(
        self,
        conversation: int,
        *,
        internal: bool,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        deleted: bool = False,
        newest: bool = False,
    ) -> Sequence[Message]:
        newest = newest or (before is not None and after is None)
        sql = (
            f"SELECT {MESSAGE} FROM messages WHERE conversation = ? AND internal <= ? AND rowid > ? "
            f"AND rowid < ? {'' if deleted else 'AND deleted_at IS NULL '}"
            f"ORDER BY rowid {'DESC' if newest else 'ASC'} LIMIT ?"
        )
        values = (conversation, internal, after or 0, before or _NO_ROW, _NO_ROW if limit is None else limit)
        found = [message_of(row) for row in self.conn.execute(sql, values)]
        return found[::-1] if newest else found

    def network_requests(self, conversation: int) -> tuple[int, int] | None:
        row = self.conn.execute(_REQUESTS[self.dialect], (conversation,)).fetchone()
        return None if row is None else (row[0], row[1])

    def network_logs(self, conversation: int) -> bytes | None:
        row = self.conn.execute(
            "SELECT snapshot FROM network_logs WHERE conversation = ?", (conversation,)
        ).fetchone()
        return None if row is None else bytes(row[0])


class ConversationWrites(Changes):
    """Changes of conversations; see `conversations.ports.ConversationTransaction`.

    Claims of busy conversations are cached. The cache is valid because this class makes all changes.
    """

    _claims: dict[int, tuple[_Version, Claimed]]
    _claimed: tuple[int, Contact] | None  # the last claimed conversation, and its contact

    def clear_claims(self) -> None:
        """Clear the cache: at the start, after a rollback, and after every change of a contact."""
        self._claims = {}
        self._claimed = None

    def claim(self, state: Conversation) -> Claimed:
        known = self._claims.get(state.rowid)
        if known is not None and known[0] == (state.id, state.revision, state.sequence):
            self._claimed = state.rowid, known[1].contact
            return known[1]
        row = self.conn.execute(_CLAIMED, (state.rowid, state.id)).fetchone()
        require_same(state, None if row is None else row[:3])
        claimed = Claimed(contact_of(row[4:]), routed_of(row[3]))
        self._claimed = state.rowid, claimed.contact
        return claimed

    def insert_conversation(
        self, state: Conversation, contact: int, routed: Mapping[int, int]
    ) -> Conversation:
        rowid = self.inserted(INSERT, insertion(state, contact, routed))
        return replace(state, rowid=rowid)

    def insert_conversation_client_id(self, contact: int, client_id: str, state: Conversation) -> None:
        self.conn.execute(
            "INSERT INTO conversation_client_ids (contact, client_id, conversation) VALUES (?, ?, ?)",
            (contact, client_id, state.rowid),
        )

    def move_conversation_client_id(self, conversation: int, source: int, target: int) -> None:
        self.conn.execute(
            "INSERT INTO conversation_client_ids (contact, client_id, conversation) "
            "SELECT ?, i.client_id, i.conversation FROM conversation_client_ids i "
            "WHERE i.conversation = ? AND i.contact = ? ON CONFLICT (contact, client_id) DO NOTHING",
            (target, conversation, source),
        )
        self.conn.execute(
            "DELETE FROM conversation_client_ids WHERE conversation = ? AND contact = ?",
            (conversation, source),
        )

    def save_conversation(self, before: Conversation, state: Conversation, routed: Mapping[int, int]) -> None:
        self.conn.execute(*update(before, state, routed))
        if self._claimed is not None and self._claimed[0] == state.rowid:
            if len(self._claims) >= _CLAIMS_MAX:
                self._claims.clear()
            version = state.id, state.revision, state.sequence
            self._claims[state.rowid] = version, Claimed(self._claimed[1], routed)

    def move_conversation(self, conversation: int, source: int, target: int) -> None:
        self._claims.pop(conversation, None)
        self.conn.execute(
            "UPDATE conversations SET contact = ? WHERE rowid = ? AND contact = ?",
            (target, conversation, source),
        )

    def note_moved(self, conversation: int, source: int, event_id: str) -> None:
        self.conn.execute(
            "INSERT INTO moved_conversations (conversation, contact, since, upto) "
            "SELECT ?1, ?2, coalesce(max(m.upto), ''), ?3 FROM moved_conversations m WHERE m.conversation = ?1",
            (conversation, source, event_id),
        )

    def erase_conversation_rows(self, rowid: int) -> None:
        """Remove the conversation's own rows, without its events and deliveries."""
        self._claims.pop(rowid, None)
        for table in _OWN:
            self.conn.execute(f"DELETE FROM {table} WHERE conversation = ?", (rowid,))
        # A bulk job still counts the conversation, but keeps nothing of it.
        self.conn.execute(
            "UPDATE bulk_job_items SET conversation = NULL, trace = NULL WHERE conversation = ?", (rowid,)
        )
        self.conn.execute("DELETE FROM conversations WHERE rowid = ?", (rowid,))

    def insert_message(self, conversation: int, message: Message, sequence: int | None) -> None:
        author = message.author
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
        )
        if message.mentions:
            self.conn.execute(
                INSERT_MENTIONING_NOTE, (*values, message.format, mentions_json(message.mentions))
            )
        elif message.client_id is None and message.format is None:
            self.conn.execute(INSERT_MESSAGE, values)
        else:
            self.conn.execute(INSERT_LONG_MESSAGE, (*values, message.client_id, message.format))

    def rewrite_message(self, conversation: int, message: Message, at: int) -> None:
        self.conn.execute(
            "UPDATE messages SET text = ?, attachments = ?, mentions = ?, redacted_at = ?, deleted_at = ?, format = ? "
            "WHERE id = ? AND conversation = ?",
            (
                message.text,
                attachments_json(message.attachments),
                mentions_json(message.mentions),
                message.redacted_at,
                at if message.deleted else None,
                message.format,
                message.id,
                conversation,
            ),
        )
        self.conn.execute(
            "INSERT INTO search_changes (conversation, reworded) VALUES (?, 1)", (conversation,)
        )
        self.want_scrub()

    def attached_in(self, conversation: int) -> set[str]:
        """Return the ids of the uploads attached to the conversation's messages."""
        rows = self.conn.execute(
            "SELECT attachments FROM messages WHERE conversation = ? AND attachments IS NOT NULL",
            (conversation,),
        )
        return {each[0] for (attachments,) in rows for each in orjson.loads(attachments)}

    def number_messages(self, conversation: int, first: int) -> None:
        self.conn.execute(
            "UPDATE messages SET sequence = ? + number WHERE conversation = ? AND number IS NOT NULL",
            (first, conversation),
        )

    def put_network_logs(self, conversation: int, snapshot: bytes, at: int) -> None:
        self.conn.execute(
            "INSERT INTO network_logs VALUES (?, ?, ?) ON CONFLICT (conversation) "
            "DO UPDATE SET snapshot = excluded.snapshot, updated_at = excluded.updated_at",
            (conversation, snapshot, at),
        )


_NO_ROW: Final = (1 << 63) - 1
_OWN: Final = (
    "messages",
    "network_logs",
    "workflow_runs",
    "workflow_ends",
    "imported_messages",
    "imported_conversations",
    "conversation_tags",
    "conversation_activity",
    "milestones",
    "agent_seen",
    "mentions",
    "followers",
    "drafts",
    "held_messages",
    "moved_conversations",
    "conversation_client_ids",
    "conversation_merges",
    "passed_on_messages",
)
"""Tables whose rows are deleted with their conversation."""


def require_same(state: Conversation, stored: Sequence[int] | None) -> None:
    """Raise StaleState unless revision, sequence and last change of the stored state are those of this state.

    The time of the last change is compared because a database that lost commits in a fail-over gives their numbers again.
    """
    expected = (state.revision, state.sequence, state.updated_at)
    found = None if stored is None else tuple(stored)
    if found != expected:
        raise StaleState(
            f"expected revision, sequence and last change {expected}; found {found or 'nothing'}"
        )


def message_of(row: tuple[Any, ...]) -> Message:
    author = Author(row[1], row[2], row[3])
    attachments = () if row[8] is None else tuple(Attachment(*each) for each in orjson.loads(row[8]))
    return Message(
        row[0],
        author,
        row[4],
        row[5],
        bool(row[6]),
        row[7],
        attachments,
        row[9],
        row[10] is not None,
        row[11],
        row[12],
        mentions_of(row[13]),
        row[14],
    )


def attachments_json(attachments: Sequence[Attachment]) -> str | None:
    """Return attachments in the form of their column."""
    if not attachments:
        return None
    return orjson.dumps([[each.id, each.name, each.type, each.size] for each in attachments]).decode()


_DUE: Final = (
    "SELECT p.id, c.id, c.messages + c.sequence, {time}, c.rowid FROM conversations c "
    "JOIN projects p ON p.rowid = c.project WHERE {chosen} AND {time} < ? AND ({time}, c.rowid) > (?, ?) "
    "ORDER BY {time}, c.rowid LIMIT ?"
)
BOT_ONLY: Final = _DUE.format(
    time="coalesce(c.imported_at, c.created_at)", chosen="c.human = 0 AND c.merged_into IS NULL"
)
ARCHIVED: Final = _DUE.format(time="c.archived_at", chosen="c.project = ? AND c.merged_into IS NULL")
PROJECTS: Final = (
    f"SELECT {PROJECT} FROM projects p WHERE p.archived_retention_days IS NOT NULL AND EXISTS ("
    "SELECT 1 FROM conversations c WHERE c.project = p.rowid "
    "AND c.merged_into IS NULL AND c.archived_at < ? - p.archived_retention_days * ?)"
)


class ExpiryReads(Queries):
    """Queries on expired conversations; see `conversations.ports.ExpiryReader`."""

    def bot_only_before(
        self, created_before: int, after: tuple[int, int], limit: int
    ) -> Sequence[ExpiredConversation]:
        return [_due_of(row) for row in self.conn.execute(BOT_ONLY, (created_before, *after, limit))]

    def archived_before(
        self, project: int, archived_before: int, after: tuple[int, int], limit: int
    ) -> Sequence[ExpiredConversation]:
        rows = self.conn.execute(ARCHIVED, (project, archived_before, *after, limit))
        return [_due_of(row) for row in rows]

    def projects_with_expired(self, now: int, day_ms: int) -> Sequence[Project]:
        return [as_project(row) for row in self.conn.execute(PROJECTS, (now, day_ms))]


def _due_of(row: tuple[Any, ...]) -> ExpiredConversation:
    project, conversation, rows, *place = row
    return ExpiredConversation(project, conversation, rows, (place[0], place[1]))
