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
        sequence: None for an event without one (contract 2.10).
        body: the envelope's bytes as the service sent them.
    """

    id: str
    type: str
    conversation: str | None
    sequence: int | None
    body: bytes

    @property
    def lane(self) -> str:
        """Events with the same lane are forwarded one after the other."""
        return self.conversation or self.type


def read_event(body: bytes) -> Event:
    """The event in an envelope. Raises ValueError if it is none."""
    try:
        envelope = orjson.loads(body)
        return Event(
            str(envelope["id"]),
            str(envelope["type"]),
            _conversation(envelope["data"]),
            envelope["sequence"],
            body,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no event envelope: {error!r}") from error


def _conversation(data: Any) -> str | None:
    found: str | None = data.get("conversation", {}).get("id")
    return found
