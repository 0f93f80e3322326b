"""What was brought in from elsewhere, many rows at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

import orjson

from deskwire.engine.importing.ports import Imported, MessageMark, MessageRow
from deskwire.storage.conversations import packed


class ImportReads:
    """The methods are those of `engine.importing.ports.ImportReader`."""

    conn: sqlite3.Connection

    def imported_conversations(self, project: int, external_ids: Collection[str]) -> Mapping[str, Imported]:
        rows = self.conn.execute(
            "SELECT i.external_id, c.id, c.rowid, i.fingerprint FROM json_each(?) w CROSS JOIN imported_conversations i "
            "ON i.project = ? AND i.external_id = w.value JOIN conversations c ON c.rowid = i.conversation",
            (orjson.dumps(list(external_ids)).decode(), project),
        )
        return {row[0]: Imported(*row[1:]) for row in rows}

    def imported_messages(self, messages: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], int]:
        if not messages:
            return {}
        rows = self.conn.execute(
            "SELECT i.conversation, i.external_id, i.fingerprint FROM json_each(?) w CROSS JOIN imported_messages i "
            "ON i.conversation = json_extract(w.value, '$[0]') AND i.external_id = json_extract(w.value, '$[1]')",
            (orjson.dumps(list(messages)).decode(),),
        )
        return {(row[0], row[1]): row[2] for row in rows}


class ImportWrites:
    """The methods are those of `engine.importing.ports.ImportTransaction`."""

    conn: sqlite3.Connection

    def note_imported_conversation(
        self, project: int, external_id: str, conversation: int, fingerprint: int
    ) -> None:
        self.conn.execute(
            "INSERT INTO imported_conversations VALUES (?, ?, ?, ?)",
            (project, external_id, conversation, fingerprint),
        )

    def insert_imported_messages(self, rows: Sequence[MessageRow], marks: Sequence[MessageMark]) -> None:
        self.conn.executemany(
            "INSERT INTO messages (id, conversation, number, author_type, author_id, author_name, text, internal, "
            "created_at, attachments) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row if row.attachments is None else (*row[:-1], packed(row.attachments)) for row in rows),
        )
        self.conn.executemany("INSERT INTO imported_messages VALUES (?, ?, ?)", marks)
