"""Presence: which agents are there, what they look at, and where they write.

It belongs to their streams and ends with them. An agent with several streams is one agent, who looks at what any of
them shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import orjson
from msgspec import Struct

VIEWED_MAX: Final = 20
"""Conversations that one page may say it shows."""


class View(Struct, frozen=True):
    """The view of one page: the conversations that it shows, and the one in which its agent writes."""

    conversations: tuple[str, ...] = ()
    composing: str | None = None


NOTHING: Final = View()


class Agent(Struct, frozen=True):
    """An agent as others see them."""

    id: str
    name: str


def merged(views: Iterable[View]) -> View:
    """Return what an agent looks at whose streams have these views."""
    views = tuple(views)
    conversations = dict.fromkeys(each for view in views for each in view.conversations)
    composing = next((view.composing for view in views if view.composing is not None), None)
    return View((*conversations,), composing)


def presence_view(agent: Agent, views: Iterable[View]) -> Mapping[str, Any]:
    """Return what others are told of an agent, whose streams have these views; without a stream the agent is gone."""
    views = tuple(views)
    view = merged(views)
    return {
        "id": agent.id,
        "name": agent.name,
        "online": bool(views),
        "conversationIds": [*view.conversations],
        "composing": view.composing,
    }


EPHEMERAL_TYPES: Final = frozenset(
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


class Ephemeral(Protocol):
    """An event that passes; `body` is a JSON object with its `type` and `data`."""

    @property
    def body(self) -> bytes:
        """The event as it is sent."""


class EncodedEphemeral(Struct, frozen=True):
    """A passing event as bytes; made by `ephemeral_event`."""

    body: bytes


def ephemeral_event(event_type: str, data: Mapping[str, Any]) -> EncodedEphemeral:
    """Return the passing event of this type: `me.seen`, `delivery.changed`, `contact.typing.started` and others."""
    return EncodedEphemeral(orjson.dumps({"type": event_type, "data": data}))
