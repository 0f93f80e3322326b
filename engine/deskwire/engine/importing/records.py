"""The records of an import: one for each conversation, and one for each of its messages.

They are tuples because there may be millions. The fingerprint of a record is a hash of its values, so the same record is
recognised on a second import in any spelling. It leaves out names of people and the time of the last change: a renamed
person, or a conversation that only has more messages, makes no new record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple

import orjson
from msgspec import Struct, field

from deskwire.engine.accounts.people import AssigneeType
from deskwire.engine.conversations.conversation import AuthorType, Closer, Status, TextFormat
from deskwire.engine.core.errors import Problem

RecordKind = Literal["conversation", "message"]

_SORTED: Final = orjson.OPT_SORT_KEYS
_BYTES: Final = 8
"""Bytes of a fingerprint, which is an INTEGER of SQLite. It tells a changed record from the same one; it is no protection."""


class MessageRecord(NamedTuple):
    """A message to import; `conversation` and `external_id` are the ids in the system that it comes from.

    Args:
        line: its line in the body, counted from 1.
        attachments: ids of uploads.
        redacted: the source has redacted the text; an earlier one of the message is redacted as well.
        client_id: the id that the customer's client gave the message, if it did.
        given_at: the `createdAt` of the record if it is impossible; `created_at` is used in its place.
        doubts: impossible values of the line, which is imported nevertheless.
        format: see `Message`.
    """

    line: int
    external_id: str
    conversation: str
    author_type: AuthorType
    author_id: str | None
    author_name: str | None
    text: str
    internal: bool
    created_at: int
    attachments: Sequence[str] = ()
    redacted: bool = False
    given_at: int | None = None
    doubts: Sequence[Problem] = ()
    client_id: str | None = None
    format: TextFormat | None = None


class ContactRecord(NamedTuple):
    """The contact of a conversation to import; one that exists already stays as it is."""

    user_id: str
    name: str | None = None
    email: str | None = None
    phone: str | None = None
    avatar: str | None = None
    created_at: int | None = None


class ConversationRecord(NamedTuple):
    """A conversation to import, without its messages.

    Args:
        line: its line in the body, counted from 1.
        assignee: `user` or `team`, and its id in this service.
        closed_at, rated_at: None if the record does not say.
        attribute_ids: ids of the people or things that attributes name, by the attributes' keys.
        channel_id: of the channel in which the customer started it, if it was one.
        client_id: the id that the customer's client gave it, if it did.
        given_at: the `createdAt` of the record if it is impossible; `created_at` is used in its place.
        doubts: impossible values of the line, which is imported nevertheless.
    """

    line: int
    external_id: str
    contact: ContactRecord
    created_at: int
    attributes: Mapping[str, Any]
    updated_at: int | None = None
    title: str | None = None
    status: Status = "OPEN"
    closed_by: Closer | None = None
    closed_at: int | None = None
    archived: bool = False
    unread: bool = False
    assignee: tuple[AssigneeType, str] | None = None
    rating: int | None = None
    rated_at: int | None = None
    rating_comment: str | None = None
    attribute_ids: Mapping[str, str] = {}
    given_at: int | None = None
    doubts: Sequence[Problem] = ()
    channel_id: str | None = None
    client_id: str | None = None


class DeletionRecord(NamedTuple):
    """The record that a conversation, or a message of it, is gone in the system that it comes from.

    Args:
        pieces: the message may have been cut into several, whose ids end in `-2`, `-3` and so on.
    """

    line: int
    conversation: str
    message: str | None = None
    pieces: bool = False


Record = ConversationRecord | MessageRecord


def fingerprint(record: Record) -> int:
    """Return the hash of the record that is stored with it; 64 bits with a sign. It must not change."""
    if isinstance(record, MessageRecord):
        return _hash(_of_message(record, None))
    # Some services only know the time of the last change, which moves: it does not date a closing.
    return _hash(
        _of_conversation(record, None if record.closed_at == record.updated_at else record.closed_at)
    )


def is_same(record: Record, stored: int) -> bool:
    """Return whether a hash that is stored is of the same record, by any of the ways in which hashes have been made."""
    if isinstance(record, MessageRecord):
        return stored in (fingerprint(record), _hash(_of_message(record, record.author_name)))
    dated, undated = (_hash(_of_conversation(record, at)) for at in (record.closed_at, None))
    return stored in (dated, undated) or stored == _hash(_with_contact(record))


def _hash(values: tuple[Any, ...]) -> int:
    digest = blake2b(orjson.dumps(values, default=tuple, option=_SORTED), digest_size=_BYTES).digest()
    return int.from_bytes(digest, "big", signed=True)


def _of_message(record: MessageRecord, author_name: str | None) -> tuple[Any, ...]:
    at = record.created_at if record.given_at is None else record.given_at
    values = (
        record.external_id,
        record.conversation,
        record.author_type,
        record.author_id,
        author_name,
        record.text,
        record.internal,
        at,
        record.attachments,
    )
    # Plain messages keep the fingerprint that they had before messages had a format.
    return values if record.format is None else (*values, record.format)


def _of_conversation(record: ConversationRecord, closed_at: int | None) -> tuple[Any, ...]:
    """Return the values that are compared, without the contact, whose names change, and the time of the last change."""
    ids = record.attribute_ids
    return (
        record.external_id,
        record.created_at if record.given_at is None else record.given_at,
        {name: {"id": ids[name]} if name in ids else value for name, value in record.attributes.items()},
        record.title,
        record.status,
        record.closed_by,
        closed_at,
        record.archived,
        record.unread,
        record.assignee,
        record.rating,
        record.rated_at,
        record.rating_comment,
    )


def _with_contact(record: ConversationRecord) -> tuple[Any, ...]:
    """Return the values of earlier hashes: with the contact, the last change, and times that follow from others."""
    updated_at = record.created_at if record.updated_at is None else record.updated_at
    closed_at = updated_at if record.closed_at is None else record.closed_at
    rated_at = updated_at if record.rated_at is None else record.rated_at
    values = (
        record.external_id,
        record.contact,
        record.created_at,
        record.attributes,
        record.updated_at,
        record.title,
        record.status,
        record.closed_by,
        closed_at if record.status == "CLOSED" else None,
        record.archived,
        record.unread,
        record.assignee,
        record.rating,
        None if record.rating is None else rated_at,
    )
    return values if record.rating_comment is None else (*values, record.rating_comment)


class RefusedLine(Struct, frozen=True):
    """A refused line with its problems, and its `external_id` if it could be read.

    Args:
        unnamed: number of further problems.
    """

    line: int
    external_id: str | None
    problems: Sequence[Problem]
    unnamed: int = 0


class ImportOutcome(Struct):
    """The outcome of an import: the numbers of new and existing records by kind, and the refused ones.

    Args:
        doubted: new records with impossible values.
        redacted: existing messages whose text their source has redacted since.
    """

    imported: Counter[RecordKind] = field(default_factory=Counter)
    existing: Counter[RecordKind] = field(default_factory=Counter)
    refused: list[RefusedLine] = field(default_factory=list)
    doubted: list[RefusedLine] = field(default_factory=list)
    redacted: list[MessageRecord] = field(default_factory=list)
