"""X"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact, MergedContact, Profile
from deskwire.engine.core.values import SortOrder
from deskwire.engine.definitions.attributes import AttributeIs

ContactSortKey = Literal["made", "created", "updated"]


class ContactFilter(Struct, frozen=True):
    """The filter of a list: a contact must fit all of it; None means any.

    Args:
        terms: beginnings of words (`words.terms_of`), for each of which it has a word.
        email: its address, whatever the case.
        attribute: one with this value.
        tags: of which it has one.
        changed_since, changed_before: bounds (ms) of its last change; it is at the first or later, and before the second.
    """

    terms: tuple[str, ...] = ()
    email: str | None = None
    attribute: AttributeIs | None = None
    tags: tuple[str, ...] | None = None
    changed_since: int | None = None
    changed_before: int | None = None


class ContactSort(Struct, frozen=True):
    """The order of a list; `made` goes by when a contact was stored, which is later than its creation if it was imported.

    Of equals the contact stored later counts as the larger.
    """

    key: ContactSortKey = "made"
    order: SortOrder = "desc"


NEWEST_FIRST: Final = ContactSort()


class ContactPageKey(Struct, frozen=True):
    """The place of a contact in a list: the value of the sort's column, and the storage key."""

    value: int
    rowid: int


class ListedContact(Struct, frozen=True):
    """A contact in a list."""

    contact: Contact
    profile: Profile
    at: ContactPageKey


class ContactReader(Protocol):
    """Queries on contacts."""

    def contact(self, project: int, user_id: str) -> Contact | None:
        """Return the contact with the backend's `user_id`."""

    def contact_by_id(self, project: int, contact_id: str) -> Contact | None:
        """Return the contact with this `con_` id."""

    def profile(self, contact: int) -> Profile:
        """Return a contact's attributes and tags."""

    def profiles(self, contacts: Sequence[int]) -> Mapping[int, Profile]:
        """Return the attributes and tags of contacts, by their storage keys."""

    def contacts(self, project: int, terms: Sequence[str], limit: int) -> Sequence[Contact]:
        """Return the newest contacts that have a word for each of these beginnings of words (`words.terms_of`)."""

    def listed_contacts(
        self, project: int, wanted: ContactFilter, sort: ContactSort, after: ContactPageKey | None, limit: int
    ) -> Sequence[ListedContact]:
        """Return contacts in the order of `sort`, behind a place."""

    def survivor(self, contact: int) -> Contact | None:
        """Return the contact with this storage key; None if it was erased or merged meanwhile."""

    def merged(self, project: int, identifier: str, *, by_id: bool) -> MergedContact | None:
        """Return the contact that was merged into another one, the latest of several; by its `con_` id, or the backend's id.

        Of one whose survivor is being erased there is nothing to be found.
        """

    def merges(self) -> Sequence[tuple[str, MergedContact]]:
        """Return the merges that have begun and not ended, each with its project's id."""

    def abandoned_merges(self) -> Sequence[int]:
        """Return the contacts whose merge nobody carries out: its node's lease is over."""

    def merged_into(self, contact: int) -> Sequence[Contact]:
        """Return the contacts that were merged into this one, or are being, as they were found last."""

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

    def save_profile(self, contact: Contact, profile: Profile) -> None:
        """Store a contact's attributes and tags, with the time of its last change."""

    def lock_contacts(self, *contacts: int) -> None:
        """Have whoever refers to these contacts in a transaction of another node end that first, or see what this one does."""

    def begin_merge(self, source: int, target: int) -> None:
        """Begin a merge: from here on the source is not found any more, and its memory is the target's.

        Of two entries of one name the target's stays.
        """

    def move_responses(self, source: int, target: int, limit: int) -> int:
        """Give up to `limit` survey responses of a contact to another one; return how many."""

    def end_merge(self, source: Contact) -> bool:
        """End a merge if nothing is left to move: its identity is gone. False if there is something, or it is over."""

    def abort_merges(self, target: int) -> None:
        """End the merges into a contact that is to be erased: what they have not moved is erased with it."""

    def claim_erasure(self, contact: int, incarnation: int) -> bool:
        """Note that this life of a node carries out an erasure, or a merge; False, with nothing noted, if another one does."""

    def mark_erasing(self, contact: int) -> None:
        """Begin a contact's erasure: from here on it is not found any more."""

    def erase_contact(self, contact: int) -> None:
        """Remove a contact that has no conversation left, with its own events and their deliveries."""
