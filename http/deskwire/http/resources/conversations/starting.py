"""Conversations started by an agent."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.commands import ContactRef, Create, PostMessage
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import Author
from deskwire.engine.conversations.events import agent_view
from deskwire.engine.conversations.facts import MessagePosted
from deskwire.engine.conversations.inbox import mine_view
from deskwire.engine.core.errors import Invalid, NotFound, Problem
from deskwire.engine.core.ids import is_id, new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.events.log import NO_EVENT_ID
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body
from deskwire.http.resources.conversations import operations
from deskwire.http.resources.conversations.requests import (
    AssigneeInput,
    FormattedMessageInput,
    PutContactIdentityRequest,
)
from deskwire.http.resources.fields import Title, UserId


class ContactReference(PutContactIdentityRequest):
    """The contact of the conversation: the `id` of an existing one, or your own `userId` with identity fields to set."""

    id: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    user_id: UserId | None = None


class StartConversationRequest(Body):
    """The new conversation. With `visible: false` the customer can't see it until it is made visible."""

    contact: ContactReference
    title: Title | None = None
    message: FormattedMessageInput | None = None
    assignee: AssigneeInput | None = None
    visible: bool = True


async def start(call: Call[StartConversationRequest, Any]) -> Answer:
    """Start a conversation with a contact, and return it in the agent's view."""
    body, now = call.body, call.services.clock()
    contact = await _contact(call)
    assignee, message = await _parts(call, now)
    command = Create(
        new_id("cnv", now),
        call.project.rowid,
        contact,
        body.title,
        None,
        body.visible,
        message,
        assignee,
        by_agent=True,
    )
    actors = call.services.actors
    receipt = await actors.create(call.project, command, call.keeping(_started), operations.actor_of(call))
    return _started(receipt)


async def check_start(call: Call[StartConversationRequest, Any]) -> None:
    """Check the assignee and the attachments of a new conversation."""
    if call.body.contact is not None:
        await _contact(call)
    await _parts(call, call.services.clock())


async def _parts(
    call: Call[StartConversationRequest, Any], now: int
) -> tuple[Assignee | None, PostMessage | None]:
    """Return the assignee and the message of a new conversation. Raises Invalid with all problems."""
    body, assignee, problems = call.body, None, list[Problem]()
    try:
        assignee = await operations.assignee_of(call, body.assignee, "/assignee")
    except Invalid as refused:
        problems += refused.problems
    if body.message is None:
        attachments = None
    else:
        attachments, missing = await operations.attached(call, body.message.attachments, "/message")
        problems += missing
    if problems:
        raise Invalid(*problems)
    if body.message is None or attachments is None:
        return assignee, None
    author, text = Author("agent", call.user.id, call.user.name), body.message
    message_id = new_id("msg", now)
    return assignee, PostMessage(message_id, author, text.text, False, attachments, format=text.format)


async def _contact(call: Call[StartConversationRequest, Any]) -> ContactRef:
    """Return the contact of a new conversation. Raises Invalid for no or two ids, NotFound for an unknown id."""
    given = call.body.contact
    identity = {name: getattr(given, name) for name in given.model_fields_set - {"id", "user_id"}}
    if (given.id is None) == (given.user_id is None):
        raise Invalid(Problem("/contact", "required", "Give either the id of a contact, or your own userId."))
    if given.user_id is not None:
        return ContactRef(given.user_id, identity)
    if identity:
        message = "Identity fields of a contact can only be set together with userId."
        raise Invalid(Problem("/contact/id", "not_allowed", message))
    known = await call.services.store.read(InlineQuery(lambda reader: _known(reader, call, given.id or "")))
    if known is None:
        raise NotFound("There is no such contact.", code="contact_not_found")
    return ContactRef(known.user_id, {}, known.id)


def _known(reader: ContactReader, call: Call[Any, Any], identifier: str) -> Contact | None:
    return reader.contact_by_id(call.project.rowid, identifier) if is_id(identifier, "con") else None


def _started(receipt: Receipt) -> dict[str, Any]:
    """Return a new conversation in its agent's view: older than its events, and without a read position."""
    posted = [fact.message for fact in receipt.facts if isinstance(fact, MessagePosted)]
    last = posted[-1] if posted else None
    view = agent_view(receipt.after, receipt.contact, receipt.project.id, last, None)
    return {**view, "asOf": NO_EVENT_ID, "mine": mine_view(receipt.after, None)}
