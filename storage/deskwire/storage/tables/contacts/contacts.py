"""Contacts with their search words, attributes, tags and memory entries.

Attributes and tags are stored as JSON in the contact's row, and in tables by which filters find contacts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.contacts.contact import EMPTY_PROFILE, Contact, Profile, filterable_attributes
from deskwire.engine.contacts.memory import MemoryEntry
from deskwire.engine.contacts.search_terms import search_words
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.values import replace
from deskwire.storage.dialect import either
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Changes, Queries

CONTACT_COLUMNS: Final = (
    "k.rowid, k.id, k.user_id, k.created_at, k.updated_at, k.name, k.email, k.phone, k.avatar, k.blocked"
)


def contact_of(row: Sequence[Any]) -> Contact:
    """Return the contact in a row of CONTACT_COLUMNS."""
    return Contact(*row)


def _words(contact: Contact) -> frozenset[str]:
    return search_words(contact.user_id, contact.name, contact.email, contact.phone)


class ContactReads(Queries):
    """Queries on contacts. Implements `ContactReader`."""

    contact_lock = ""
    """SQL after a query for a contact that locks its row for the transaction. Empty for SQLite."""

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
    """Changes of contacts. Implements `ContactTransaction`."""

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

    def lock_writing_of(self, contact: int) -> None:
        """See the port. SQLite has a single writer, so there is nothing to lock."""

    def save_block(self, contact: Contact) -> None:
        self.conn.execute(
            "UPDATE contacts SET blocked = ?, updated_at = ? WHERE rowid = ?",
            (contact.blocked, contact.updated_at, contact.rowid),
        )

    def record_block(self, project: int, contact: Contact) -> None:
        action = "contact.unblocked" if contact.blocked is None else "contact.blocked"
        self.record(AuditEntry(action, contact.id, project=project))

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
        self.record(AuditEntry("contact.erased", row[0], project=row[1]))

    def erase_contact_row(self, contact: int) -> None:
        """Delete the contact itself. The caller deletes its events and deliveries."""
        row = self.conn.execute("SELECT id FROM contacts WHERE rowid = ?", (contact,)).fetchone()
        if row is not None:
            self.pseudonymise_in_audit(row[0])
        for table in _OWN:
            self.conn.execute(f"DELETE FROM {table} WHERE contact = ?", (contact,))
        # Sessions stay, ended and without their contact, so that their tokens are refused (`tables.customers`).
        self.conn.execute("UPDATE contact_sessions SET contact = NULL WHERE contact = ?", (contact,))
        self.conn.execute("DELETE FROM contacts WHERE rowid = ?", (contact,))


_OWN: Final = (
    "contact_words",
    "contact_tags",
    "contact_attributes",
    "contact_erasures",
    "conversation_client_ids",
)
"""Tables whose rows are deleted with their contact."""

PROFILE_COLUMNS: Final = "k.attributes, k.tags"
_PROFILES: Final = either(
    f"SELECT k.rowid, {PROFILE_COLUMNS} FROM {{numbers}} w {{and_then}} contacts k ON k.rowid = w.value"
)


def profile_of(attributes: str, tags: str) -> Profile:
    """Return the profile in the values of PROFILE_COLUMNS."""
    if attributes == "{}" and tags == "[]":
        return EMPTY_PROFILE
    return Profile(orjson.loads(attributes), tuple(orjson.loads(tags)))


class ProfileReads(Queries):
    """Implements `contacts.ports.ContactReader`."""

    profile_lock = ""
    """SQL after a query for profiles that locks their rows for the transaction. Empty for SQLite."""

    def profile(self, contact: int) -> Profile:
        return self.profiles((contact,)).get(contact, EMPTY_PROFILE)

    def profiles(self, contacts: Sequence[int]) -> Mapping[int, Profile]:
        if not contacts:
            return {}
        rows = self.conn.execute(
            f"{_PROFILES[self.dialect]}{self.profile_lock}", (self.dialect.listed(list(contacts)),)
        )
        return {row[0]: profile_of(*row[1:]) for row in rows}


class ProfileWrites(Changes):
    """Implements `contacts.ports.ContactTransaction`."""

    def save_profile(self, contact: Contact, profile: Profile) -> None:
        attributes, tags = orjson.dumps(profile.attributes).decode(), orjson.dumps(profile.tags).decode()
        row = self.conn.execute(
            "UPDATE contacts SET attributes = ?, tags = ?, updated_at = ? WHERE rowid = ? RETURNING project",
            (attributes, tags, contact.updated_at, contact.rowid),
        ).fetchone()
        self.forget_profile(contact.rowid)
        self.conn.executemany(
            "INSERT INTO contact_tags (project, tag, contact, folded) VALUES (?, ?, ?, ?)",
            [(row[0], tag, contact.rowid, tag_key(tag)) for tag in profile.tags],
        )
        self.conn.executemany(
            "INSERT INTO contact_attributes VALUES (?, ?, ?, ?)",
            [(row[0], *each, contact.rowid) for each in filterable_attributes(profile.attributes).items()],
        )

    def forget_profile(self, contact: int) -> None:
        """Remove a contact from the tables by which filters find tags and attributes."""
        for table in ("contact_tags", "contact_attributes"):
            self.conn.execute(f"DELETE FROM {table} WHERE contact = ?", (contact,))


_COLUMNS: Final = "rowid, id, name, content, description, created_at, updated_at"
_NO_ROW: Final = (1 << 63) - 1


class MemoryReads(Queries):
    """Implements `engine.contacts.memory.MemoryReader`."""

    def memory_entries(self, contact: int, before: int | None, limit: int) -> Sequence[MemoryEntry]:
        rows = self.conn.execute(
            f"SELECT {_COLUMNS} FROM memory WHERE contact = ? AND rowid < ? ORDER BY rowid DESC LIMIT ?",
            (contact, _NO_ROW if before is None else before, limit),
        )
        return [MemoryEntry(*row) for row in rows]

    def memory_entry(self, contact: int, name: str) -> MemoryEntry | None:
        sql = f"SELECT {_COLUMNS} FROM memory WHERE contact = ? AND name = ?"
        row = self.conn.execute(sql, (contact, name)).fetchone()
        return None if row is None else MemoryEntry(*row)

    def memory_size(self, contact: int) -> int:
        row = self.conn.execute("SELECT count(*) FROM memory WHERE contact = ?", (contact,)).fetchone()
        return int(row[0])


class MemoryWrites(Changes):
    """Implements `engine.contacts.memory.MemoryTransaction`."""

    def put_memory_entry(self, contact: int, entry: MemoryEntry) -> MemoryEntry:
        if entry.rowid:
            self.conn.execute(
                "UPDATE memory SET content = ?, description = ?, updated_at = ? WHERE rowid = ?",
                (entry.content, entry.description, entry.updated_at, entry.rowid),
            )
            return entry
        rowid = self.inserted(
            "INSERT INTO memory (id, contact, name, content, description, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                entry.id,
                contact,
                entry.name,
                entry.content,
                entry.description,
                entry.created_at,
                entry.updated_at,
            ),
        )
        return replace(entry, rowid=rowid)

    def delete_memory_entry(self, entry: MemoryEntry) -> None:
        self.conn.execute("DELETE FROM memory WHERE rowid = ?", (entry.rowid,))
        self.want_scrub()

    def clear_memory(self, contact: int) -> int:
        deleted = self.conn.execute("DELETE FROM memory WHERE contact = ?", (contact,)).rowcount
        if deleted:
            self.want_scrub()
        return deleted
