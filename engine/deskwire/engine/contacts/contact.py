"""X"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Protocol

import orjson
from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Invalid, NotFound
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import AttributeIs, merged, overfull

IDENTITY: Final = ("name", "email", "phone", "avatar")
"""The fields that may change; with `userId`, which may not, they are a contact's identity."""

ERASED_IDENTITY: Final[Mapping[str, None]] = dict.fromkeys(IDENTITY)
"""The identity of a contact that was erased."""


class Contact(Struct, frozen=True):
    """A customer of a project, known to the project's own backend as `user_id`."""

    rowid: int
    id: str
    user_id: str
    created_at: int
    updated_at: int
    name: str | None = None
    email: str | None = None
    phone: str | None = None
    avatar: str | None = None


def identify(contact: Contact, identity: Mapping[str, str | None], at: int) -> Contact:
    """Return the contact with these identity fields; the very same object if they change nothing."""
    changed = {name: value for name, value in identity.items() if getattr(contact, name) != value}
    return replace(contact, **changed, updated_at=at) if changed else contact  # type: ignore[arg-type]


def contact_view(contact: Contact) -> dict[str, Any]:
    """Return the contact as the API and `contact.updated` show it."""
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
"""Characters of an attribute's value by which contacts are found; a longer one is stored and shown all the same."""

_SORTED: Final = orjson.OPT_SORT_KEYS


class Profile(Struct, frozen=True):
    """The attributes and the tags of a contact; tags are in their one form and order."""

    attributes: Mapping[str, Any]
    tags: tuple[str, ...]


EMPTY_PROFILE: Final = Profile({}, ())
"""The profile of a contact of which nothing was noted."""


def changed_profile(before: Profile, given: Mapping[str, Any]) -> tuple[Profile, tuple[str, ...]]:
    """Return the profile after a change, and the names of what is another: none if nothing is.

    Args:
        given: `attributes` to be merged key by key, where null removes a key, and `tags`, which replace all; both may be missing.

    Raises Invalid if the attributes would be too many or too large.
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
    """Return the contact as the API shows it by itself: its identity, attributes and tags."""
    return {**contact_view(contact), "attributes": profile.attributes, "tags": list(profile.tags)}


def filterable_attributes(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that contacts are found by, each with its value as a filter writes it: texts, numbers, true and false."""
    found = {name: filter_text(each) for name, each in attributes.items()}
    return {name: text for name, text in found.items() if text is not None and len(text) <= FILTER_VALUE_MAX}


def filter_text(attribute: Any) -> str | None:
    """Return a value as a filter writes it, 3.0 as 3; None for a list or an object, which no filter is for."""
    if isinstance(attribute, str):
        return attribute
    if isinstance(attribute, list | dict):
        return None
    whole = isinstance(attribute, float) and attribute.is_integer()
    return str(int(attribute)) if whole else orjson.dumps(attribute).decode()


def filter_values(wanted: AttributeIs) -> tuple[str, ...]:
    """Return the values of `filterable_attributes` among which an attribute with this value is."""
    if wanted.number is None:
        return (wanted.text,)
    value = Decimal(wanted.number)
    whole = value == value.to_integral_value()
    number: float = int(value) if whole else float(value)
    return tuple({wanted.text, str(number) if whole else orjson.dumps(number).decode()})


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether both are the same JSON; to Python 1 and true are equal."""
    return orjson.dumps(one, option=_SORTED) == orjson.dumps(other, option=_SORTED)


class MergedContact(Struct, frozen=True):
    """A contact that was merged into another one, or with `under_way` is being."""

    source: Contact
    target: Contact
    under_way: bool


class ContactFinder(Protocol):
    """Queries by which a contact is found, or where it went."""

    def contact(self, project: int, user_id: str) -> Contact | None:
        """See `ContactReader`."""

    def contact_by_id(self, project: int, contact_id: str) -> Contact | None:
        """See `ContactReader`."""

    def merged(self, project: int, identifier: str, *, by_id: bool) -> MergedContact | None:
        """See `ContactReader`."""


def find_contact(reader: ContactFinder, project: int, identifier: str, *, by_id: bool) -> Contact:
    """Return the contact with this `con_` id, or the backend's id.

    Raises NotFound: `contact_merged` of one that was merged into another one, and `contact_not_found`.
    """
    find = reader.contact_by_id if by_id else reader.contact
    contact = find(project, identifier)
    if contact is None:
        raise no_such_contact(reader.merged(project, identifier, by_id=by_id))
    return contact


def no_such_contact(merged: MergedContact | None) -> NotFound:
    """Return the refusal for a contact that is not there; it says where the contact went, if it was merged."""
    if merged is None:
        return NotFound("There is no such contact.", code="contact_not_found")
    into = {"id": merged.target.id, "userId": merged.target.user_id}
    return NotFound(
        "The contact was merged into another one, which `mergedInto` names.",
        code="contact_merged",
        shown={"mergedInto": into},
    )
