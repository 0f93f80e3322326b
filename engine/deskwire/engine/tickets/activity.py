"""The activity log of a ticket: each change with its time and its actor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from deskwire.engine.core.actor import SYSTEM, Actor
from deskwire.engine.core.clock import iso
from deskwire.engine.core.ids import is_id, new_id
from deskwire.engine.tickets.ticket import TicketChange

Action = Literal["created", "changed"]
TicketActorType = Literal["user", "machine", "system"]


def ticket_actor(actor_id: str | None, name: str | None) -> Actor:
    """Return the stored actor of a ticket's change. The id says which type it has; without one it is the service."""
    if actor_id is None:
        return SYSTEM
    return Actor("machine" if is_id(actor_id, "mcr") else "user", actor_id, name)


class TicketActivity(Struct, frozen=True):
    """An entry of the log; `at` in milliseconds, `rowid` grows with time."""

    id: str
    at: int
    by: Actor
    action: Action
    changes: Sequence[TicketChange]
    rowid: int = 0


def activity(by: Actor, action: Action, changes: Sequence[TicketChange], at: int) -> TicketActivity:
    """Return a new entry."""
    return TicketActivity(new_id("act", at), at, by, action, changes)


def activity_view(entry: TicketActivity) -> dict[str, Any]:
    """Return the entry as the API shows it."""
    by = entry.by
    return {
        "id": entry.id,
        "at": iso(entry.at),
        "actor": {"type": by.type, "id": by.id, "name": by.name},
        "action": entry.action,
        "changes": [
            {"field": change.field, "from": change.before, "to": change.after} for change in entry.changes
        ],
    }
