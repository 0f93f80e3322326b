"""Decides what follows the end of a stream's connection (the stream's protocol, close codes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from deskwire_sdk import types
from deskwire_sdk._pusher import Closed
from deskwire_sdk.errors import StreamEnded, Superseded

StreamEvent: TypeAlias = types.WebhookEvent
"""An event of the stream, as webhooks and the feed have it."""

_SUPERSEDED: Final = 4009
_DELAY_S: Final = 1.0
_SHORT_DELAY_S: Final = 0.1
_DELAY_MAX_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Gap:
    """Events were missed that the stream will not send.

    Read the feed after `last_event_id`; if that raises `Gone`, or if it is None, fetch everything again.

    Args:
        channel: the channel that missed them.
        last_event_id: the last event before the gap; None if this consumer had none.
    """

    channel: str
    last_event_id: str | None


def end_of(closed: Closed) -> StreamEnded | None:
    """Return the error for a close code that ends the stream for good; None if the client is to reconnect."""
    if closed.code == _SUPERSEDED:
        return Superseded(closed.code, closed.reason)
    if 4000 <= closed.code < 4100 or 4300 <= closed.code < 5000:
        return StreamEnded(closed.code, closed.reason)
    return None


def reconnect_delay(code: int, failures: int) -> float:
    """Return the seconds until the next connection.

    Args:
        failures: connections that ended since the last subscription.
    """
    first = _SHORT_DELAY_S if 4200 <= code < 4300 else _DELAY_S
    return min(_DELAY_MAX_S, first * 2.0 ** min(failures, 10))
