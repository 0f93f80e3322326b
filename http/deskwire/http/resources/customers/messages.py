"""Messages of customers: their bodies, their attachments, and the conversation in the path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar

import orjson
from pydantic import Field

from deskwire.engine.contacts.blocks import require_not_blocked
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.client_ids import CLIENT_ID_PATTERN
from deskwire.engine.conversations.commands import PostMessage
from deskwire.engine.conversations.conversation import Author, no_such_conversation
from deskwire.engine.core.errors import Forbidden, Invalid, Problem
from deskwire.engine.core.ids import is_id, new_id
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.ports import Reader
from deskwire.engine.uploads.upload import Attachment, Upload, unknown_upload
from deskwire.http.api.calls import Call, ReplayedAnswer
from deskwire.http.resources.conversations.requests import MessageInput

T = TypeVar("T")

BY_CLIENT_ID: Final = "client:"
"""Prefix of the client id of a conversation in a path."""

ClientId = Annotated[
    str,
    Field(
        pattern=CLIENT_ID_PATTERN,
        description="An id of your choice, such as a UUID: 1 to 64 letters, digits, and `-`, `.`, `_`, `~`.",
        examples=["0b9df5a2-6d1c-4f0e-9a55-0f0b6a2f4a10"],
    ),
]

_THE_CONTACT: Final = Author("contact")


class PostCustomerMessageRequest(MessageInput):
    """The message to send. `clientId` names it: a repeated call with it stores nothing more. `attachments` are ids of the customer's own uploads."""

    client_id: ClientId


async def own_conversation(call: Call[Any, Any]) -> str:
    """Return the `cnv_` id of the conversation in the path.

    Raises NotFound for one that does not exist, that is hidden, and that is another contact's.
    """
    return await call.services.store.read(InlineQuery(lambda reader: find_own(reader, call)[0]))


def find_own(reader: Reader, call: Call[Any, Any]) -> tuple[str, int]:
    """Return the `cnv_` id and the storage key of the conversation in the path. Raises NotFound as `own_conversation`."""
    named, contact = call.path["conversation_id"], call.customer.contact
    if contact is None:
        raise no_such_conversation()
    identifier: str | None = named
    if named.startswith(BY_CLIENT_ID):
        client_id = named.removeprefix(BY_CLIENT_ID)
        identifier = reader.conversation_by_client_id(contact.rowid, client_id)
    if identifier is None or not is_id(identifier, "cnv"):
        raise no_such_conversation()
    rowid = reader.visible_conversation(call.project.rowid, contact.rowid, identifier)
    if rowid is None:
        raise no_such_conversation()
    return identifier, rowid


async def read_durably(call: Call[Any, Any], query: Callable[[Reader], T | None]) -> T | None:
    """Return what an earlier call has stored, once it is durable.

    With several nodes, it may belong to a commit that the database's standby does not have yet. So the query is repeated in a
    commit, which waits for that one (ADR 60).
    """
    found = await call.services.store.read(InlineQuery(query))
    if found is not None and call.services.answers.several:
        return await call.services.store.write(InlineJob(query))
    return found


async def post_message_of(
    call: Call[Any, Any], body: PostCustomerMessageRequest, pointer: str
) -> PostMessage:
    """Return the command of a message. Raises Invalid for uploads that are not the customer's own."""
    attachments = await attached(call, body.attachments, pointer)
    message_id = new_id("msg", call.services.clock())
    return PostMessage(message_id, _THE_CONTACT, body.text, attachments=attachments, client_id=body.client_id)


async def attached(call: Call[Any, Any], upload_ids: list[str], pointer: str) -> tuple[Attachment, ...]:
    """Return the attachments of a message.

    Raises Invalid for each upload that does not exist, that another sender has sent, or that is repeated, and Forbidden
    (`message_required`) for a visitor without a message, who has no uploads yet.
    """
    if not upload_ids:
        return ()
    owners = await contact_ids(call)
    project = call.project.rowid

    def read(reader: Reader) -> list[Upload | None]:
        return [reader.upload(project, each) if is_id(each, "upl") else None for each in upload_ids]

    problems: list[Problem] = []
    known: list[Attachment] = []
    found = await call.services.store.read(InlineQuery(read))
    for index, (upload_id, upload) in enumerate(zip(upload_ids, found, strict=True)):
        place = f"{pointer}/attachments/{index}"
        if upload is None or upload.contact not in owners:
            problems.append(unknown_upload(place, upload_id))
        elif upload_id in upload_ids[:index]:
            problems.append(Problem(place, "repeated", "A message can have an upload only once."))
        else:
            known.append(Attachment(upload.id, upload.name, upload.type, upload.size))
    if problems:
        raise Invalid(*problems)
    return tuple(known)


def stored_contact(call: Call[Any, Any]) -> Contact:
    """Return the customer's contact. Raises Forbidden (`message_required`) for a visitor without a message."""
    contact = call.customer.contact
    if contact is None:
        raise Forbidden(
            "A visitor can send files and answer surveys after the first message.", code="message_required"
        )
    return contact


async def require_writer(call: Call[Any, Any]) -> None:
    """Raise ContactBlocked if the customer is blocked, by the stored contact: that of the session may be older."""
    contact = call.customer.contact
    if contact is not None:
        stored = await call.services.store.read(InlineQuery(lambda reader: reader.survivor(contact.rowid)))
        if stored is not None:
            require_not_blocked(stored)


async def contact_ids(call: Call[Any, Any]) -> frozenset[str]:
    """Return the `con_` ids under which the customer's data is stored: those of contacts merged into this one as well.

    Raises Forbidden as `stored_contact`.
    """
    contact = stored_contact(call)
    merged = await call.services.store.read(InlineQuery(lambda reader: reader.merged_into(contact.rowid)))
    return frozenset({contact.id, *(each.id for each in merged)})


def replayed(shown: Mapping[str, Any]) -> ReplayedAnswer:
    """Return an object that was stored by an earlier call, with `Idempotent-Replayed`."""
    return ReplayedAnswer(orjson.dumps(shown))
