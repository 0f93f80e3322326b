"""Events about tickets for agents, and for endpoints that subscribe to them, in the transaction of the change."""

from __future__ import annotations

from collections.abc import Sequence

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.actor import Actor
from deskwire.engine.events.project_events import ticket_event
from deskwire.engine.events.types import EventDraft, contact_lane, ticket_lane
from deskwire.engine.tickets.ports import TicketTransaction
from deskwire.engine.tickets.ticket import Ticket, ticket_view
from deskwire.engine.webhooks.publish import publish_extension


def created(tx: TicketTransaction, project: Project, ticket: Ticket, by: Actor, at: int) -> None:
    """Emit the event of a new ticket."""
    draft = ticket_event("created", ticket_view(ticket), (), by)
    _emit(tx, project, draft, ticket, at)


def changed(tx: TicketTransaction, ticket: Ticket, names: Sequence[str], by: Actor, at: int) -> None:
    """Emit the event of a changed ticket with the changed fields; no event if the project was deleted."""
    project = tx.project_with(ticket.project)
    if project is not None:
        draft = ticket_event("changed", ticket_view(ticket), names, by)
        _emit(tx, project, draft, ticket, at)


def deleted(tx: TicketTransaction, project: Project, ticket: Ticket, by: Actor, at: int) -> None:
    """Emit the event of a deleted ticket, with its ids but without its content."""
    ids = {"id": ticket.id, "conversationId": ticket.conversation_id, "contactId": ticket.contact_id}
    draft = ticket_event("deleted", ids, (), by)
    publish_extension(tx, project, draft, None, at, lane=ticket_lane(ticket.rowid))


def _emit(tx: TicketTransaction, project: Project, draft: EventDraft, ticket: Ticket, at: int) -> None:
    subject = None if ticket.contact is None else contact_lane(ticket.contact)
    publish_extension(tx, project, draft, subject, at, lane=ticket_lane(ticket.rowid), ticket=ticket.rowid)
