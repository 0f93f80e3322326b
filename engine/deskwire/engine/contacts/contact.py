"""Contacts: identity fields, attributes and tags, and merged contacts (decisions 4).

The profile, attributes and tags, is separate from the identity: conversations and `contact.updated` contain the identity only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Protocol

import orjson
from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Invalid, NotFound, Problem
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import AttributeIs, merged, overfull

IDENTITY: Final = ("name", "email", "phone", "avatar")
"""The identity fields that can change. `userId`, the remaining one, never changes."""

_VISITOR: Final = re.compile(r"visitor-[0-7][0-9A-HJKMNP-TV-Z]{25}")  # before a ULID

ERASED_IDENTITY: Final[Mapping[str, None]] = dict.fromkeys(IDENTITY)
"""The identity fields of an erased contact."""


class Contact(Struct, frozen=True):
    """A customer of a project.

    Args:
        user_id: its id in the project's own backend.
        blocked: its block in the form of `blocks.block_as_stored`; None if it is not blocked.
    """

    rowid: int
    id: str
    user_id: str
    created_at: int
    updated_at: int
    name: str | None = None
    email: str | None = None
    phone: str | None = None
    avatar: str | None = None
    blocked: str | None = None


def identify(contact: Contact, identity: Mapping[str, str | None], at: int) -> Contact:
    """Return the contact with these identity fields.

    Returns the same object if nothing changes.
    """
    changed = {name: value for name, value in identity.items() if getattr(contact, name) != value}
    return replace(contact, **changed, updated_at=at) if changed else contact  # type: ignore[arg-type]


def is_reserved(user_id: str) -> bool:
    """Return whether a `userId` has the form of those that only visitors of a channel get."""
    return _VISITOR.fullmatch(user_id) is not None


class ReservedUserId(Invalid):
    """A backend would create a contact with the `userId` of a visitor, whose history it does not own."""

    code = "reserved_user_id"

    def __init__(self, pointer: str) -> None:
        message = "Ids of the form visitor-<ULID> are given to visitors of channels; choose another one."
        super().__init__(Problem(pointer, self.code, message), detail=message)


def contact_view(contact: Contact) -> dict[str, Any]:
    """Return the contact object of the API and of `contact.updated`."""
    return {
        "id": contact.id,
        "userId": contact.user_id,
        "name": contact.name,
        "email": contact.email,
        "phone": contact.phone,
        "avatar": contact.avatar,
        "createdAt": iso(contact.created_at),
        "updatedAt": iso(contact.updated_at),
    }


FILTER_VALUE_MAX: Final = 200
"""Maximum length of an attribute's value in filters. Longer values are stored and shown, but no filter finds them."""

_SORTED: Final = orjson.OPT_SORT_KEYS


class Profile(Struct, frozen=True):
    """The attributes and tags of a contact. Tags are normalized and sorted."""

    attributes: Mapping[str, Any]
    tags: tuple[str, ...]


EMPTY_PROFILE: Final = Profile({}, ())
"""The profile of a contact without attributes and tags."""


def changed_profile(before: Profile, given: Mapping[str, Any]) -> tuple[Profile, tuple[str, ...]]:
    """Return the profile after a change, and the names of its changed fields.

    Args:
        given: optional `attributes`, merged key by key, where null removes a key. Optional `tags`, which replace all.

    Raises Invalid if there would be too many attributes, or too large ones.
    """
    attributes = (
        merged(before.attributes, given["attributes"]) if "attributes" in given else before.attributes
    )
    tags = given.get("tags", before.tags)
    names = []
    if not _same(attributes, before.attributes):
        problem = overfull(attributes, "contact")
        if problem is not None:
            raise Invalid(problem)
        names.append("attributes")
    if tags != before.tags:
        names.append("tags")
    return (Profile(attributes, tags), tuple(names)) if names else (before, ())


def contact_with_profile_view(contact: Contact, profile: Profile) -> dict[str, Any]:
    """Return the contact object with its identity, attributes, tags and block."""
    return {
        **contact_view(contact),
        "attributes": profile.attributes,
        "tags": list(profile.tags),
        "blocked": _block_view(contact.blocked),
    }


def _block_view(stored: str | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    block = orjson.loads(stored)
    return {**block, "at": iso(block["at"])}


def filterable_attributes(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that filters can match, each with its value in filter notation: texts, numbers, true and false."""
    found = {name: filter_text(each) for name, each in attributes.items()}
    return {name: text for name, text in found.items() if text is not None and len(text) <= FILTER_VALUE_MAX}


def filter_text(attribute: Any) -> str | None:
    """Return a value in filter notation, 3.0 as `3`.

    None for a list or an object, which filters do not support.
    """
    if isinstance(attribute, str):
        return attribute
    if isinstance(attribute, list | dict):
        return None
    whole = isinstance(attribute, float) and attribute.is_integer()
    return str(int(attribute)) if whole else orjson.dumps(attribute).decode()


def filter_values(wanted: AttributeIs) -> tuple[str, ...]:
    """Return the values of `filterable_attributes` that match a filter."""
    if wanted.number is None:
        return (wanted.text,)
    value = Decimal(wanted.number)
    whole = value == value.to_integral_value()
    number: float = int(value) if whole else float(value)
    return tuple({wanted.text, str(number) if whole else orjson.dumps(number).decode()})


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether both are the same JSON. `==` is not enough because 1 equals True in Python."""
    return orjson.dumps(one, option=_SORTED) == orjson.dumps(other, option=_SORTED)


class MergedContact(Struct, frozen=True):
    """A contact that was merged into another one.

    `under_way` is True while the merge is in progress.
    """

    source: Contact
    target: Contact
    under_way: bool


class ContactFinder(Protocol):
    """Queries that find a contact, or the contact into which it was merged."""

    def contact(self, project: int, user_id: str) -> Contact | None:
        """See `ContactReader`."""

    def contact_by_id(self, project: int, contact_id: str) -> Contact | None:
        """See `ContactReader`."""

    def merged(self, project: int, identifier: str, *, by_id: bool) -> MergedContact | None:
        """See `ContactReader`."""


def find_contact(reader: ContactFinder, project: int, identifier: str, *, by_id: bool) -> Contact:
    """Return the contact with this `con_` id if `by_id`, else with this id of the backend.

    Raises NotFound: `contact_merged` if it was merged into another one, else `contact_not_found`.
    """
    find = reader.contact_by_id if by_id else reader.contact
    contact = find(project, identifier)
    if contact is None:
        raise no_such_contact(reader.merged(project, identifier, by_id=by_id))
    return contact


def no_such_contact(merged: MergedContact | None) -> NotFound:
    """Return the error for a missing contact. It names the target if the contact was merged."""
    if merged is None:
        return NotFound("There is no such contact.", code="contact_not_found")
    into = {"id": merged.target.id, "userId": merged.target.user_id}
    return NotFound(
        "The contact was merged into another one, which `mergedInto` names.",
        code="contact_merged",
        shown={"mergedInto": into},
    )
