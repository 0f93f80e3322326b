"""Contacts for a project's own backend (decisions 4)."""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import IDENTITY, Contact, contact_view
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.conversations.listing import ConversationFilter
from deskwire.engine.core.errors import Invalid, NotFound, Problem
from deskwire.engine.core.store import Inline
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Flag, Query
from deskwire.http.api.routing import MEDIUM, Routes, Tag, s2s
from deskwire.http.resources.conversations import operations
from deskwire.http.resources.conversations.requests import ConversationList, Identity
from deskwire.http.schemas import conversations as shapes
from deskwire.http.schemas.base import Deleted, page_of

CONTACTS: Final = Tag(
    "Contacts", "Manage contacts, the customers of a project, and export what is stored about them."
)
routes = Routes(CONTACTS)
_READ = s2s("contacts.read")
_MANAGE = s2s("contacts.manage")
_CONVERSATIONS = s2s("conversations.read")
_ONE = "/s2s/contacts/<user_id>"
_DELETE = "conversations.delete"
_USER_ID_MAX = 255


class ContactConversations(ConversationList):
    """The filters of a list of a contact's conversations, and its page."""

    archived: Flag | None = None


async def _look_at_user_id(call: Call[Identity, Query]) -> None:
    _user_id(call)


@routes.add(
    "PUT",
    _ONE,
    _MANAGE,
    operation_id="putContactIdentity",
    body=Identity,
    limit=MEDIUM,
    answer=shapes.Contact,
    further=(_look_at_user_id,),
    unrecorded="An event tells of it, `contact.updated`.",
)
async def put_contact_identity(call: Call[Identity, Query]) -> Answer:
    """Create a contact or replace its identity. Fields left out become null."""
    user_id, now = _user_id(call), call.services.clock()
    ref = ContactRef(user_id, {name: getattr(call.body, name) for name in IDENTITY})
    return contact_view(await call.services.store.write(lambda tx: put_contact(tx, call.project, ref, now)))


@routes.add("GET", _ONE, _READ, operation_id="getContact", answer=shapes.Contact)
async def get_contact(call: Call[Body, Query]) -> Answer:
    """Fetch a contact by your own id of the user."""
    return contact_view(await _contact(call))


@routes.add(
    "DELETE",
    _ONE,
    _MANAGE,
    operation_id="deleteContact",
    answer=Deleted,
    errors=("erasure_under_way",),
    records=("contact.erased",),
)
async def delete_contact(call: Call[Body, Query]) -> Answer:
    """Erase a contact and all its conversations (GDPR). A machine credential needs `conversations.delete`, too."""
    call.access.require(_DELETE)
    contact = await call.services.erasures.erase(call.project, call.path["user_id"], call.by)
    return {"id": contact.id, "deleted": True}


@routes.add(
    "GET",
    f"{_ONE}/conversations",
    _CONVERSATIONS,
    operation_id="listContactConversations",
    query=ContactConversations,
    answer=page_of(shapes.Conversation),
)
async def list_contact_conversations(call: Call[Body, ContactConversations]) -> Answer:
    """List the conversations of a contact, newest activity first."""
    contact = await _contact(call)
    criteria = ConversationFilter(
        contact=contact.rowid,
        statuses=None if call.query.status is None else (call.query.status,),
        archived=call.query.archived,
        visible=True,
    )
    return await operations.list_conversations(call, criteria)


def _user_id(call: Call[Identity, Query]) -> str:
    """Return the user id of a contact that may be new. Raises Invalid."""
    user_id = call.path["user_id"]
    if len(user_id) > _USER_ID_MAX:
        message = f"A user id has at most {_USER_ID_MAX} characters."
        raise Invalid(Problem("", "too_long", message), detail=message)
    return user_id


async def _contact(call: Call[Body, Query] | Call[Body, ContactConversations]) -> Contact:
    return await call.services.store.read(
        Inline(lambda reader: find(reader, call.project, call.path["user_id"]))
    )


def find(reader: ContactReader, project: Project, user_id: str) -> Contact:
    """Return the stored contact. Raises NotFound."""
    contact = reader.contact(project.rowid, user_id)
    if contact is None:
        raise NotFound("There is no such contact.", code="contact_not_found")
    return contact
