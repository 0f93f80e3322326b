"""The customer's view of conversations, messages and events: an allow-list of the public objects.

Each function takes an object as the API or a stored envelope shows it, and returns a new object that has the listed fields
only. A field that is added to an event later stays hidden from customers until it is listed here. Attributes, tickets, the
project, and the ids of agents, workflows and teams are not on the lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

CONVERSATION: Final = (
    "id",
    "clientId",
    "title",
    "status",
    "closed",
    "closedBy",
    "unread",
    "assignee",
    "rating",
    "ratingComment",
    "lastMessageAt",
    "lastMessage",
    "createdAt",
    "updatedAt",
    "closedAt",
    "sequence",
    "channelId",
    "mergedInto",
    "splitFrom",
)
"""The fields of a conversation that its customer may see."""

MESSAGE: Final = (
    "id",
    "clientId",
    "conversationId",
    "index",
    "author",
    "text",
    "format",
    "attachments",
    "createdAt",
    "redactedAt",
)
"""The fields of a message that the customer may see."""

ENVELOPE: Final = ("id", "type", "createdAt", "sequence", "data")
"""The fields of an event's envelope that the customer may see; `sequence` only if the event has one."""

DATA: Final = (
    "conversation",
    "message",
    "step",
    "closedBy",
    "changed",
    "deletedMessageIds",
    "redactedMessageIds",
)
"""The fields of an event's `data` that the customer may see."""

ASSIGNEE: Final = ("type", "name")
ATTACHMENT: Final = ("id", "name", "type", "size", "url")
STEP: Final = ("stepType", "actionId", "action")
ACTION: Final = ("id", "type", "text", "options", "allowText", "fields")
OPTION: Final = ("id", "label")
FIELD: Final = ("id", "type", "label", "required")
_CHANGED: Final = frozenset({*CONVERSATION, "messages"})
# The preview in agents' objects may be of a note, so `lastMessage` comes from the caller alone.
_COPIED: Final = tuple(name for name in CONVERSATION if name != "lastMessage")

_Json = Mapping[str, Any]


def customer_conversation(conversation: _Json, last: _Json | None = None) -> dict[str, Any]:
    """Return a conversation as its customer may see it.

    Args:
        conversation: the public object, which in the event of a deletion has fewer fields.
        last: the public object of its newest message, for `lastMessage`.
    """
    shown = _listed(conversation, _COPIED)
    assignee = shown.get("assignee")
    if assignee is not None:
        shown["assignee"] = _listed(assignee, ASSIGNEE)
    if last is not None:
        shown["lastMessage"] = customer_message(last)
    return shown


def customer_message(message: _Json) -> dict[str, Any]:
    """Return a message as the customer may see it; `author.self` is true for the customer's own messages."""
    shown = _listed(message, MESSAGE)
    author = message["author"]
    shown["author"] = {
        "type": author["type"],
        "name": author["name"],
        # Every contact in a conversation is its customer, also after a merge of contacts, which keeps the authors' ids.
        "self": author["type"] == "contact",
    }
    shown["attachments"] = _each(message["attachments"], ATTACHMENT)
    return shown


def customer_step(step: _Json | None) -> dict[str, Any] | None:
    """Return a pending workflow step as the customer may see it, without the ids of its workflow and flow."""
    if step is None:
        return None
    shown, action = _listed(step, STEP), _listed(step["action"], ACTION)
    for name, fields in (("options", OPTION), ("fields", FIELD)):
        if name in action:
            action[name] = _each(action[name], fields)
    shown["action"] = action
    return shown


def customer_event(envelope: _Json) -> dict[str, Any]:
    """Return a stored event as the customer may see it.

    An event of a type without listed data keeps its envelope with empty `data`, so that no cursor and no sequence has a hole.
    """
    shown = _listed(envelope, ENVELOPE)
    if envelope.get("sequence") is None:
        shown.pop("sequence", None)
    data = _listed(envelope["data"], DATA)
    shown["data"] = {
        name: _DATA_VIEWS[name](value) if name in _DATA_VIEWS else value for name, value in data.items()
    }
    return shown


def _changed_names(names: Sequence[str]) -> list[str]:
    return [name for name in names if name in _CHANGED]


_DATA_VIEWS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "conversation": customer_conversation,
    "message": customer_message,
    "step": customer_step,
    "changed": _changed_names,
}


def _listed(value: _Json, names: Sequence[str]) -> dict[str, Any]:
    return {name: value[name] for name in names if name in value}


def _each(values: Sequence[_Json], names: Sequence[str]) -> list[dict[str, Any]]:
    return [_listed(value, names) for value in values]
