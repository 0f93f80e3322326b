"""One event of the feed: the bytes to forward, and what has to be known of them."""

from __future__ import annotations

from typing import Any, Final

import orjson
from msgspec import Struct

_SUBJECTS: Final = (
    ("ticket", "id"),
    ("response", "id"),
    ("survey", "id"),
    ("endpoint", "id"),
    ("contact", "userId"),
)
"""Where an event's data names what it is about, if that is no conversation: what is looked for first comes first."""


class Event(Struct, frozen=True):
    """An event on its way.

    Args:
        conversation: id of its conversation, None for an event without one.
        subject: id of what the event is about, if it is about something else alone, such as a contact or a ticket.
        sequence: None for an event without one (contract 2.10).
        body: the envelope's bytes as the service sent them.
    """

    id: str
    type: str
    conversation: str | None
    sequence: int | None
    body: bytes
    subject: str | None = None

    @property
    def ordering_key(self) -> str:
        """The key of the order: events with the same one are forwarded one after the other."""
        return self.conversation or self.subject or self.type


def read_event(body: bytes) -> Event:
    """Return the event in an envelope. Raises ValueError if it is none."""
    try:
        envelope = orjson.loads(body)
        data = envelope["data"]
        return Event(
            str(envelope["id"]),
            str(envelope["type"]),
            _part(data, "conversation", "id") or data.get("conversationId"),
            envelope["sequence"],
            body,
            next(filter(None, (_part(data, *each) for each in _SUBJECTS)), None),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no event envelope: {error!r}") from error


def _part(data: Any, kind: str, name: str) -> str | None:
    text: str | None = data.get(kind, {}).get(name)
    return text
