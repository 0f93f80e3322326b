"""A ticket, its changes field by field, and its object in the API and the events (decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import entity_tag, replace

Status = Literal["OPEN", "IN_PROGRESS", "DONE"]
Priority = Literal["LOW", "MEDIUM", "HIGH", "URGENT"]


class Ticket(Struct, frozen=True):
    """The state of a ticket. Times are milliseconds since the epoch.

    Args:
        rowid: its storage key; newer tickets have larger ones.
        processing_user, processing_team: ids of its assignees.
        conversation_id: the conversation it is linked to; its contact is the ticket's, then.
        contact, contact_id: storage key and id of the customer it is about.
        activity_at: when last anything happened to it or was said in its conversation.
    """

    id: str
    project: int
    title: str
    created_at: int
    updated_at: int
    activity_at: int
    rowid: int = 0
    description: str | None = None
    type: str | None = None
    status: Status = "OPEN"
    priority: Priority = "MEDIUM"
    processing_user: str | None = None
    processing_team: str | None = None
    snoozed_until: int | None = None
    conversation_id: str | None = None
    contact: int | None = None
    contact_id: str | None = None
    tags: tuple[str, ...] = ()


PUBLIC_NAMES: Final[Mapping[str, str]] = {
    "title": "title",
    "description": "description",
    "type": "type",
    "status": "status",
    "priority": "priority",
    "processing_user": "processingUser",
    "processing_team": "processingTeam",
    "snoozed_until": "snoozedUntil",
    "conversation_id": "conversationId",
    "contact_id": "contactId",
    "tags": "tags",
}
"""The fields that may change, with their names in the API."""

_SHOWN_MAX: Final = 500
"""Characters of a text in the activity log."""


class TicketChange(Struct, frozen=True):
    """A changed field: its name in the API and its values before and after."""

    field: str
    before: Any
    after: Any


def changed(ticket: Ticket, values: Mapping[str, Any], at: int) -> tuple[Ticket, tuple[TicketChange, ...]]:
    """Return the changed ticket and the changes; the same object without changes."""
    after = replace(ticket, **values)
    changes = differences(ticket, after)
    if not changes:
        return ticket, ()
    return replace(after, updated_at=at, activity_at=at), changes


def differences(before: Ticket, after: Ticket) -> tuple[TicketChange, ...]:
    """Return the fields that differ, in the order of PUBLIC_NAMES."""
    return tuple(
        TicketChange(public, _shown(name, getattr(before, name)), _shown(name, getattr(after, name)))
        for name, public in PUBLIC_NAMES.items()
        if getattr(before, name) != getattr(after, name)
    )


def first_values(ticket: Ticket) -> tuple[TicketChange, ...]:
    """Return the values of a new ticket, as changes from nothing."""
    blank = replace(
        ticket, title="", description=None, type=None, processing_user=None, processing_team=None,
        snoozed_until=None, conversation_id=None, contact_id=None, tags=(),
    )  # fmt: skip
    always = tuple(TicketChange(name, None, getattr(ticket, name)) for name in ("status", "priority"))
    filled = (replace(change, before=None) for change in differences(blank, ticket))
    return (*filled, *always)


def _shown(name: str, value: Any) -> Any:
    if name == "snoozed_until":
        return iso_or_none(value)
    if isinstance(value, str) and len(value) > _SHOWN_MAX:
        return f"{value[:_SHOWN_MAX]}…"
    return list(value) if isinstance(value, tuple) else value


def ticket_tag(ticket: Ticket) -> str:
    """Return the entity tag of a ticket. It ignores `lastActivityAt`, which no client can overwrite."""
    return entity_tag(
        {name: value for name, value in ticket_view(ticket).items() if name != "lastActivityAt"}
    )


def ticket_view(ticket: Ticket) -> dict[str, Any]:
    """Return the ticket as the API shows it."""
    return {
        "id": ticket.id,
        "title": ticket.title,
        "description": ticket.description,
        "type": ticket.type,
        "status": ticket.status,
        "priority": ticket.priority,
        "processingUser": ticket.processing_user,
        "processingTeam": ticket.processing_team,
        "snoozedUntil": iso_or_none(ticket.snoozed_until),
        "conversationId": ticket.conversation_id,
        "contactId": ticket.contact_id,
        "tags": list(ticket.tags),
        "createdAt": iso(ticket.created_at),
        "updatedAt": iso(ticket.updated_at),
        "lastActivityAt": iso(ticket.activity_at),
    }
