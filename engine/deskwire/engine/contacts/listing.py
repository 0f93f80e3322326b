"""Lists of contacts: their filters, their orders, and places in them."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.profile import Profile
from deskwire.engine.core.sorting import Order
from deskwire.engine.definitions.attributes import AttributeIs

SortKey = Literal["made", "created", "updated"]


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


class Sort(Struct, frozen=True):
    """The order of a list; `made` goes by when a contact was stored, which is later than its creation if it was imported.

    Of equals the contact stored later counts as the larger.
    """

    key: SortKey = "made"
    order: Order = "desc"


NEWEST_FIRST: Final = Sort()


class Place(Struct, frozen=True):
    """The place of a contact in a list: the value of the sort's column, and the storage key."""

    value: int
    rowid: int


class Listed(Struct, frozen=True):
    """A contact in a list."""

    contact: Contact
    profile: Profile
    at: Place
