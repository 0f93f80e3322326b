"""The parts into which exports are split: people, threads, posts and labels; and the interface of a source.

A part has the version of its record, because exports by time overlap and may each have a different version of a record.
The newest version counts, regardless of the order of files (`spool`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from msgspec import UNSET, Struct, UnsetType, field

from deskwire.commands.convert.tally import ConversionTally
from deskwire.engine.conversations.conversation import AuthorType, Status
from deskwire.engine.events.project_events import Removal

Role = AuthorType
Redacted = Literal["text", "attachment", "hidden"]
"""The redacted part of a post; `hidden` if the post became internal."""

FINAL: Final = (
    1 << 63
) - 1  # the version of a record that can't be replaced, such as a deletion without a time
UNDATED: Final = FINAL - 1  # the version of a complete person without a time: newer than any mention

REDACTED: Final = "▇"  # Zendesk's replacement for a redacted character
ROW: Final = "row "
"""Prefix of a thread's key that is a row number of Chatwoot's database, which differs from the visible number."""

Text = str | None | UnsetType
"""A field of a person: None if it is empty, UNSET if the record does not have it."""


class ExportedPerson(Struct, frozen=True):
    """A person of the export, or a mention of one.

    Args:
        key: the id at the source.
        role: None if the export does not say.
        external_id: the id that your own system has for a customer.
        created_at: in milliseconds.
        version: in milliseconds; a mention has that of the enclosing record.
        gone: the person was deleted at the source.
    """

    key: str
    role: Role | None = None
    name: Text = UNSET
    external_id: Text = UNSET
    email: Text = UNSET
    phone: Text = UNSET
    avatar: Text = UNSET
    created_at: int | UnsetType | None = UNSET
    version: int | None = None
    gone: bool = False


class MergedPerson(NamedTuple):
    """A person, merged from the newest records."""

    key: str
    role: Role | None = None
    name: str | None = None
    external_id: str | None = None
    email: str | None = None
    phone: str | None = None
    avatar: str | None = None
    created_at: int | None = None
    gone: bool | None = None


class ExportedRating(NamedTuple):
    """A customer's satisfaction from 0 to 10."""

    value: int
    at: int | None = None
    comment: str | None = None


class ExportedThread(Struct, frozen=True):
    """A conversation of the export, without its posts. Times are in milliseconds.

    Args:
        key: referenced by posts.
        id: the number that people see at the source.
        contact: the key of the customer.
        assignee: the key of a person.
        opening: the first post as plain text, if the posts themselves are in no file.
        attributes: other fields to keep; a key with a label is shown as the label.
    """

    key: str
    id: str
    contact: str
    status: Status
    created_at: int
    updated_at: int | None = None
    closed_at: int | None = None
    title: str | None = None
    assignee: str | None = None
    opening: str | None = None
    rating: ExportedRating | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    version: int | None = None


class Link(NamedTuple):
    """An attachment: its name, its address, and its id at the source."""

    name: str
    address: str
    id: str | None = None


class ExportedPost(Struct, frozen=True):
    """A message or note of the export.

    Args:
        author: the key of the author, None without one.
        role: None for the author's own role.
        at: in milliseconds; None for the thread's time.
        name: the name of an author without a key.
        redactions: an amount of redaction, which only grows at the source.
        opens: the post is the first of its thread, whatever its key.
    """

    key: str
    thread: str
    author: str | None
    text: str
    at: int | None
    role: Role | None = None
    name: str | None = None
    internal: bool = False
    links: Sequence[Link] = ()
    redactions: int = 0
    opens: bool = False
    version: int | None = None


class Deletion(Struct, frozen=True):
    """The deletion of a thread or post at the source. The deletion of a post is final.

    Args:
        version: in milliseconds, None if unknown.
    """

    thread: str
    post: str | None = None
    gone: Removal = "deleted"
    version: int | None = None


class Amendment(Struct, frozen=True):
    """A change of a post at the source, without the changed post.

    Args:
        key: the id of the record.
        what: the redacted part; `hidden` if the post became internal.
        at: in milliseconds; None if unknown.
        attachment: the id of a redacted attachment.
    """

    key: str
    thread: str
    post: str
    what: Redacted
    at: int | None = None
    attachment: str | None = None


class Label(NamedTuple):
    """The name of an object that threads reference by key, such as a custom field."""

    key: str
    name: str
    version: int | None = None


class ThreadRating(NamedTuple):
    """A rating in a separate record."""

    thread: str
    rating: ExportedRating
    version: int | None = None


Part = ExportedPerson | ExportedThread | ExportedPost | Deletion | Amendment | Label | ThreadRating


class ExportSource(Protocol):
    """Reads the exports of one product."""

    name: str
    """The prefix of ids, such as `zendesk`."""

    def parts(self, record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
        """Yield the parts of a record, and note the omitted ones."""
        ...
