"""Merges of contacts.

The row of a merged contact stays because its events and other rows refer to it. It is deleted with the contact into which it
was merged. The column `erasing` is 2 during a merge and 3 after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.contacts.contact import Contact, MergedContact
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of

_WIDTH: Final = len(CONTACT_COLUMNS.split(", "))
_TARGET: Final = CONTACT_COLUMNS.replace("k.", "t.")
_MERGED: Final = (
    f"SELECT k.erasing, {CONTACT_COLUMNS}, {_TARGET} FROM contacts k "
    "JOIN contacts t ON t.rowid = k.merged_into AND t.erasing = 0 WHERE k.project = ? AND k.erasing >= 2"
)
_UNDER_WAY: Final = (
    f"SELECT k.erasing, {CONTACT_COLUMNS}, {_TARGET}, p.id FROM contacts k JOIN contacts t ON t.rowid = k.merged_into "
    "JOIN projects p ON p.rowid = k.project WHERE k.erasing = 2"
)


def _merged_of(row: Sequence[Any]) -> MergedContact:
    return MergedContact(
        contact_of(row[1 : 1 + _WIDTH]), contact_of(row[1 + _WIDTH : 1 + 2 * _WIDTH]), row[0] == 2
    )


class MergeReads(Queries):
    """Implements `contacts.ports.ContactReader`."""

    def survivor(self, contact: int) -> Contact | None:
        row = self.conn.execute(
            f"SELECT {CONTACT_COLUMNS} FROM contacts k WHERE k.rowid = ? AND k.erasing = 0", (contact,)
        ).fetchone()
        return None if row is None else contact_of(row)

    def merged(self, project: int, identifier: str, *, by_id: bool) -> MergedContact | None:
        column = "id" if by_id else "user_id"
        row = self.conn.execute(
            f"{_MERGED} AND k.{column} = ? ORDER BY k.updated_at DESC, k.rowid DESC LIMIT 1",
            (project, identifier),
        ).fetchone()
        return None if row is None else _merged_of(row)

    def merges(self) -> Sequence[tuple[str, MergedContact]]:
        return [(row[-1], _merged_of(row)) for row in self.conn.execute(_UNDER_WAY)]

    def abandoned_merges(self) -> Sequence[int]:
        rows = self.conn.execute(
            "SELECT k.rowid FROM contacts k WHERE k.erasing = 2 AND NOT EXISTS (SELECT 1 FROM contact_erasures e "
            "JOIN nodes n ON n.incarnation = e.incarnation WHERE e.contact = k.rowid) ORDER BY k.rowid"
        )
        return [row[0] for row in rows]

    def merged_into(self, contact: int) -> Sequence[Contact]:
        rows = self.conn.execute(
            f"SELECT {CONTACT_COLUMNS} FROM contacts k WHERE k.merged_into = ? ORDER BY k.rowid", (contact,)
        )
        return [contact_of(row) for row in rows]


class MergeWrites(MergeReads, AuditWrites):
    """Implements `contacts.ports.ContactTransaction`."""

    def lock_contacts(self, *contacts: int) -> None:
        """See the port. SQLite has a single writer, so there is nothing to lock."""

    def begin_merge(self, source: int, target: int) -> None:
        self.conn.execute(
            "UPDATE contacts SET erasing = 2, merged_into = ?, attributes = '{}', tags = '[]' WHERE rowid = ?",
            (target, source),
        )
        self.conn.execute("UPDATE contacts SET merged_into = ? WHERE merged_into = ?", (target, source))
        for table in ("contact_words", "contact_tags", "contact_attributes"):
            self.conn.execute(f"DELETE FROM {table} WHERE contact = ?", (source,))
        self._move_memory(source, target)
        for contact, action in ((source, "contact.merged_away"), (target, "contact.merged")):
            row = self.conn.execute("SELECT id, project FROM contacts WHERE rowid = ?", (contact,)).fetchone()
            self.record(AuditEntry(action, row[0], project=row[1]))

    def move_responses(self, source: int, target: int, limit: int) -> int:
        return self.conn.execute(
            "UPDATE survey_responses SET contact = ? WHERE rowid IN "
            "(SELECT r.rowid FROM survey_responses r WHERE r.contact = ? ORDER BY r.rowid LIMIT ?)",
            (target, source, limit),
        ).rowcount

    def end_merge(self, source: Contact) -> bool:
        self.lock_contacts(source.rowid)
        for table in ("conversations", "tickets", "survey_responses", "memory"):
            sql = f"SELECT 1 FROM {table} WHERE contact = ? LIMIT 1"
            if self.conn.execute(sql, (source.rowid,)).fetchone() is not None:
                return False
        ended = self.conn.execute(
            "UPDATE contacts SET erasing = 3, name = NULL, email = NULL, phone = NULL, avatar = NULL, blocked = NULL, updated_at = ? "
            "WHERE rowid = ? AND erasing = 2",
            (source.updated_at, source.rowid),
        ).rowcount
        self._release_claim(source.rowid)
        return bool(ended)

    def abort_merges(self, target: int) -> None:
        for contact in self.merged_into(target):
            self._release_claim(contact.rowid)
        self.conn.execute("UPDATE contacts SET erasing = 3 WHERE merged_into = ? AND erasing = 2", (target,))

    def _release_claim(self, source: int) -> None:
        self.conn.execute("DELETE FROM contact_erasures WHERE contact = ?", (source,))

    def _move_memory(self, source: int, target: int) -> None:
        self.conn.execute(
            "UPDATE memory SET contact = ?1 WHERE contact = ?2 AND name NOT IN "
            "(SELECT m.name FROM memory m WHERE m.contact = ?1)",
            (target, source),
        )
        if self.conn.execute("DELETE FROM memory WHERE contact = ?", (source,)).rowcount:
            self.want_scrub()
