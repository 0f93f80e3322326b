"""A contact's identity: its fields, and the detection of changes (decisions 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.values import replace

IDENTITY: Final = ("name", "email", "phone", "avatar")
"""The fields that may change; with `userId`, which may not, they are a contact's identity."""

NOBODY: Final[Mapping[str, None]] = dict.fromkeys(IDENTITY)
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
