"""Imported conversations and messages, read and written in batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.core.folding import address_key, fold
from deskwire.engine.importing.ports import (
    ConversationMark,
    Imported,
    ImportedMessageId,
    MessageMark,
    MessageRow,
)
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Changes, Queries
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of
from deskwire.storage.tables.conversations.conversations import (
    INSERT_LONG_MESSAGE,
    INSERT_MESSAGE,
    attachments_json,
)

_CONTACTS: Final = either(
    f"SELECT {CONTACT_COLUMNS} FROM {{texts}} w {{and_then}} contacts k "
    "ON k.project = ? AND k.user_id = w.value AND k.erasing = 0"
)
_TARGET: Final = CONTACT_COLUMNS.replace("k.", "t.")
_MERGED: Final = either(
    f"SELECT k.user_id, {_TARGET} FROM {{texts}} w {{and_then}} contacts k "
    "ON k.project = ? AND k.user_id = w.value AND k.erasing >= 2 "
    "JOIN contacts t ON t.rowid = k.merged_into AND t.erasing = 0 ORDER BY k.updated_at, k.rowid"
)
"""Of several contacts with one id, the latest comes last."""
_CONVERSATIONS: Final = either(
    "SELECT i.external_id, c.id, c.rowid, i.fingerprint, k.user_id FROM {texts} w {and_then} imported_conversations i "
    "ON i.project = ? AND i.external_id = w.value JOIN conversations c ON c.rowid = i.conversation "
    "JOIN contacts k ON k.rowid = c.contact"
)
_MESSAGES: Final = either(
    "SELECT i.conversation, i.external_id, i.fingerprint FROM {pairs} w {and_then} imported_messages i "
    "ON i.conversation = w.number AND i.external_id = w.text"
)


class ImportReads(Queries):
    """See `engine.importing.ports.ImportReader`."""

    def contacts_of(self, project: int, user_ids: Collection[str]) -> dict[str, Contact]:
        rows = self.conn.execute(_CONTACTS[self.dialect], (self.dialect.listed([*user_ids]), project))
        found = {contact.user_id: contact for contact in map(contact_of, rows)}
        for user_id in user_ids:
            if (
                user_id not in found
                and "@" in user_id
                and (same := self._of_address(project, user_id)) is not None
            ):
                found[user_id] = same
        return found

    def _of_address(self, project: int, user_id: str) -> Contact | None:
        """Return the oldest contact whose user id is this e-mail address in other upper and lower case letters."""
        rows = self.conn.execute(
            f"SELECT {CONTACT_COLUMNS} FROM contact_words w JOIN contacts k ON k.rowid = w.contact "
            "WHERE w.project = ? AND w.word = ? AND k.erasing = 0 ORDER BY k.rowid",
            (project, fold(user_id)),
        )
        key = address_key(user_id)
        return next((each for each in map(contact_of, rows) if address_key(each.user_id) == key), None)

    def merged_contacts(self, project: int, user_ids: Collection[str]) -> dict[str, Contact]:
        if not user_ids:
            return {}
        rows = self.conn.execute(_MERGED[self.dialect], (self.dialect.listed([*user_ids]), project))
        return {row[0]: contact_of(row[1:]) for row in rows}

    def imported_conversations(self, project: int, external_ids: Collection[str]) -> Mapping[str, Imported]:
        rows = self.conn.execute(
            _CONVERSATIONS[self.dialect], (self.dialect.listed([*external_ids]), project)
        )
        return {row[0]: Imported(*row[1:]) for row in rows}

    def imported_messages(self, messages: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], int]:
        if not messages:
            return {}
        rows = self.conn.execute(_MESSAGES[self.dialect], self.dialect.paired([*messages]))
        return {(row[0], row[1]): row[2] for row in rows}

    def imported_message(self, conversation: int, external_id: str) -> ImportedMessageId | None:
        row = self.conn.execute(
            "SELECT message FROM imported_messages WHERE conversation = ? AND external_id = ?",
            (conversation, external_id),
        ).fetchone()
        return None if row is None else ImportedMessageId(row[0])

    def unimported_messages(self, conversation: int) -> int:
        (written,) = self.conn.execute(
            "SELECT (SELECT count(*) FROM messages WHERE conversation = ?) - "
            "(SELECT count(*) FROM imported_messages WHERE conversation = ?)",
            (conversation, conversation),
        ).fetchone()
        return int(written)


class ImportWrites(Changes):
    """See `engine.importing.ports.ImportTransaction`."""

    def insert_imported(
        self,
        messages: Sequence[MessageRow],
        marks: Sequence[MessageMark],
        conversations: Sequence[ConversationMark],
    ) -> None:
        self.conn.executemany("INSERT INTO imported_conversations VALUES (?, ?, ?, ?)", conversations)
        # In runs, because lists show messages in the order of their rows.
        for long, run in groupby(messages, lambda row: row.client_id is not None or row.format is not None):
            self.conn.executemany(
                INSERT_LONG_MESSAGE if long else INSERT_MESSAGE,
                (_values(row, long=long) for row in run),
            )
        self.conn.executemany(
            "INSERT INTO imported_messages (conversation, external_id, fingerprint, message) VALUES (?, ?, ?, ?)",
            marks,
        )


def _values(row: MessageRow, *, long: bool) -> tuple[Any, ...]:
    """Return the values of a message's statement."""
    shown = row if row.attachments is None else row._replace(attachments=attachments_json(row.attachments))  # type: ignore[arg-type]  # as its column has it
    return tuple(shown) if long else tuple(shown[:-2])
