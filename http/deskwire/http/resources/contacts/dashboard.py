"""Contacts for agents, signed in as users (contract 2.2, decisions 3, 4)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.contacts.contact import (
    IDENTITY,
    Contact,
    Profile,
    contact_with_profile_view,
    find_contact,
    no_such_contact,
)
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.customers.presence import ContactKey
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, nulls
from deskwire.http.api.routing import LARGE, MEDIUM, Routes, dashboard, fresh
from deskwire.http.resources.contacts.contacts import CONTACTS, ChangeContactRequest, change, merge, profiled
from deskwire.http.schemas import conversations as shapes
from deskwire.http.schemas.base import Deleted
from deskwire.http.schemas.customer_events import ContactPresence

routes = Routes(CONTACTS)
_ONE: Final = "/contacts/<contact_id>"
_READ: Final = dashboard("contacts.read")
_CHANGES: Final = "contacts.manage"
_MANAGE: Final = dashboard(_CHANGES)


class DashboardMergeContactRequest(Body):
    """The contact to merge into the one in the path, by its id."""

    source: Annotated[str, Field(alias="from", min_length=1, max_length=40)]


@routes.add("GET", _ONE, _READ, operation_id="dashboardGetContact", answer=shapes.Contact)
async def get_contact(call: Call[Body, Query]) -> Answer:
    """Fetch a contact."""
    project, contact_id = call.project.rowid, _contact_id(call)

    def read(reader: ContactReader) -> tuple[Contact, Profile]:
        return profiled(reader, find_contact(reader, project, contact_id, by_id=True))

    return contact_with_profile_view(*await call.services.store.read(InlineQuery(read)))


@routes.add(
    "GET",
    f"{_ONE}/presence",
    _READ,
    operation_id="getContactPresence",
    answer=ContactPresence,
)
async def get_presence(call: Call[Body, Query]) -> Answer:
    """Fetch whether a contact has the widget open, and on which page of your website.

    Pages that show a conversation of the contact get changes on their stream, as `contact.presence`.
    """
    project, contact_id = call.project.rowid, _contact_id(call)
    contact = await call.services.store.read(
        InlineQuery(lambda reader: find_contact(reader, project, contact_id, by_id=True))
    )
    return await call.services.customer_streams.presence.ask(ContactKey(project, contact.id))


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="dashboardChangeContact",
    body=ChangeContactRequest,
    limit=LARGE,
    answer=shapes.Contact,
    further=(nulls(*IDENTITY),),
    unrecorded="The events `contact.updated` and `contact.changed` show it.",
)
async def patch_contact(call: Call[ChangeContactRequest, Query]) -> Answer:
    """Change the identity, attributes or tags of a contact. Omitted fields stay."""
    return await change(call, _contact_id(call), by_id=True)


@routes.add(
    "POST",
    f"{_ONE}/merge",
    _MANAGE,
    operation_id="dashboardMergeContact",
    body=DashboardMergeContactRequest,
    limit=MEDIUM,
    answer=shapes.Contact,
    errors=("merge_under_way",),
    records=("contact.merged", "contact.merged_away"),
    forgets=True,
)
async def merge_contact(call: Call[DashboardMergeContactRequest, Query]) -> Answer:
    """Merge another contact into this one, which receives everything of the other one.

    If both have a value for an identity field, an attribute or a memory entry, this contact's value stays.
    """
    return await merge(call, _contact_id(call), by_id=True)


@routes.add(
    "DELETE",
    _ONE,
    fresh(dashboard("conversations.delete")),
    operation_id="dashboardDeleteContact",
    answer=Deleted,
    errors=("erasure_under_way",),
    records=("contact.erased",),
)
async def delete_contact(call: Call[Body, Query]) -> Answer:
    """Erase a contact and all its conversations (GDPR). A machine credential also needs `contacts.manage`."""
    call.access.require(_CHANGES)
    project, contact_id = call.project, _contact_id(call)
    named = await call.services.store.read(
        InlineQuery(lambda reader: find_contact(reader, project.rowid, contact_id, by_id=True))
    )
    contact = await call.services.erasures.erase(project, named.user_id, call.origin)
    return {"id": contact.id, "deleted": True}


def _contact_id(call: Call[Any, Query]) -> str:
    """Return the id in the path. Raises NotFound for a malformed id."""
    contact_id = call.path["contact_id"]
    if not is_id(contact_id, "con"):
        raise no_such_contact(None)
    return contact_id
