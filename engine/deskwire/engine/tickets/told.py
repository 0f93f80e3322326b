"""The events by which agents, and endpoints that ask for it, are told of tickets, in the transaction of the change."""

from __future__ import annotations

from collections.abc import Sequence

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.internal import Actor, ticket_event
from deskwire.engine.events.types import Draft, contact_lane, ticket_lane
from deskwire.engine.tickets.activity import By
from deskwire.engine.tickets.ports import TicketTransaction
from deskwire.engine.tickets.ticket import Ticket, ticket_view
from deskwire.engine.webhooks.publish import publish_extension


def created(tx: TicketTransaction, project: Project, ticket: Ticket, by: By, at: int) -> None:
    """Tell of a new ticket."""
    draft = ticket_event("created", ticket_view(ticket), (), _actor(by))
    _tell(tx, project, draft, ticket, at)


def changed(tx: TicketTransaction, ticket: Ticket, names: Sequence[str], by: By, at: int) -> None:
    """Tell of a changed ticket, and of the fields that are others; nobody, if its project is no more."""
    project = tx.project_with(ticket.project)
    if project is not None:
        draft = ticket_event("changed", ticket_view(ticket), names, _actor(by))
        _tell(tx, project, draft, ticket, at)


def deleted(tx: TicketTransaction, project: Project, ticket: Ticket, by: By, at: int) -> None:
    """Tell that a ticket is gone: its ids, and nothing of what it said."""
    ids = {"id": ticket.id, "conversationId": ticket.conversation_id, "contactId": ticket.contact_id}
    draft = ticket_event("deleted", ids, (), _actor(by))
    publish_extension(tx, project, draft, None, at, lane=ticket_lane(ticket.rowid))


def _tell(tx: TicketTransaction, project: Project, draft: Draft, ticket: Ticket, at: int) -> None:
    subject = None if ticket.contact is None else contact_lane(ticket.contact)
    publish_extension(tx, project, draft, subject, at, lane=ticket_lane(ticket.rowid), ticket=ticket.rowid)


def _actor(by: By) -> Actor:
    return Actor(by.type, by.user_id, by.name)
