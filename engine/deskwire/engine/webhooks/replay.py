"""A replay: the events of one conversation, sent again to one endpoint."""

from __future__ import annotations

from msgspec import Struct

from deskwire.engine.events.types import STORED, matches
from deskwire.engine.webhooks.endpoint import Endpoint


class Replayed(Struct, frozen=True):
    """The events to send again: of these types, from the first sequence to the last, both included; None is for no bound."""

    types: frozenset[str]
    first: int | None = None
    last: int | None = None


class Replayable(Struct, frozen=True):
    """The numbers of events that a replay finds.

    Args:
        count: events that it sends.
        pending: events that it leaves out, as they are on their way to the endpoint anyway.
        not_stored: deliveries whose event can't be sent again, as it is no longer stored.
    """

    count: int
    pending: int
    not_stored: int


def replayed_types(endpoint: Endpoint) -> frozenset[str]:
    """Return the types of a conversation's numbered events that the endpoint is sent."""
    return frozenset(name for name in STORED if matches(endpoint.events, name))
