"""One event of the feed: the bytes to forward, and what has to be known of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Event:
    """An event on its way.

    Args:
        conversation: id of its conversation, None for an event without one.
        contact: id of the contact that the event is about, if it is about a contact alone.
        sequence: None for an event without one (contract 2.10).
        body: the envelope's bytes as the service sent them.
    """

    id: str
    type: str
    conversation: str | None
    sequence: int | None
    body: bytes
    contact: str | None = None

    @property
    def ordering_key(self) -> str:
        """The key of the order: events with the same one are forwarded one after the other."""
        return self.conversation or self.contact or self.type


def read_event(body: bytes) -> Event:
    """Return the event in an envelope. Raises ValueError if it is none."""
    try:
        envelope = orjson.loads(body)
        return Event(
            str(envelope["id"]),
            str(envelope["type"]),
            _subject(envelope["data"], "conversation", "id"),
            envelope["sequence"],
            body,
            _subject(envelope["data"], "contact", "userId"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no event envelope: {error!r}") from error


def _subject(data: Any, kind: str, name: str) -> str | None:
    text: str | None = data.get(kind, {}).get(name)
    return text
