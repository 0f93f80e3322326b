"""Passing events: of the moment, for the agents who are there. They have no id, are never stored and never sent again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import orjson
from msgspec import Struct

PASSING: Final = frozenset(
    {
        "presence",
        "me.seen",
        "me.all_seen",
        "delivery.changed",
        "contact.typing.started",
        "contact.typing.stopped",
        "draft.updated",
        "message.held",
        "message.held_ended",
    }
)
"""The types of passing events that there are, beside those of typing that others may have, too."""


class Passing(Protocol):
    """An event that passes; `body` is a JSON object with its `type` and `data`."""

    @property
    def body(self) -> bytes:
        """The event as it is sent."""


class PassingEvent(Struct, frozen=True):
    """A passing event as bytes; made by `passing`."""

    body: bytes


def passing(event_type: str, data: Mapping[str, Any]) -> PassingEvent:
    """Return the passing event of this type: `me.seen`, `delivery.changed`, `contact.typing.started` and others."""
    return PassingEvent(orjson.dumps({"type": event_type, "data": data}))
