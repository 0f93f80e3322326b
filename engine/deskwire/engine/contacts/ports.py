"""The store port of contacts: filters, sort orders and page keys of lists, queries and changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact, MergedContact, Profile
from deskwire.engine.core.values import SortOrder
from deskwire.engine.definitions.attributes import AttributeIs

ContactSortKey = Literal["made", "created", "updated"]


class ContactFilter(Struct, frozen=True):
    """The filter of a list. A contact must match all of it. None means any.

    Args:
        terms: prefixes (`search_terms.search_terms`), each of which must match a word of the contact.
        email: e-mail address, compared without case.
        attribute: attribute and value.
        tags: tags of which the contact must have at least one.
        changed_since, changed_before: bounds (ms) of the last change, the first inclusive, the second exclusive.
    """

    terms: tuple[str, ...] = ()
    email: str | None = None
    attribute: AttributeIs | None = None
    tags: tuple[str, ...] | None = None
    changed_since: int | None = None
    changed_before: int | None = None


class ContactSort(Struct, frozen=True):
    """The sort order of a list.

    `made` sorts by the time of storage, which for imported contacts is later than their creation. Contacts with equal values
    are sorted by storage key.
    """

    key: ContactSortKey = "made"
    order: SortOrder = "desc"


NEWEST_FIRST: Final = ContactSort()


class ContactPageKey(Struct, frozen=True):
    """The page key of a contact in a list: its value in the sort column, and its storage key."""

    value: int
    rowid: int


class ListedContact(Struct, frozen=True):
    """A contact in a list, with its profile and page key."""

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
        """Return the newest contacts that match all terms (`search_terms.search_terms`)."""

    def listed_contacts(
        self, project: int, wanted: ContactFilter, sort: ContactSort, after: ContactPageKey | None, limit: int
    ) -> Sequence[ListedContact]:
        """Return contacts in the order of `sort`, after a page key."""

    def survivor(self, contact: int) -> Contact | None:
        """Return the contact with this storage key.

        None if it was erased or merged in the meantime.
        """

    def merged(self, project: int, identifier: str, *, by_id: bool) -> MergedContact | None:
        """Return a merged contact by its `con_` id or the backend's id, the latest if there are several.

        None if the contact into which it was merged is being erased.
        """

    def merges(self) -> Sequence[tuple[str, MergedContact]]:
        """Return the merges in progress, each with the id of its project."""

    def abandoned_merges(self) -> Sequence[int]:
        """Return the storage keys of contacts whose merge is abandoned because the lease of its node has expired."""

    def merged_into(self, contact: int) -> Sequence[Contact]:
        """Return the contacts that were merged into this one, or are being merged, with their last identity."""

    def erasing(self) -> Sequence[tuple[str, Contact]]:
        """Return the contacts whose erasure is in progress, each with the id of its project."""

    def abandoned_erasures(self) -> Sequence[int]:
        """Return the storage keys of contacts whose erasure is abandoned because the lease of its node has expired."""


class ContactTransaction(ContactReader, Protocol):
    """Changes of contacts."""

    def insert_contact(self, project: int, contact: Contact) -> Contact:
        """Store a new contact. Return it with its `rowid`."""

    def save_contact(self, contact: Contact) -> None:
        """Store a changed contact."""

    def lock_writing_of(self, contact: int) -> None:
        """Wait for the commits of other nodes that write in conversations of a contact, or create one, and block further ones."""

    def save_block(self, contact: Contact) -> None:
        """Store a contact's block or its end, and the time of its last change."""

    def record_block(self, project: int, contact: Contact) -> None:
        """Record in the audit trail that a contact was blocked or unblocked."""

    def save_profile(self, contact: Contact, profile: Profile) -> None:
        """Store a contact's attributes and tags, and the time of its last change."""

    def lock_contacts(self, *contacts: int) -> None:
        """Lock these contact rows against concurrent references by transactions of other nodes."""

    def begin_merge(self, source: int, target: int) -> None:
        """Start a merge: the source is no longer found, and its memory entries move to the target.

        If both have an entry with the same name, the target's entry stays.
        """

    def move_responses(self, source: int, target: int, limit: int) -> int:
        """Move up to `limit` survey responses to another contact. Return the number moved."""

    def end_merge(self, source: Contact) -> bool:
        """End a merge and erase the source's identity.

        Return False if data is left to move, or the merge has ended already.
        """

    def abort_merges(self, target: int) -> None:
        """Abort merges into a contact that is about to be erased.

        Data that they have not moved is erased with it.
        """

    def claim_erasure(self, contact: int, incarnation: int) -> bool:
        """Claim an erasure or a merge for this incarnation of a node.

        Return False if another one has claimed it.
        """

    def mark_erasing(self, contact: int) -> None:
        """Start a contact's erasure: it is no longer found."""

    def erase_contact(self, contact: int) -> None:
        """Delete a contact without conversations, with its own events and their deliveries."""
