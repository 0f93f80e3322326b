"""The queries and changes of a store that contacts need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from deskwire.engine.contacts.contact import Contact


class ContactReader(Protocol):
    """Queries on contacts."""

    def contact(self, project: int, user_id: str) -> Contact | None:
        """Return the contact with the backend's `user_id`."""

    def contact_by_id(self, project: int, contact_id: str) -> Contact | None:
        """Return the contact with this `con_` id."""

    def contacts(
        self, project: int, terms: Sequence[str], before: int | None, limit: int
    ) -> Sequence[Contact]:
        """Return contacts, newest first, with a `rowid` smaller than `before`.

        Args:
            terms: beginnings of words (`words.terms_of`), for each of which a contact has a word.
        """

    def erasing(self) -> Sequence[tuple[str, Contact]]:
        """Return contacts whose erasure has begun and not ended, each with its project's id."""

    def abandoned_erasures(self) -> Sequence[int]:
        """Return those of them whose erasure nobody carries out: its node's lease is over."""


class ContactTransaction(ContactReader, Protocol):
    """Changes of contacts."""

    def insert_contact(self, project: int, contact: Contact) -> Contact:
        """Store a new contact; returns it with its `rowid`."""

    def save_contact(self, contact: Contact) -> None:
        """Store a changed contact."""

    def take_erasure(self, contact: int, incarnation: int) -> bool:
        """Note that this life of a node carries an erasure out; False, with nothing noted, if another one does."""

    def mark_erasing(self, contact: int) -> None:
        """Begin a contact's erasure: from here on it is not found any more."""

    def erase_contact(self, contact: int) -> None:
        """Remove a contact that has no conversation left, with its own events and their deliveries."""
