"""Imported conversations and messages, many rows at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

import orjson

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.importing.ports import ConversationMark, Imported, MessageMark, MessageRow
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of
from deskwire.storage.tables.conversations.conversations import packed


class ImportReads:
    """The methods are those of `engine.importing.ports.ImportReader`."""

    conn: sqlite3.Connection

    def contacts_of(self, project: int, user_ids: Collection[str]) -> dict[str, Contact]:
        rows = self.conn.execute(
            f"SELECT {CONTACT_COLUMNS} FROM json_each(?) w CROSS JOIN contacts k "
            "ON k.project = ? AND k.user_id = w.value AND k.erasing = 0",
            (_json(user_ids), project),
        )
        return {contact.user_id: contact for contact in map(contact_of, rows)}

    def imported_conversations(self, project: int, external_ids: Collection[str]) -> Mapping[str, Imported]:
        rows = self.conn.execute(
            "SELECT i.external_id, c.id, c.rowid, i.fingerprint FROM json_each(?) w CROSS JOIN imported_conversations i "
            "ON i.project = ? AND i.external_id = w.value JOIN conversations c ON c.rowid = i.conversation",
            (_json(external_ids), project),
        )
        return {row[0]: Imported(*row[1:]) for row in rows}

    def imported_messages(self, messages: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], int]:
        if not messages:
            return {}
        rows = self.conn.execute(
            "SELECT i.conversation, i.external_id, i.fingerprint FROM json_each(?) w CROSS JOIN imported_messages i "
            "ON i.conversation = json_extract(w.value, '$[0]') AND i.external_id = json_extract(w.value, '$[1]')",
            (_json(messages),),
        )
        return {(row[0], row[1]): row[2] for row in rows}


class ImportWrites:
    """The methods are those of `engine.importing.ports.ImportTransaction`."""

    conn: sqlite3.Connection

    def insert_imported(
        self,
        messages: Sequence[MessageRow],
        marks: Sequence[MessageMark],
        conversations: Sequence[ConversationMark],
    ) -> None:
        self.conn.executemany("INSERT INTO imported_conversations VALUES (?, ?, ?, ?)", conversations)
        self.conn.executemany(
            "INSERT INTO messages (id, conversation, number, author_type, author_id, author_name, text, internal, "
            "created_at, attachments, sequence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                row if row.attachments is None else (*row[:-2], packed(row.attachments), row.sequence)
                for row in messages
            ),
        )
        self.conn.executemany("INSERT INTO imported_messages VALUES (?, ?, ?)", marks)


def _json(values: Collection[object]) -> str:
    """Return a list as JSON, to be looked up in one statement."""
    return orjson.dumps(list(values)).decode()
