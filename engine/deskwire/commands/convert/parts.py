"""The parts that every export is taken apart into: people, threads, posts, and names of things.

A part has the version of the record that it comes from, as exports by time overlap and each may have a record as it was then.
Of two versions the newest counts, whatever the order of the files (`spool`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from msgspec import UNSET, Struct, UnsetType, field

from deskwire.commands.convert.tally import ConversionTally
from deskwire.engine.conversations.conversation import AuthorType, Status
from deskwire.engine.events.extensions import Gone

Role = AuthorType
Redacted = Literal["text", "attachment", "hidden"]
"""The part of a post that was redacted; `hidden` if the post became internal."""

FINAL: Final = (1 << 63) - 1
"""The version of a record that nothing can follow, such as a deletion without a time."""
UNDATED: Final = FINAL - 1
"""The version of all that is known of a person where it has no time: newer than any mention."""

REDACTED: Final = "▇"
"""The character that Zendesk writes for those that are redacted."""
ROW: Final = "row "
"""Stands in front of the key of a thread that is not its id, as rows of Chatwoot's database have other numbers than people see."""

Text = str | None | UnsetType
"""A field of a person: None if the record says that there is none, UNSET if it says nothing."""


class ExportedPerson(Struct, frozen=True):
    """A person of the export, or the mention of one.

    Args:
        key: the id at the source.
        role: None if the export does not say.
        external_id: the id that your own system has for a customer.
        created_at: in milliseconds.
        version: in milliseconds; of a mention that of the record around it.
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
    """A person as the newest records have it."""

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
    """The satisfaction of a customer, from 0 to 10."""

    value: int
    at: int | None = None
    comment: str | None = None


class ExportedThread(Struct, frozen=True):
    """A conversation of the export, without its posts. Times are in milliseconds.

    Args:
        key: by which posts name it.
        id: the id that people know it by at the source.
        contact: the key of its customer.
        assignee: the key of a person.
        opening: the first post where the posts themselves are in no file, as plain text.
        attributes: whatever else is worth keeping; a key that has a label is shown under that.
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
        author: the key of its author, None if there is none.
        role: None if the author's own role tells it.
        at: in milliseconds; None for the time of its thread.
        name: that of an author who has no key.
        redactions: a measure of how much was redacted in it, which only grows at the source.
        opens: it is the first of its thread, whatever its key.
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
    """The record that a thread, or a post of it, is gone at the source. That of a post is final.

    Args:
        version: in milliseconds, None if it is not known.
    """

    thread: str
    post: str | None = None
    gone: Gone = "deleted"
    version: int | None = None


class Amendment(Struct, frozen=True):
    """The record that a post was changed at the source, without the post as it is since then.

    Args:
        key: the id of the record.
        what: `text` and `attachment` if something of these was redacted; `hidden` if the post became internal.
        at: when, in milliseconds; None if that is not known.
        attachment: the id of an attachment that was redacted.
    """

    key: str
    thread: str
    post: str
    what: Redacted
    at: int | None = None
    attachment: str | None = None


class Label(NamedTuple):
    """The name of a thing that threads mention by its key, such as a field of one's own."""

    key: str
    name: str
    version: int | None = None


class ThreadRating(NamedTuple):
    """A rating that stands in a record of its own."""

    thread: str
    rating: ExportedRating
    version: int | None = None


Part = ExportedPerson | ExportedThread | ExportedPost | Deletion | Amendment | Label | ThreadRating


class ExportSource(Protocol):
    """The shapes of one product's exports."""

    name: str
    """The name in front of ids, such as `zendesk`."""

    def parts(self, record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
        """Yield the parts of a record, and note what of it is left out."""
        ...
