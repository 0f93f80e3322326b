"""Contacts for agents, signed in as users (contract 2.2, decisions 3, 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field

from deskwire.engine.contacts.contact import IDENTITY, Contact, contact_view
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.contacts.words import terms_of
from deskwire.engine.conversations.contacts import change_contact
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import Inline
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, given_fields, nulls
from deskwire.http.api.pagination import EMPTY_PAGE, Paged, page
from deskwire.http.api.routing import MEDIUM, Routes, dashboard
from deskwire.http.resources.contacts.contacts import CONTACTS
from deskwire.http.resources.conversations.requests import Identity
from deskwire.http.schemas import conversations as shapes
from deskwire.http.schemas.base import page_of

B = TypeVar("B", bound=Body)

routes = Routes(CONTACTS)
_ONE: Final = "/contacts/<contact_id>"
_READ: Final = dashboard("contacts.read")
_MANAGE: Final = dashboard("contacts.manage")


class ContactList(Paged):
    """The words to look for, and the page of the list.

    `q` has beginnings of words of the name, or of the e-mail address, its domain or the backend's user id.
    """

    q: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class ContactPatch(Identity):
    """The fields to change. Null clears a field."""


@routes.add(
    "GET",
    "/contacts",
    _READ,
    operation_id="dashboardListContacts",
    query=ContactList,
    answer=page_of(shapes.Contact),
)
async def list_contacts(call: Call[Body, ContactList]) -> Answer:
    """List the contacts of a project, newest first.

    With `q`, those that have a word for each word of it, whatever the case and the accents.
    """
    query, before = call.query, call.query.row
    terms = terms_of(query.q or "")
    if query.q is not None and not terms:
        return EMPTY_PAGE
    found = await call.services.store.read(
        lambda reader: reader.contacts(call.project.rowid, terms, before, query.rows)
    )
    return page(query, found, contact_view, lambda contact: contact.rowid)


@routes.add("GET", _ONE, _READ, operation_id="dashboardGetContact", answer=shapes.Contact)
async def get_contact(call: Call[Body, Query]) -> Answer:
    """Fetch a contact."""
    return contact_view(await call.services.store.read(Inline(_contact(call))))


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="dashboardChangeContact",
    body=ContactPatch,
    limit=MEDIUM,
    answer=shapes.Contact,
    further=(nulls(*IDENTITY),),
    unrecorded="An event tells of it, `contact.updated`.",
)
async def patch_contact(call: Call[ContactPatch, Query]) -> Answer:
    """Change identity fields of a contact. The fields left out stay as they are."""
    find, now = _contact(call), call.services.clock()
    changes: dict[str, Any] = given_fields(call.body, frozenset(IDENTITY))

    def change(tx: Transaction) -> Contact:
        return change_contact(tx, call.project, find(tx), changes, now)

    return contact_view(await call.services.store.write(change))


def _contact(call: Call[B, Query]) -> Callable[[ContactReader], Contact]:
    """Return the query for the contact in the path; it raises NotFound."""
    project, contact_id = call.project.rowid, call.path["contact_id"]

    def find(reader: ContactReader) -> Contact:
        contact = reader.contact_by_id(project, contact_id) if is_id(contact_id, "con") else None
        if contact is None:
            raise NotFound("There is no such contact.", code="contact_not_found")
        return contact

    return find
