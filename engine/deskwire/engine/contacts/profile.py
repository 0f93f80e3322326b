"""The profile of a contact: its attributes and tags, which both the backend and agents set and see.

They are beside the identity, and not in it: conversations and `contact.updated` have the identity alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import orjson
from msgspec import Struct

from deskwire.engine.contacts.contact import Contact, contact_view
from deskwire.engine.core.errors import Invalid
from deskwire.engine.definitions.attributes import AttributeIs, merged, overfull

FILTERED_MAX: Final = 200
"""Characters of an attribute's value by which contacts are found; a longer one is stored and shown all the same."""

_SORTED: Final = orjson.OPT_SORT_KEYS


class Profile(Struct, frozen=True):
    """The attributes and the tags of a contact; tags are in their one form and order."""

    attributes: Mapping[str, Any]
    tags: tuple[str, ...]


BLANK: Final = Profile({}, ())
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


def whole_view(contact: Contact, profile: Profile) -> dict[str, Any]:
    """Return the contact as the API shows it by itself: its identity, attributes and tags."""
    return {**contact_view(contact), "attributes": profile.attributes, "tags": list(profile.tags)}


def filtered(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that contacts are found by, each with its value as a filter writes it: texts, numbers, true and false."""
    found = {name: written(each) for name, each in attributes.items()}
    return {name: text for name, text in found.items() if text is not None and len(text) <= FILTERED_MAX}


def written(attribute: Any) -> str | None:
    """Return a value as a filter writes it, 3.0 as 3; None for a list or an object, which no filter is for."""
    if isinstance(attribute, str):
        return attribute
    if isinstance(attribute, list | dict):
        return None
    whole = isinstance(attribute, float) and attribute.is_integer()
    return str(int(attribute)) if whole else orjson.dumps(attribute).decode()


def found_by(wanted: AttributeIs) -> tuple[str, ...]:
    """Return the values of `filtered` among which an attribute with this value is."""
    if wanted.number is None:
        return (wanted.text,)
    value = Decimal(wanted.number)
    whole = value == value.to_integral_value()
    number: float = int(value) if whole else float(value)
    return tuple({wanted.text, str(number) if whole else orjson.dumps(number).decode()})


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether both are the same JSON; to Python 1 and true are equal."""
    return orjson.dumps(one, option=_SORTED) == orjson.dumps(other, option=_SORTED)
