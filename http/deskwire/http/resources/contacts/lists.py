"""Lists of contacts: for backends by last change with a position to continue from, and for agents newest first."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from deskwire.engine.contacts.contact import FILTER_VALUE_MAX, contact_with_profile_view
from deskwire.engine.contacts.ports import (
    NEWEST_FIRST,
    ContactFilter,
    ContactPageKey,
    ContactReader,
    ContactSort,
    ListedContact,
)
from deskwire.engine.contacts.search_terms import search_terms
from deskwire.engine.core.values import SortOrder
from deskwire.engine.definitions.attributes import KEY_MAX, attribute_is
from deskwire.engine.events.log import read_position
from deskwire.engine.events.ports import EventReader
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Time
from deskwire.http.api.pagination import ByChange, Paged, bad_cursor, list_number, page
from deskwire.http.api.routing import Routes, dashboard, s2s
from deskwire.http.resources.contacts.contacts import CONTACTS
from deskwire.http.resources.conversations.filter_values import Tags
from deskwire.http.schemas import conversations as shapes
from deskwire.http.schemas.base import page_as_of, page_of

routes = Routes(CONTACTS)


def _attribute(text: object) -> object:
    return tuple(text.split(":", 1)) if isinstance(text, str) else text


def _named(attribute: tuple[str, ...]) -> tuple[str, ...]:
    if len(attribute) != 2 or not attribute[0]:
        raise ValueError("This must be the name of an attribute, a colon, and its value.")
    if len(attribute[0]) > KEY_MAX or len(attribute[1]) > FILTER_VALUE_MAX:
        raise ValueError(
            f"A name has at most {KEY_MAX} characters, and a value to search for at most {FILTER_VALUE_MAX}."
        )
    return attribute


Attribute = Annotated[
    tuple[str, ...],
    BeforeValidator(_attribute),
    AfterValidator(_named),
    WithJsonSchema({"type": "string", "examples": ["plan:pro"]}),
]
"""The name of an attribute and its value, separated by a colon."""
Words = Annotated[str, Field(min_length=1, max_length=200)]
Address = Annotated[str, Field(min_length=3, max_length=320)]
SortName = Literal["updated", "created"]


class ChangedContacts(ByChange):
    """The filter and order of a list of contacts, and its page.

    `q` has beginnings of words of the name, of the e-mail address, of its domain or of your own user id, or a
    telephone number with any separators. `email` is the complete
    address. `attribute` is a name and a value separated by a colon. `tag` takes one tag, or several separated by
    commas, any of which matches. `updatedSince` and `updatedBefore` limit the last change.
    """

    q: Words | None = None
    email: Address | None = None
    attribute: Attribute | None = None
    tag: Tags | None = None
    sort: SortName = "updated"
    order: SortOrder = "asc"


class ContactList(Paged):
    """The filter and order of a list of contacts, and its page.

    `q` has beginnings of words of the name, of the e-mail address, of its domain or of the backend's user id, or a
    telephone number with any separators. `email` is the complete
    address. `attribute` is a name and a value separated by a colon. `tag` takes one tag, or several separated by
    commas, any of which matches. `updatedSince` limits the last change. By default, the newest come first.
    """

    parts = 3

    q: Words | None = None
    email: Address | None = None
    attribute: Attribute | None = None
    tag: Tags | None = None
    updated_since: Time | None = None
    sort: SortName | None = None
    order: SortOrder = "desc"


class ContactListReader(ContactReader, EventReader, Protocol):
    """Reads of contacts and of the event log."""


@routes.add(
    "GET",
    "/s2s/contacts",
    s2s("contacts.read"),
    operation_id="listContacts",
    query=ChangedContacts,
    answer=page_as_of(shapes.Contact),
)
async def list_changed_contacts(call: Call[Body, ChangedContacts]) -> Answer:
    """List and search the contacts of the project, by last change unless `sort` and `order` are given.

    A contact that changes while its pages are fetched appears again on a later page, so that none is missed. After the last page,
    events after `asOf` show further changes.
    """
    query, number = call.query, list_number(call.project.id, call.query)
    goes_on = query.goes_on(number)
    after = None if goes_on is None else ContactPageKey(*goes_on[0])
    wanted, sort = _filter(query), ContactSort(query.sort, query.order)

    def read(reader: ContactListReader) -> tuple[list[ListedContact], str]:
        moment = read_position(reader, call.project.rowid) if goes_on is None else goes_on[1]
        return _found(reader, call, wanted, sort, after), moment

    found, moment = await call.services.store.read(read)
    return page(query, found, _view, lambda each: (number, each.at.value, each.at.rowid), moment)


@routes.add(
    "GET",
    "/contacts",
    dashboard("contacts.read"),
    operation_id="dashboardListContacts",
    query=ContactList,
    answer=page_of(shapes.Contact),
)
async def list_contacts(call: Call[Body, ContactList]) -> Answer:
    """List the contacts of a project, newest first unless `sort` and `order` are given.

    With `q`, every word must match the beginning of a word, without regard to case and accents.
    """
    query, number = call.query, list_number(call.project.id, call.query)
    place, after = query.place, None
    if place is not None:
        if place[0] != number:
            raise bad_cursor("This cursor is from a list with another filter or order.")
        after = ContactPageKey(*place[1:])
    sort = ContactSort(NEWEST_FIRST.key if query.sort is None else query.sort, query.order)
    wanted = _filter(query)
    found = await call.services.store.read(lambda reader: _found(reader, call, wanted, sort, after))
    return page(query, found, _view, lambda each: (number, each.at.value, each.at.rowid))


def _filter(query: ChangedContacts | ContactList) -> ContactFilter:
    """Return the filter of a list."""
    attribute = query.attribute
    return ContactFilter(
        terms=search_terms(query.q or ""),
        email=query.email,
        attribute=None if attribute is None else attribute_is(attribute[0], attribute[1]),
        tags=query.tag,
        changed_since=query.updated_since,
        changed_before=query.updated_before if isinstance(query, ChangedContacts) else None,
    )


def _found(
    reader: ContactReader,
    call: Call[Any, Any],
    wanted: ContactFilter,
    sort: ContactSort,
    after: ContactPageKey | None,
) -> list[ListedContact]:
    if call.query.q is not None and not wanted.terms:  # blanks alone
        return []
    return [*reader.listed_contacts(call.project.rowid, wanted, sort, after, call.query.rows)]


def _view(listed: ListedContact) -> dict[str, Any]:
    return contact_with_profile_view(listed.contact, listed.profile)
