"""Internal events: what agents are told, and nobody else.

They are for what no other event shows. Each is appended in the transaction of its change, has no number, is delivered to
nobody, and leaves the conversation's row as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.actor import Actor
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.events.types import AGENTS, Draft, StoredEvent

Setting = Literal[
    "members", "teams", "snippets", "workflows", "surveys", "translations", "webhooks", "project", "keys"
]
"""A kind of thing that a project is set up with."""

EventActorType = Literal["user", "key", "machine", "system", "contact", "bot"]


def event_actor_type(actor: Actor) -> EventActorType:
    """Return the actor's type as events and activity logs name it.

    Raises:
        ValueError: for a type that only the audit trail has.
    """
    match actor.type:
        case "server_key":
            return (
                "key"  # the name in events since their first version; only the audit trail says `server_key`
            )
        case "operator" | "anonymous" | "unknown":
            raise ValueError(f"{actor.type} is no type of actor in events")
        case other:
            return other


def actor_view(actor: Actor) -> dict[str, Any]:
    """Return the actor as events show it."""
    return {"type": event_actor_type(actor), "id": actor.id, "name": actor.name}


def tell_agents(
    tx: EventTransaction,
    project: Project,
    draft: Draft,
    subject: int | None,
    at: int,
    *,
    ticket: int | None = None,
) -> StoredEvent:
    """Put an internal event into the log.

    Args:
        subject: what it is about and is erased with: the storage key of a conversation, or a contact's by
            `contact_lane`. None is for what holds nothing of a contact.
        at: time in milliseconds.
        ticket: storage key of the ticket that it is about and is erased with, too.
    """
    assert draft.type in AGENTS, "everything else is appended with its deliveries"
    return tx.append_event(project, draft, subject, at, ticket=ticket)


def note_created(message: Mapping[str, Any], conversation: Mapping[str, Any]) -> Draft:
    """Return the event of a note; both objects are as agents see them."""
    return Draft("note.created", None, {"message": message, "conversation": conversation})


def conversation_changed(
    conversation: Mapping[str, Any],
    changed: Sequence[str],
    actor: Actor,
    *,
    redacted: Sequence[str] = (),
    deleted: Sequence[str] = (),
) -> Draft:
    """Return the event of a change that no other event shows, or none with its author.

    Args:
        conversation: the object as agents see it, after the change.
        changed: the names of its fields that changed.
        redacted, deleted: the ids of messages and notes that were.
    """
    data = {"conversation": conversation, "changed": [*changed], "actor": actor_view(actor)}
    if redacted:
        data["redactedMessageIds"] = [*redacted]
    if deleted:
        data["deletedMessageIds"] = [*deleted]
    return Draft("conversation.changed", None, data)


def ticket_event(
    what: Literal["created", "changed", "deleted"],
    ticket: Mapping[str, Any],
    changed: Sequence[str],
    actor: Actor,
) -> Draft:
    """Return an event of a ticket; of a deleted one the ids alone."""
    data = {"ticket": ticket, "changed": [*changed], "actor": actor_view(actor)}
    return Draft(f"ticket.{what}", None, data)


def memory_changed(contact_id: str, *, deleted: bool) -> Draft:
    """Return the event of what is remembered of a contact. It names no entry: what is forgotten leaves no byte."""
    return Draft("memory.changed", None, {"contactId": contact_id, "deleted": deleted})


def settings_changed(what: Setting, object_id: str | None) -> Draft:
    """Return the event of a change to what the project is set up with; without an id it is of several things."""
    return Draft("settings.changed", None, {"what": what, "id": object_id})
