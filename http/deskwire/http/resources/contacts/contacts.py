"""Contacts for a project's own backend (decisions 4)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import (
    IDENTITY,
    Contact,
    Profile,
    contact_with_profile_view,
    find_contact,
)
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import change_contact, change_profile, put_contact
from deskwire.engine.conversations.listing import ConversationFilter
from deskwire.engine.conversations.tags import TAGS_MAX, normal_tags
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.merging.merges import MergeRequest
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Flag, Query, given_fields, is_blank, nulls
from deskwire.http.api.routing import LARGE, MEDIUM, Routes, Tag, s2s
from deskwire.http.resources.conversations import operations
from deskwire.http.resources.conversations.operations import actor_of
from deskwire.http.resources.conversations.requests import ConversationList, PutContactIdentityRequest
from deskwire.http.resources.fields import Attributes, UserId
from deskwire.http.resources.fields import Tag as ContactTag
from deskwire.http.schemas import conversations as shapes
from deskwire.http.schemas.base import Deleted, page_of

CONTACTS: Final = Tag("Contacts", "Manage contacts, the customers of a project, and export their data.")
routes = Routes(CONTACTS)
_READ = s2s("contacts.read")
CHANGE: Final = "contacts.manage"
_MANAGE = s2s(CHANGE)
_CONVERSATIONS = s2s("conversations.read")
_ONE = "/s2s/contacts/<user_id>"
_DELETE = "conversations.delete"
_USER_ID_MAX = 255


class ChangeContactRequest(PutContactIdentityRequest):
    """The fields to change.

    `attributes` are merged, and a null in them removes a key; `tags` replaces all tags, which are compared and shown in lower
    case. Null clears an identity field.
    """

    attributes: Attributes | None = None
    tags: Annotated[list[ContactTag], Field(max_length=TAGS_MAX)] | None = None


class MergeContactRequest(Body):
    """The contact to merge into the one in the path, by your own user id."""

    source: Annotated[UserId, Field(alias="from")]


class ContactConversations(ConversationList):
    """The filters of a list of a contact's conversations, and its page."""

    archived: Flag | None = None


async def _check_user_id(call: Call[PutContactIdentityRequest, Query]) -> None:
    _user_id(call)


@routes.add(
    "PUT",
    _ONE,
    _MANAGE,
    operation_id="putContactIdentity",
    body=PutContactIdentityRequest,
    limit=MEDIUM,
    answer=shapes.Contact,
    further=(_check_user_id,),
    unrecorded="The event `contact.updated` shows it.",
)
async def put_contact_identity(call: Call[PutContactIdentityRequest, Query]) -> Answer:
    """Create a contact or replace its identity. Omitted identity fields become null; attributes and tags stay."""
    user_id, now = _user_id(call), call.services.clock()
    ref = ContactRef(user_id, {name: getattr(call.body, name) for name in IDENTITY}, pointer="")

    def put(tx: Transaction) -> tuple[Contact, Profile]:
        contact = put_contact(tx, call.project, ref, now)
        return contact, tx.profile(contact.rowid)

    return contact_with_profile_view(*await call.services.store.write(put))


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="changeContact",
    body=ChangeContactRequest,
    limit=LARGE,
    answer=shapes.Contact,
    further=(nulls(*IDENTITY),),
    unrecorded="The events `contact.updated` and `contact.changed` show it.",
)
async def patch_contact(call: Call[ChangeContactRequest, Query]) -> Answer:
    """Change the identity, attributes or tags of a contact. Omitted fields stay."""
    return await change(call, call.path["user_id"], by_id=False)


@routes.add(
    "POST",
    f"{_ONE}/merge",
    _MANAGE,
    operation_id="mergeContact",
    body=MergeContactRequest,
    limit=MEDIUM,
    answer=shapes.Contact,
    errors=("merge_under_way",),
    records=("contact.merged", "contact.merged_away"),
    forgets=True,
)
async def merge_contact(call: Call[MergeContactRequest, Query]) -> Answer:
    """Merge another contact into this one, such as a visitor who turned out to be this user.

    Conversations, tickets, survey responses and memory of the other contact move to this one, with its attributes, tags, and
    the identity fields that this one lacks. The other contact is removed.
    """
    return await merge(call, call.path["user_id"], by_id=False)


@routes.add("GET", _ONE, _READ, operation_id="getContact", answer=shapes.Contact)
async def get_contact(call: Call[Body, Query]) -> Answer:
    """Fetch a contact by your own user id."""
    project, user_id = call.project, call.path["user_id"]
    return contact_with_profile_view(
        *await call.services.store.read(
            InlineQuery(lambda reader: profiled(reader, find(reader, project, user_id)))
        )
    )


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
    """Erase a contact and all its conversations (GDPR). A machine credential also needs `conversations.delete`."""
    call.access.require(_DELETE)
    contact = await call.services.erasures.erase(call.project, call.path["user_id"], call.origin)
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
        merged=False,
    )
    return await operations.list_conversations(call, criteria)


def _user_id(call: Call[PutContactIdentityRequest, Query]) -> str:
    """Return the user id of a possibly new contact. Raises Invalid."""
    user_id = call.path["user_id"]
    if len(user_id) > _USER_ID_MAX:
        message = f"A user id has at most {_USER_ID_MAX} characters."
        raise Invalid(Problem("", "too_long", message), detail=message)
    if is_blank(user_id):
        message = "A user id must not be blank."
        raise Invalid(Problem("", "blank", message), detail=message)
    return user_id


async def _contact(call: Call[Body, Query] | Call[Body, ContactConversations]) -> Contact:
    return await call.services.store.read(
        InlineQuery(lambda reader: find(reader, call.project, call.path["user_id"]))
    )


def may_change_contacts(call: Call[Any, Any]) -> bool:
    """Return whether the caller may change existing contacts as a side effect of another call."""
    return CHANGE in call.access.permissions


def find(reader: ContactReader, project: Project, user_id: str) -> Contact:
    """Return the stored contact. Raises NotFound."""
    return find_contact(reader, project.rowid, user_id, by_id=False)


def profiled(reader: ContactReader, contact: Contact) -> tuple[Contact, Profile]:
    """Return the contact with its attributes and tags."""
    return contact, reader.profile(contact.rowid)


async def change(call: Call[ChangeContactRequest, Query], identifier: str, *, by_id: bool) -> Answer:
    """Change the contact with this `con_` id or backend's id, and return it. Raises NotFound or Invalid."""
    project, now, by = call.project, call.services.clock(), actor_of(call)
    given: dict[str, Any] = given_fields(call.body, frozenset(IDENTITY))
    profile: dict[str, Any] = {name: given.pop(name) for name in ("attributes", "tags") if name in given}
    if "tags" in profile:
        profile["tags"] = normal_tags(profile["tags"])

    def changed(tx: Transaction) -> tuple[Contact, Profile]:
        known = find_contact(tx, project.rowid, identifier, by_id=by_id)
        contact = change_contact(tx, project, known, given, now)
        return change_profile(tx, project, contact, profile, by, now)

    return contact_with_profile_view(*await call.services.store.write(changed))


async def merge(call: Call[Any, Query], identifier: str, *, by_id: bool) -> Answer:
    """Merge the contact in the body into the one with this `con_` id or backend's id, and return the latter."""
    wanted = MergeRequest(identifier, call.body.source, by_id, actor_of(call))
    target = (await call.services.merges.merge(call.project, wanted, call.origin)).id

    def survivor(reader: ContactReader) -> tuple[Contact, Profile]:
        return profiled(reader, find_contact(reader, call.project.rowid, target, by_id=True))

    return contact_with_profile_view(*await call.services.store.read(InlineQuery(survivor)))
