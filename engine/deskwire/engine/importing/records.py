"""The records of an import: one for each conversation, and one for each of its messages.

They are tuples, as there are millions. A record's fingerprint is made of all its values, so that the same record is
recognised when it comes a second time, however it was written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple

import orjson
from msgspec import Struct, field

from deskwire.engine.conversations.conversation import AuthorType, Closer, Status
from deskwire.engine.core.errors import Problem

Kind = Literal["conversation", "message"]

_SORTED: Final = orjson.OPT_SORT_KEYS
_BYTES: Final = 8
"""Bytes of a fingerprint, which is an INTEGER of SQLite. It tells a changed record from the same one; it is no protection."""


class MessageRecord(NamedTuple):
    """A message to import; `conversation` and `external_id` are the ids in the system that it comes from.

    Args:
        line: its line in the body, counted from 1.
        attachments: ids of uploads.
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
    assignee: tuple[Literal["user", "team"], str] | None = None
    rating: int | None = None
    rated_at: int | None = None
    rating_comment: str | None = None


Record = ConversationRecord | MessageRecord


def fingerprint(record: Record) -> int:
    """Return a hash of the record's values, whatever its line; 64 bits with a sign."""
    digest = blake2b(
        orjson.dumps(_values(record), default=tuple, option=_SORTED), digest_size=_BYTES
    ).digest()
    return int.from_bytes(digest, "big", signed=True)


def _values(record: Record) -> tuple[Any, ...]:
    """Return what the hash is of: as before there were comments, if a conversation has none."""
    if isinstance(record, ConversationRecord) and record.rating_comment is None:
        return record[1:-1]
    return record[1:]


class Refusal(Struct, frozen=True):
    """A line that was refused, with its problems; `external_id` as far as it could be read.

    Args:
        unnamed: problems that are only counted.
    """

    line: int
    external_id: str | None
    problems: Sequence[Problem]
    unnamed: int = 0


class Outcome(Struct):
    """The outcome of an import: numbers of new and of existing records by kind, and those that were refused."""

    imported: Counter[Kind] = field(default_factory=Counter)
    existing: Counter[Kind] = field(default_factory=Counter)
    refused: list[Refusal] = field(default_factory=list)
