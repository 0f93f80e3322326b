"""The parts that every export is taken apart into: people, threads, posts, and names of things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

Role = Literal["contact", "agent", "bot", "system"]


class Person(NamedTuple):
    """A person of the export.

    Args:
        key: the id at the source.
        role: None if the export does not say.
        external_id: the id that your own system has for a customer.
        created_at: in milliseconds.
    """

    key: str
    role: Role | None = None
    name: str | None = None
    external_id: str | None = None
    email: str | None = None
    phone: str | None = None
    avatar: str | None = None
    created_at: int | None = None


class Rating(NamedTuple):
    """The satisfaction of a customer, from 0 to 10."""

    value: int
    at: int | None = None
    comment: str | None = None


class Thread(Struct, frozen=True):
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
    status: Literal["OPEN", "PENDING", "CLOSED"]
    created_at: int
    updated_at: int | None = None
    closed_at: int | None = None
    title: str | None = None
    assignee: str | None = None
    opening: str | None = None
    rating: Rating | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Post(Struct, frozen=True):
    """A message or note of the export.

    Args:
        author: the key of its author, None if there is none.
        role: None if the author's own role tells it.
        at: in milliseconds; None for the time of its thread.
        links: names and addresses of attachments.
    """

    key: str
    thread: str
    author: str | None
    text: str
    at: int | None
    role: Role | None = None
    name: str | None = None
    internal: bool = False
    links: Sequence[tuple[str, str]] = ()


class Label(NamedTuple):
    """The name of a thing that threads mention by its key, such as a field of one's own."""

    key: str
    name: str


class ThreadRating(NamedTuple):
    """A rating that stands in a record of its own."""

    thread: str
    rating: Rating


Part = Person | Thread | Post | Label | ThreadRating
