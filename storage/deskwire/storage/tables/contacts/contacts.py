"""Contacts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from deskwire.engine.audit.trail import Deed
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.words import words_of
from deskwire.engine.core.values import replace
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

CONTACT_COLUMNS: Final = (
    "k.rowid, k.id, k.user_id, k.created_at, k.updated_at, k.name, k.email, k.phone, k.avatar"
)


def contact_of(row: Sequence[Any]) -> Contact:
    """Return the contact in a row of CONTACT_COLUMNS."""
    return Contact(*row)


def _words(contact: Contact) -> frozenset[str]:
    return words_of(contact.user_id, contact.name, contact.email, contact.phone)


class ContactReads(Queries):
    """Queries on contacts; the methods are those of `ports.Reader`."""

    contact_lock = ""
    """What is said behind a look for a contact, so that it stays as it is for the transaction."""

    def contact(self, project: int, user_id: str) -> Contact | None:
        return self._contact("user_id", project, user_id)

    def contact_by_id(self, project: int, contact_id: str) -> Contact | None:
        return self._contact("id", project, contact_id)

    def _contact(self, column: str, project: int, value: str) -> Contact | None:
        row = self.conn.execute(
            f"SELECT {CONTACT_COLUMNS} FROM contacts k WHERE project = ? AND k.{column} = ? AND erasing = 0"
            f"{self.contact_lock}",
            (project, value),
        ).fetchone()
        return None if row is None else contact_of(row)

    def erasing(self) -> Sequence[tuple[str, Contact]]:
        rows = self.conn.execute(
            f"SELECT p.id, {CONTACT_COLUMNS} FROM contacts k JOIN projects p ON p.rowid = k.project "
            "WHERE k.erasing = 1"
        )
        return [(row[0], contact_of(row[1:])) for row in rows]


class ContactWrites(AuditWrites):
    """Changes of contacts; the methods are those of `ports.Transaction`."""

    def insert_contact(self, project: int, contact: Contact) -> Contact:
        rowid = self.inserted(
            "INSERT INTO contacts (id, project, user_id, name, email, phone, avatar, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                contact.id,
                project,
                contact.user_id,
                contact.name,
                contact.email,
                contact.phone,
                contact.avatar,
                contact.created_at,
                contact.updated_at,
            ),
        )
        stored = replace(contact, rowid=rowid)
        self._write_words(project, stored, _words(stored))
        return stored

    def save_contact(self, contact: Contact) -> None:
        self.conn.execute(
            "UPDATE contacts SET name = ?, email = ?, phone = ?, avatar = ?, updated_at = ? WHERE rowid = ?",
            (contact.name, contact.email, contact.phone, contact.avatar, contact.updated_at, contact.rowid),
        )
        self._save_words(contact)

    def _save_words(self, contact: Contact) -> None:
        key = (contact.rowid,)
        (project,) = self.conn.execute("SELECT project FROM contacts WHERE rowid = ?", key).fetchone()
        known = self.conn.execute("SELECT word FROM contact_words WHERE contact = ?", key)
        before, now = {word for (word,) in known}, _words(contact)
        gone = [(project, word, contact.rowid) for word in before - now]
        self.conn.executemany("DELETE FROM contact_words WHERE (project, word, contact) = (?, ?, ?)", gone)
        self._write_words(project, contact, now - before)

    def _write_words(self, project: int, contact: Contact, words: Collection[str]) -> None:
        rows = [(project, word, contact.rowid) for word in words]
        self.conn.executemany("INSERT INTO contact_words VALUES (?, ?, ?)", rows)

    def mark_erasing(self, contact: int) -> None:
        self.conn.execute("UPDATE contacts SET erasing = 1 WHERE rowid = ?", (contact,))
        row = self.conn.execute("SELECT id, project FROM contacts WHERE rowid = ?", (contact,)).fetchone()
        self.record(Deed("contact.erased", row[0], project=row[1]))

    def erase_contact_row(self, contact: int) -> None:
        """Remove the contact itself; its events and deliveries are removed elsewhere."""
        row = self.conn.execute("SELECT id FROM contacts WHERE rowid = ?", (contact,)).fetchone()
        if row is not None:
            self.pseudonymise_in_audit(row[0])
        for table in ("contact_words", "contact_tags", "contact_attributes", "contact_erasures"):
            self.conn.execute(f"DELETE FROM {table} WHERE contact = ?", (contact,))
        self.conn.execute("DELETE FROM contacts WHERE rowid = ?", (contact,))
