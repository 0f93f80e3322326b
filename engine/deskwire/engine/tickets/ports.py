"""The queries and changes that tickets need of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, get_args

from msgspec import Struct

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader, TeamTransaction
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.values import SortOrder
from deskwire.engine.tickets.activity import Activity
from deskwire.engine.tickets.ticket import Priority, Status, Ticket
from deskwire.engine.webhooks.publish import PublishTransaction

SortKey = Literal["createdAt", "updatedAt", "priority", "lastActivity"]
SORT_KEYS: Final[tuple[SortKey, ...]] = get_args(SortKey)
"""All sort keys; cursors hold their places here, so a new one goes last."""

NOBODY: Final = "none"
"""The assignee of a filter for tickets that neither a user nor a team has."""


class TicketFilter(Struct, frozen=True):
    """The conditions of a listing of tickets; None means any.

    Args:
        assignee: id of a user or team, or NOBODY.
        contact: storage key.
        text: words, or beginnings of words, that title and description must have, all of them.
    """

    status: Status | None = None
    priority: Priority | None = None
    assignee: str | None = None
    tag: str | None = None
    type: str | None = None
    snoozed: bool | None = None
    contact: int | None = None
    conversation: str | None = None
    text: str | None = None


class Sort(Struct, frozen=True):
    """The order of a listing. Of equals the ticket made later counts as the larger."""

    key: SortKey = "createdAt"
    order: SortOrder = "desc"


class Place(Struct, frozen=True):
    """The place at which a listing goes on: behind this value of its sort key and this row."""

    value: int
    rowid: int


class TicketReader(Protocol):
    """Queries on tickets."""

    def ticket(self, project: int, ticket_id: str) -> Ticket | None:
        """Return the ticket; None if this project has none with that id."""

    def tickets(
        self, project: int, wanted: TicketFilter, sort: Sort, after: Place | None, limit: int
    ) -> Sequence[tuple[Ticket, Place]]:
        """Return tickets in the order of `sort`, each with its place in it."""

    def ticket_activity(self, ticket: int, before: int | None, limit: int) -> Sequence[Activity]:
        """Return entries of a ticket's log, newest first, in front of this row."""

    def next_wake_up(self) -> int | None:
        """Return when (ms) the next snoozed ticket of any project wakes up; None if none does."""

    def snoozed_ticket(self, ticket_id: str) -> Ticket | None:
        """Return the ticket if it is snoozed."""

    def snoozed_tickets(self, until: int, limit: int) -> Sequence[Ticket]:
        """Return snoozed tickets of any project that are to wake up by `until` (ms), the earliest first."""

    def tickets_of_team(self, team_id: str, limit: int) -> Sequence[Ticket]:
        """Return tickets given to this team, in no order."""


class TicketTransaction(TicketReader, PublishTransaction, AccountReader, Protocol):
    """Changes of tickets."""

    def insert_ticket(self, ticket: Ticket) -> Ticket:
        """Store a new ticket; return it with its `rowid`."""

    def save_ticket(self, before: Ticket, after: Ticket) -> None:
        """Store a changed ticket."""

    def insert_activity(self, ticket: int, entry: Activity) -> None:
        """Add an entry to a ticket's log."""

    def touch_ticket(self, ticket_id: str, at: int) -> None:
        """Note that something happened around a ticket, `at` this time (ms)."""

    def erase_ticket(self, ticket: Ticket) -> None:
        """Remove the ticket with all that belongs to it; no byte of its text stays."""

    def tickets_of(self, contact: int, limit: int) -> Sequence[Ticket]:
        """Return up to `limit` of a contact's tickets, in no order."""


class TicketLooks(TicketReader, ConversationReader, ContactReader, AccountReader, TeamReader, Protocol):
    """Queries on tickets, and on what they refer to."""


class TicketChanges(TicketTransaction, TicketLooks, TeamTransaction, Protocol):
    """Changes of tickets, with queries on what they refer to."""
