"""Contacts that were merged into another one: what is left of them says where they went."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.core.errors import NotFound


class Merged(Struct, frozen=True):
    """A contact that was merged into another one, or with `under_way` is being."""

    source: Contact
    target: Contact
    under_way: bool


class ContactFinder(Protocol):
    """Queries by which a contact is found, or where it went."""

    def contact(self, project: int, user_id: str) -> Contact | None:
        """See `ContactReader`."""

    def contact_by_id(self, project: int, contact_id: str) -> Contact | None:
        """See `ContactReader`."""

    def merged(self, project: int, identifier: str, *, by_id: bool) -> Merged | None:
        """See `ContactReader`."""


def found_contact(reader: ContactFinder, project: int, identifier: str, *, by_id: bool) -> Contact:
    """Return the contact with this `con_` id, or the backend's id.

    Raises NotFound: `contact_merged` of one that was merged into another one, and `contact_not_found`.
    """
    find = reader.contact_by_id if by_id else reader.contact
    contact = find(project, identifier)
    if contact is None:
        raise no_such_contact(reader.merged(project, identifier, by_id=by_id))
    return contact


def no_such_contact(merged: Merged | None) -> NotFound:
    """Return the refusal for a contact that is not there; it says where the contact went, if it was merged."""
    if merged is None:
        return NotFound("There is no such contact.", code="contact_not_found")
    into = {"id": merged.target.id, "userId": merged.target.user_id}
    return NotFound(
        "The contact was merged into another one, which `mergedInto` names.",
        code="contact_merged",
        shown={"mergedInto": into},
    )
