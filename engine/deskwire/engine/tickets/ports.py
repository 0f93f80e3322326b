"""The requirements of tickets on the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, get_args

from msgspec import Struct

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader, TeamTransaction
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.values import SortOrder
from deskwire.engine.tickets.activity import TicketActivity
from deskwire.engine.tickets.ticket import Priority, Status, Ticket
from deskwire.engine.webhooks.publish import PublishTransaction

SortKey = Literal["createdAt", "updatedAt", "priority", "lastActivity"]
SORT_KEYS: Final[tuple[SortKey, ...]] = get_args(SortKey)
"""All sort keys. Cursors hold an index into this list, so a new key goes last."""

UNASSIGNED: Final = "none"
"""The assignee of a filter for unassigned tickets."""


class TicketFilter(Struct, frozen=True):
    """The conditions of a listing of tickets; None means any.

    Args:
        assignee: id of a user or team, or UNASSIGNED.
        contact: storage key.
        text: words or prefixes that title and description together must all have.
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


class TicketSort(Struct, frozen=True):
    """The order of a listing. Ties are broken by creation, the newer ticket being the larger."""

    key: SortKey = "createdAt"
    order: SortOrder = "desc"


class TicketPageKey(Struct, frozen=True):
    """The position after which a page of a listing starts: a value of the sort key and a row."""

    value: int
    rowid: int


class TicketReader(Protocol):
    """Queries on tickets."""

    def ticket(self, project: int, ticket_id: str) -> Ticket | None:
        """Return the ticket; None if this project has none with that id."""

    def tickets(
        self, project: int, wanted: TicketFilter, sort: TicketSort, after: TicketPageKey | None, limit: int
    ) -> Sequence[tuple[Ticket, TicketPageKey]]:
        """Return tickets in the order of `sort`, each with its page key."""

    def ticket_activity(self, ticket: int, before: int | None, limit: int) -> Sequence[TicketActivity]:
        """Return entries of a ticket's log before this row, newest first."""

    def next_wake_up(self) -> int | None:
        """Return the time (ms) at which the next snoozed ticket of any project wakes; None without one."""

    def snoozed_ticket(self, ticket_id: str) -> Ticket | None:
        """Return the ticket if it is snoozed."""

    def snoozed_tickets(self, until: int, limit: int) -> Sequence[Ticket]:
        """Return snoozed tickets of any project that wake by `until` (ms), the earliest first."""

    def tickets_of_team(self, team_id: str, limit: int) -> Sequence[Ticket]:
        """Return tickets given to this team, in no order."""


class TicketTransaction(TicketReader, PublishTransaction, AccountReader, Protocol):
    """Changes of tickets."""

    def insert_ticket(self, ticket: Ticket) -> Ticket:
        """Store a new ticket; return it with its `rowid`."""

    def save_ticket(self, before: Ticket, after: Ticket) -> None:
        """Store a changed ticket."""

    def insert_activity(self, ticket: int, entry: TicketActivity) -> None:
        """Add an entry to a ticket's log."""

    def touch_ticket(self, ticket_id: str, at: int) -> None:
        """Set the time (ms) of the ticket's last activity."""

    def erase_ticket(self, ticket: Ticket) -> None:
        """Delete the ticket with all its rows, and overwrite its text."""

    def tickets_of(self, contact: int, limit: int) -> Sequence[Ticket]:
        """Return up to `limit` of a contact's tickets, in no order."""


class TicketUpkeepReader(
    TicketReader, ConversationReader, ContactReader, AccountReader, TeamReader, Protocol
):
    """Queries on tickets and on the rows that they refer to."""


class TicketUpkeepTransaction(TicketTransaction, TicketUpkeepReader, TeamTransaction, Protocol):
    """Changes of tickets, with queries on the rows that they refer to."""
