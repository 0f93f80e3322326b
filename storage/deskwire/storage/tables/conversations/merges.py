"""Merges and splits of conversations: records, the thread of several conversations, and messages that were passed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.listing import MessagePlace, ThreadMessage
from deskwire.engine.conversations.merge_records import BeforeMerge, MergeRecord
from deskwire.engine.conversations.split_decisions import OwnedMessage
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Changes, Queries
from deskwire.storage.tables.conversations.columns import SELECTED, conversation_of
from deskwire.storage.tables.conversations.conversations import MESSAGE, message_of

_COLUMNS: Final = MESSAGE.split(", ")
_OF_MESSAGE: Final = ", ".join(f"m.{column}" for column in _COLUMNS)
_CREATED_AT, _ROWID = str(_COLUMNS.index("created_at") + 1), str(len(_COLUMNS) + 2)  # numbers of columns
_PASSED_ON: Final = (
    f"SELECT {_OF_MESSAGE}, c.id FROM conversations c JOIN messages m ON m.conversation = c.rowid "
    "WHERE c.id = ?1 AND c.project = ?2 AND m.client_id = ?3 "
    f"UNION ALL SELECT {_OF_MESSAGE}, t.id FROM conversations c "
    "JOIN passed_on_messages p ON p.conversation = c.rowid AND p.client_id = ?3 "
    "JOIN messages m ON m.id = p.message JOIN conversations t ON t.rowid = m.conversation "
    "WHERE c.id = ?1 AND c.project = ?2 LIMIT 1"
)
_CONVERSATIONS: Final = either(
    f"SELECT {SELECTED} FROM {{texts}} w {{and_then}} conversations c ON c.id = w.value WHERE c.project = ?"
)
_THREAD: Final = either(
    f"SELECT {_OF_MESSAGE}, m.sequence, m.rowid, m.conversation FROM {{numbers}} k "
    "{and_then} messages m ON m.conversation = k.value WHERE m.deleted_at IS NULL AND m.internal <= ? "
)
_SHOWN: Final = either(
    f"SELECT {_OF_MESSAGE}, m.sequence, m.rowid, m.conversation FROM {{texts}} w "
    "{and_then} messages m ON m.shown_in = w.value WHERE m.conversation NOT IN (SELECT k.value FROM {numbers} k) "
    "AND m.deleted_at IS NULL AND m.internal <= ? "
)
_ORDERS: Final = {False: ("m.rowid",), True: ("m.created_at", "m.rowid")}
_PLACES: Final = {False: (_ROWID,), True: (_CREATED_AT, _ROWID)}
_PLACE: Final = either(
    "SELECT m.created_at, m.rowid FROM messages m WHERE m.id = ? AND m.internal <= ? "
    "AND (m.conversation IN (SELECT k.value FROM {numbers} k) OR m.shown_in IN (SELECT w.value FROM {texts} w))"
)
_ASKED: Final = "m.author_type = 'contact' AND m.internal = 0 AND m.created_at >= ?"
_FIRST_OF_CONTACT: Final = either(
    "SELECT min(t.created_at) FROM (SELECT m.created_at FROM {numbers} k {and_then} messages m ON m.conversation = k.value "
    f"WHERE {_ASKED} AND (m.shown_in IS NULL OR m.shown_in IN (SELECT w.value FROM {{texts}} w)) "
    "UNION ALL SELECT m.created_at FROM {texts} w {and_then} messages m ON m.shown_in = w.value "
    f"WHERE {_ASKED} AND m.conversation <> ?) AS t"
)
_OWNED: Final = either(
    f"SELECT {_OF_MESSAGE}, m.conversation FROM {{texts}} w {{and_then}} messages m ON m.id = w.value "
    "WHERE m.project = ? ORDER BY m.created_at, m.rowid"
)


class ConversationMergeReads(Queries):
    """Queries on merged conversations; see `conversations.ports.ConversationReader`."""

    def message_passed_on(
        self, project: int, conversation_id: str, client_id: str
    ) -> tuple[Message, str] | None:
        row = self.conn.execute(_PASSED_ON, (conversation_id, project, client_id)).fetchone()
        return None if row is None else (message_of(row), row[-1])

    def conversations_by_id(self, project: int, ids: Sequence[str]) -> Sequence[Conversation]:
        rows = self.conn.execute(_CONVERSATIONS[self.dialect], (self.dialect.listed(ids), project))
        return [conversation_of(row) for row in rows]

    def thread_messages(
        self,
        conversations: Sequence[int],
        *,
        shown_in: Sequence[str],
        by_time: bool,
        internal: bool,
        after: MessagePlace | None,
        before: MessagePlace | None,
        newest_first: bool,
        limit: int,
    ) -> Sequence[ThreadMessage]:
        order, keys = _ORDERS[by_time], self.dialect.listed(conversations)
        between, bounds = "", list[int]()
        for place, sign in ((after, ">"), (before, "<")):
            if place is not None:
                marks = ", ".join("?" for _ in order)
                between += f"AND ({', '.join(order)}) {sign} ({marks}) "
                bounds += (place.at, place.rowid)[-len(order) :]
        sql, values = f"{_THREAD[self.dialect]}{between}", [keys, int(internal), *bounds]
        if shown_in:
            # A union is ordered by the numbers of its columns.
            order = _PLACES[by_time]
            sql += f"UNION ALL {_SHOWN[self.dialect]}{between}"
            values += [self.dialect.listed(shown_in), keys, int(internal), *bounds]
        direction = "DESC" if newest_first else "ASC"
        sql += f"ORDER BY {', '.join(f'{column} {direction}' for column in order)} LIMIT ?"
        rows = self.conn.execute(sql, (*values, limit))
        return [ThreadMessage(message_of(row), *row[-3:]) for row in rows]

    def message_place(
        self, conversations: Sequence[int], shown_in: Sequence[str], message_id: str, *, internal: bool
    ) -> MessagePlace | None:
        among = self.dialect.listed(conversations), self.dialect.listed(shown_in)
        row = self.conn.execute(_PLACE[self.dialect], (message_id, int(internal), *among)).fetchone()
        return None if row is None else MessagePlace(*row)

    def newest_index_at(
        self, conversation: int, place: MessagePlace, shown_in: Sequence[str] | None = None
    ) -> int | None:
        among = "" if shown_in is None else f"AND shown_in IN ({', '.join('?' for _ in shown_in)}) "
        row = self.conn.execute(
            f"SELECT number FROM messages WHERE conversation = ? AND rowid <= ? AND number IS NOT NULL {among}"
            "ORDER BY rowid DESC LIMIT 1",
            (conversation, place.rowid, *(shown_in or ())),
        ).fetchone()
        return None if row is None else int(row[0])

    def first_of_contact(
        self, conversations: Sequence[int], shown_in: Sequence[str], since: int, *, without: int = 0
    ) -> int | None:
        ids = self.dialect.listed(shown_in)
        values = (self.dialect.listed(conversations), since, ids, ids, since, without)
        row = self.conn.execute(_FIRST_OF_CONTACT[self.dialect], values).fetchone()
        return None if row is None else row[0]

    def owned_messages(self, project: int, message_ids: Sequence[str]) -> Sequence[OwnedMessage]:
        rows = self.conn.execute(_OWNED[self.dialect], (self.dialect.listed(message_ids), project))
        return [OwnedMessage(message_of(row), row[-1]) for row in rows]

    def merge_of(self, conversation: int) -> MergeRecord | None:
        row = self.conn.execute(
            "SELECT conversation, target, at, record FROM conversation_merges WHERE conversation = ?",
            (conversation,),
        ).fetchone()
        return None if row is None else _record_of(row)

    def follower_keys(self, conversation: int) -> Sequence[int]:
        rows = self.conn.execute(
            "SELECT f.user FROM followers f WHERE f.conversation = ? ORDER BY f.user", (conversation,)
        )
        return [row[0] for row in rows]


class ConversationMergeWrites(Changes):
    """Changes of merges; see `conversations.ports.ConversationTransaction`."""

    def note_passed_on(self, project: int, conversation_id: str, message: Message) -> None:
        self.conn.execute(
            "INSERT INTO passed_on_messages (conversation, client_id, message) "
            "SELECT c.rowid, ?, ? FROM conversations c WHERE c.id = ? AND c.project = ? "
            "ON CONFLICT (conversation, client_id) DO UPDATE SET message = excluded.message",
            (message.client_id, message.id, conversation_id, project),
        )

    def show_in(self, message_ids: Sequence[str], conversation_id: str) -> None:
        for each in message_ids:
            self.conn.execute("UPDATE messages SET shown_in = ? WHERE id = ?", (conversation_id, each))

    def show_only_in_own(self, conversation_id: str) -> None:
        self.conn.execute("UPDATE messages SET shown_in = NULL WHERE shown_in = ?", (conversation_id,))

    def put_merge(self, record: MergeRecord) -> None:
        self.conn.execute(
            "INSERT INTO conversation_merges (conversation, target, at, record) VALUES (?, ?, ?, ?)",
            (
                record.conversation,
                record.target,
                record.at,
                msgspec.json.encode(record.before).decode(),
            ),
        )

    def delete_merge(self, conversation: int) -> None:
        self.conn.execute("DELETE FROM conversation_merges WHERE conversation = ?", (conversation,))


def _record_of(row: Sequence[Any]) -> MergeRecord:
    conversation, target, at, before = row
    return MergeRecord(conversation, target, at, msgspec.json.decode(before, type=BeforeMerge))
