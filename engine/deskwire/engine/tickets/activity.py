"""The activity log of a ticket: each change with its time and its actor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.ids import is_id, new_id
from deskwire.engine.tickets.ticket import FieldChange

Action = Literal["created", "changed"]
ActorType = Literal["user", "machine", "system"]


class By(Struct, frozen=True):
    """The actor of a change: a user or machine credential, with the name as it was then, or the system itself."""

    user_id: str | None = None
    name: str | None = None

    @property
    def type(self) -> ActorType:
        """The kind of actor, which the id tells."""
        if self.user_id is None:
            return "system"
        return "machine" if is_id(self.user_id, "mcr") else "user"


SYSTEM: Final = By()


class TicketActivity(Struct, frozen=True):
    """An entry of the log; `at` in milliseconds, `rowid` grows with time."""

    id: str
    at: int
    by: By
    action: Action
    changes: Sequence[FieldChange]
    rowid: int = 0


def activity(by: By, action: Action, changes: Sequence[FieldChange], at: int) -> TicketActivity:
    """Return a new entry."""
    return TicketActivity(new_id("act", at), at, by, action, changes)


def activity_view(entry: TicketActivity) -> dict[str, Any]:
    """Return the entry as the API shows it."""
    by = entry.by
    return {
        "id": entry.id,
        "at": iso(entry.at),
        "actor": {"type": by.type, "id": by.user_id, "name": by.name},
        "action": entry.action,
        "changes": [
            {"field": change.field, "from": change.before, "to": change.after} for change in entry.changes
        ],
    }
