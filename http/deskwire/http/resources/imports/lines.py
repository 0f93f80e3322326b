"""Parses the lines of an import: each becomes a record, or a refusal with all its problems (ADR 30)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from deskwire.engine.contacts.addresses import EMAIL_MAX, PHONE_MAX, clean_email, clean_phone
from deskwire.engine.conversations.client_ids import CLIENT_ID_PATTERN
from deskwire.engine.conversations.conversation import AUTHOR_TYPES, UNCLOSED, AuthorType, Closer, Status
from deskwire.engine.core.clock import milliseconds
from deskwire.engine.core.errors import PROBLEMS_MAX, Invalid, Problem
from deskwire.engine.core.text import MESSAGE_TEXT_MAX, NUL
from deskwire.engine.importing.records import (
    ContactRecord,
    ConversationRecord,
    DeletionRecord,
    MessageRecord,
    Record,
    RefusedLine,
)
from deskwire.engine.importing.times import AHEAD_MS, possible_conversation, possible_message
from deskwire.http.api.input.ndjson import NdjsonLine
from deskwire.http.api.input.partial_bodies import valid_part
from deskwire.http.api.input.validation import NOT_BLANK, Body, MalformedJson, decode_json, validated
from deskwire.http.resources.conversations.requests import (
    PLAIN_CONTACT,
    AssigneeInput,
    FormattedMessageInput,
    PutContactIdentityRequest,
)
from deskwire.http.resources.fields import Attributes, Name, RatingComment, Title, UserId

LINE_BYTES: Final = 256 * 1024  # more than the longest text and the most attributes take with any escapes

_ID_MAX: Final = 255
_NAME_MAX: Final = 200
_ATTRIBUTES_MAX: Final = 100
_UNREADABLE: Final = "It is invalid, so it is kept in the conversation's attributes."


def _moment(value: object) -> int:
    """Return the time in a text. Raises ValueError."""
    match value:
        case str():
            return milliseconds(value)
        case _:
            raise ValueError("A time must be a text in ISO 8601, such as 2026-11-01T12:00:00Z.")


Moment = Annotated[int, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
ExternalId = Annotated[str, Field(min_length=1, max_length=_ID_MAX), NOT_BLANK]


class ImportedContact(PutContactIdentityRequest):
    """The contact of an imported conversation. An existing contact is not changed.

    An invalid `email` or `phone` does not refuse the conversation: it is stored in its attributes, as
    `contactEmail` or `contactPhone`.
    """

    email: Annotated[str, Field(min_length=1, max_length=EMAIL_MAX), NOT_BLANK] | None = None
    phone: Annotated[str, Field(min_length=1, max_length=2 * PHONE_MAX), NOT_BLANK] | None = None
    user_id: UserId
    created_at: Moment | None = None


class ImportedAuthor(Body):
    """The author of an imported message. A contact is always the conversation's; the id of an agent must be a member's, or be omitted."""

    type: AuthorType
    id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    name: Name | None = None


class ImportedConversation(Body):
    """A conversation to import. Its line precedes those of its messages."""

    type: Literal["conversation"]
    external_id: ExternalId
    contact: ImportedContact
    created_at: Moment
    updated_at: Moment | None = None
    title: Title | None = None
    status: Status = "OPEN"
    closed_by: Closer | None = None
    closed_at: Moment | None = None
    archived: bool = False
    unread: bool = False
    assignee: AssigneeInput | None = None
    attributes: Annotated[Attributes, Field(default_factory=dict)]
    attribute_ids: Annotated[
        dict[str, ExternalId],
        Field(
            default_factory=dict,
            max_length=_ATTRIBUTES_MAX,
            description="For attributes that show a name, such as an agent's: the id of the person or object. When the line "
            "is imported again, ids are compared instead of names.",
        ),
    ]
    rating: Annotated[int, Field(ge=0, le=10)] | None = None
    rated_at: Moment | None = None
    rating_comment: RatingComment | None = None
    channel_id: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    client_id: Annotated[str, Field(pattern=CLIENT_ID_PATTERN)] | None = None


class ImportedMessage(FormattedMessageInput):
    """A message to import, or with `internal` a note that only agents see. Messages keep the order of their lines."""

    type: Literal["message"]
    external_id: ExternalId
    conversation: ExternalId
    author: ImportedAuthor
    created_at: Moment
    internal: bool = False
    redacted: Annotated[
        bool,
        Field(
            description="Words of the text were redacted in the original service, and are `▇` in it. If the message "
            "was imported with them, they are redacted here, too."
        ),
    ] = False
    client_id: (
        Annotated[
            str,
            Field(
                pattern=CLIENT_ID_PATTERN,
                description="The id that the customer's client gave the message. The client can't send it again.",
            ),
        ]
        | None
    ) = None


class ImportedDeletion(Body):
    """The deletion of an imported conversation, or of its `message`, that was deleted in the original service."""

    type: Literal["deletion"]
    conversation: ExternalId
    message: ExternalId | None = None
    pieces: Annotated[
        bool,
        Field(
            description="The message may have been split because of its length: the pieces whose ids end in `-2`, `-3` and so on are "
            "also deleted."
        ),
    ] = False


def read_line(line: NdjsonLine, now: int) -> Record | DeletionRecord | RefusedLine:
    """Return the record in a line, or its refusal. `now` is in milliseconds."""
    if line.content is None:
        return _refusal(line, None, Problem("", "too_long", f"A line has at most {LINE_BYTES:,} bytes."))
    try:
        value = decode_json(line.content)
    except MalformedJson as error:
        return _refusal(line, None, Problem("", "malformed_json", f"The line is not valid JSON: {error}."))
    record = _plain_message(line.number, value)
    if record is not None and 0 <= record.created_at <= now + AHEAD_MS:
        return record
    return _examined(line, line.content, value, now)


def _examined(line: NdjsonLine, raw: bytes, value: Any, now: int) -> Record | DeletionRecord | RefusedLine:
    if not isinstance(value, dict):
        return _refusal(line, None, Problem("", "invalid", "A line must be a JSON object."))
    try:
        match value.get("type"):
            case "message":
                return _message(line, validated(ImportedMessage, value, raw), now)
            case "conversation":
                return _conversation(line, validated(ImportedConversation, value, raw), now)
            case "deletion":
                deletion = validated(ImportedDeletion, value, raw)
                return DeletionRecord(line.number, deletion.conversation, deletion.message, deletion.pieces)
            case _:
                code = "not_allowed" if "type" in value else "required"
                raise Invalid(Problem("/type", code, "A line's type is conversation, message or deletion."))
    except Invalid as refusal:
        known = value.get("externalId")
        problems = {each.pointer: each for each in refusal.problems}
        for each in _besides(value):
            if each.pointer not in ("/ratedAt", "/ratingComment") or "/rating" not in problems:
                problems.setdefault(each.pointer, each)
        named = known if isinstance(known, str) else None
        return _refusal(line, named, *problems.values(), unnamed=refusal.unnamed)


def _besides(value: dict[str, Any]) -> list[Problem]:
    """Return the problems of a line that are visible although other fields are invalid."""
    match value.get("type"):
        case "message":
            return _problems_of_message(valid_part(ImportedMessage, value))
        case "conversation":
            return _problems_of_conversation(valid_part(ImportedConversation, value))
        case _:
            return []


_MESSAGE_FIELDS: Final = frozenset({"type", "externalId", "conversation", "author", "text", "createdAt"})
_AUTHOR_FIELDS: Final = frozenset({"type", "name"})
_OTHERS: Final = frozenset(AUTHOR_TYPES) - {"contact"}


def _plain(text: str) -> bool:
    """Return whether a text starts with a visible character and has no U+0000, as nearly all do."""
    return text[0].isprintable() and text[0] != " " and NUL not in text


def _plain_message(number: int, value: Any) -> MessageRecord | None:
    """Return the record of a simple message without attachments; None for a line that needs a full check.

    `ImportedMessage` gives the same record for every line that passes here, at five times the cost.
    """
    try:
        author, text, identifier, conversation = (
            value["author"],
            value["text"],
            value["externalId"],
            value["conversation"],
        )
        kind, name = author["type"], author.get("name")
        if not (
            value.keys() == _MESSAGE_FIELDS
            and value["type"] == "message"
            and author.keys() <= _AUTHOR_FIELDS
            and (
                (kind == "contact" and name is None)
                or (kind in _OTHERS and (name is None or (type(name) is str and 0 < len(name) <= _NAME_MAX)))
            )
            and type(text) is type(identifier) is type(conversation) is str
            and 0 < len(text) <= MESSAGE_TEXT_MAX
            and 0 < len(identifier) <= _ID_MAX
            and 0 < len(conversation) <= _ID_MAX
            and all(map(_plain, (text, identifier, conversation, name or "-")))
        ):
            return None
        at = milliseconds(value["createdAt"])
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    return MessageRecord(number, identifier, conversation, kind, None, name, text, False, at)


def _problems_of_message(body: ImportedMessage) -> list[Problem]:
    problems: list[Problem] = []
    of_contact = body.author is not None and body.author.type == "contact" and not body.internal
    if body.client_id is not None and not of_contact:
        problems.append(Problem("/clientId", "not_allowed", "Only messages of the contact have this field."))
    if body.author is not None and body.author.type == "contact":
        if body.format is not None:
            problems.append(Problem("/format", "not_allowed", PLAIN_CONTACT))
        message = "Only other authors than the contact have this field: the contact is the conversation's."
        fields = {"id": body.author.id, "name": body.author.name}
        problems += (
            Problem(f"/author/{name}", "not_allowed", message) for name in fields if fields[name] is not None
        )
    attachments = body.attachments or ()
    if len(set(attachments)) < len(attachments):
        problems.append(Problem("/attachments", "repeated", "A message can have an upload only once."))
    return problems


def _message(line: NdjsonLine, body: ImportedMessage, now: int) -> MessageRecord:
    problems = _problems_of_message(body)
    if problems:
        raise Invalid(*problems)
    record = MessageRecord(
        line.number,
        body.external_id,
        body.conversation,
        body.author.type,
        body.author.id,
        body.author.name,
        body.text,
        body.internal,
        body.created_at,
        tuple(body.attachments),
        body.redacted,
        client_id=body.client_id,
        format=body.format,
    )
    return possible_message(record, now)


def _problems_of_conversation(body: ImportedConversation) -> list[Problem]:
    problems: list[Problem] = []
    if body.status in UNCLOSED:
        message = "Only a conversation with the status CLOSED has this field."
        fields = {"closedBy": body.closed_by, "closedAt": body.closed_at}
        problems += (
            Problem(f"/{name}", "not_allowed", message) for name, value in fields.items() if value is not None
        )
    if body.rating is None:
        message = "Only a conversation with a rating has this field."
        beside = {"ratedAt": body.rated_at, "ratingComment": body.rating_comment}
        problems += (
            Problem(f"/{name}", "not_allowed", message) for name, value in beside.items() if value is not None
        )
    return problems


def _conversation(line: NdjsonLine, body: ImportedConversation, now: int) -> ConversationRecord:
    contact, is_closed = body.contact, body.status == "CLOSED"
    problems = _problems_of_conversation(body)
    if problems:
        raise Invalid(*problems)
    email, unread_email = _read(clean_email, contact.email)
    phone, unread_phone = _read(clean_phone, contact.phone)
    unread = {"contactEmail": unread_email, "contactPhone": unread_phone}
    attributes = {**{name: text for name, text in unread.items() if text is not None}, **body.attributes}
    identity = (contact.name, email, phone, contact.avatar)
    record = ConversationRecord(
        line.number,
        body.external_id,
        ContactRecord(contact.user_id, *identity, contact.created_at),
        body.created_at,
        {key: value for key, value in attributes.items() if value is not None},
        body.updated_at,
        body.title,
        body.status,
        (body.closed_by or "system") if is_closed else None,
        body.closed_at,
        body.archived,
        body.unread,
        None if body.assignee is None else (body.assignee.type, body.assignee.id),
        body.rating,
        body.rated_at,
        body.rating_comment,
        body.attribute_ids,
        channel_id=body.channel_id,
        client_id=body.client_id,
    )
    possible = possible_conversation(record, now)
    doubts = [
        Problem(f"/contact/{name}", "invalid", _UNREADABLE)
        for name, text in (("email", unread_email), ("phone", unread_phone))
        if text is not None
    ]
    return possible._replace(doubts=(*possible.doubts, *doubts)) if doubts else possible


def _read(clean: Callable[[str], str], text: str | None) -> tuple[str | None, str | None]:
    """Return a clean address or number, or else the invalid text, which does not refuse the conversation."""
    try:
        return (None if text is None else clean(text)), None
    except ValueError:
        return None, text


def _refusal(line: NdjsonLine, external_id: str | None, *problems: Problem, unnamed: int = 0) -> RefusedLine:
    """Return the refusal of a line, with its problems up to the limit of a response."""
    left = len(problems) - PROBLEMS_MAX
    return RefusedLine(line.number, external_id, problems[:PROBLEMS_MAX], unnamed + max(0, left))
