"""Blocks of contacts: a blocked contact can read, and can't write.

The commit of a message, a rating or a conversation of the contact checks its block, so that no message is stored after the commit
of the block. A contact's row holds the block as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.core.errors import Forbidden

REASON_MAX: Final = 500
"""Maximum length of the reason that an agent gives for a block."""


class ContactBlocked(Forbidden):
    """A blocked contact wrote, or another caller in its name."""

    code = "contact_blocked"

    def __init__(self) -> None:
        # The panel of the widget shows this sentence to the customer.
        super().__init__("This contact is blocked, so new messages are not accepted.", code=self.code)


def require_not_blocked(contact: Contact) -> None:
    """Raise ContactBlocked if the contact is blocked."""
    if contact.blocked is not None:
        raise ContactBlocked


def block_as_stored(at: int, by: Mapping[str, Any], reason: str | None) -> str:
    """Return a block in its stored form.

    Args:
        at: time in milliseconds.
        by: the actor as the API shows it.
    """
    return orjson.dumps({"at": at, "by": by, "reason": reason}).decode()
