"""Ephemeral events for agents, and presence: the agents who are online, and the conversations that they view and write in.

An ephemeral event has no id, is never stored, and reaches only streams that are open at the moment. An agent's presence ends
with the agent's last stream. An agent with several streams views the conversations of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from msgspec import Struct

VIEWED_MAX: Final = 20  # maximum conversations that one page may report as shown

# The types of ephemeral events for agents only; agents' streams carry the typing events of the contract as well.
EPHEMERAL_TYPES: Final = frozenset(
    {
        "presence",
        "me.seen",
        "me.all_seen",
        "delivery.changed",
        "contact.presence",
        "contact.typing.started",
        "contact.typing.stopped",
        "draft.updated",
        "message.held",
        "message.held_ended",
    }
)


class View(Struct, frozen=True):
    """The conversations that one page shows, and the one in which its agent writes."""

    conversations: tuple[str, ...] = ()
    composing: str | None = None


NOTHING: Final = View()


class Agent(Struct, frozen=True):
    """An agent as other agents see them."""

    id: str
    name: str


def merged(views: Iterable[View]) -> View:
    """Return the combined view of an agent whose streams have these views."""
    views = tuple(views)
    conversations = dict.fromkeys(each for view in views for each in view.conversations)
    composing = next((view.composing for view in views if view.composing is not None), None)
    return View((*conversations,), composing)


def presence_view(agent: Agent, views: Iterable[View]) -> Mapping[str, Any]:
    """Return an agent's presence as sent to others; an agent without a view is offline."""
    views = tuple(views)
    view = merged(views)
    return {
        "id": agent.id,
        "name": agent.name,
        "online": bool(views),
        "conversationIds": [*view.conversations],
        "composing": view.composing,
    }


class EncodedEphemeral(Struct, frozen=True):
    """An ephemeral event as bytes, made by `ephemeral_event`."""

    body: bytes


def ephemeral_event(event_type: str, data: Mapping[str, Any]) -> EncodedEphemeral:
    """Return the ephemeral event of this type, one of `EPHEMERAL_TYPES`."""
    return EncodedEphemeral(orjson.dumps({"type": event_type, "data": data}))
