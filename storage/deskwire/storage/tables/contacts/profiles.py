"""Attributes and tags of contacts: as JSON in the contact's row, and in tables that find contacts by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.profile import BLANK, Profile, filtered
from deskwire.engine.conversations.tags import tag_key
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Changes, Queries

PROFILE_COLUMNS: Final = "k.attributes, k.tags"
_PROFILES: Final = either(
    f"SELECT k.rowid, {PROFILE_COLUMNS} FROM {{numbers}} w {{and_then}} contacts k ON k.rowid = w.value"
)


def profile_of(attributes: str, tags: str) -> Profile:
    """Return the profile that PROFILE_COLUMNS have."""
    if attributes == "{}" and tags == "[]":
        return BLANK
    return Profile(orjson.loads(attributes), tuple(orjson.loads(tags)))


class ProfileReads(Queries):
    """The methods are those of `contacts.ports.ContactReader`."""

    profile_lock = ""
    """What is said behind a look for profiles, so that nobody else changes them until the transaction ends."""

    def profile(self, contact: int) -> Profile:
        return self.profiles((contact,)).get(contact, BLANK)

    def profiles(self, contacts: Sequence[int]) -> Mapping[int, Profile]:
        if not contacts:
            return {}
        rows = self.conn.execute(
            f"{_PROFILES[self.dialect]}{self.profile_lock}", (self.dialect.listed(list(contacts)),)
        )
        return {row[0]: profile_of(*row[1:]) for row in rows}


class ProfileWrites(Changes):
    """The methods are those of `contacts.ports.ContactTransaction`."""

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
            [(row[0], *each, contact.rowid) for each in filtered(profile.attributes).items()],
        )

    def forget_profile(self, contact: int) -> None:
        """Have a contact found by no tag and no attribute."""
        for table in ("contact_tags", "contact_attributes"):
            self.conn.execute(f"DELETE FROM {table} WHERE contact = ?", (contact,))
