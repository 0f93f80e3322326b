"""The changes of tickets within a transaction: references are checked, the change is stored and logged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.roles import assignable_user
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Author, Conversation
from deskwire.engine.core.actor import SYSTEM, Actor
from deskwire.engine.core.errors import Conflict, Invalid, NotFound, Problem
from deskwire.engine.core.values import UNCONDITIONAL, Precondition
from deskwire.engine.tickets import ticket_events
from deskwire.engine.tickets.activity import activity
from deskwire.engine.tickets.ports import (
    TicketReader,
    TicketTransaction,
    TicketUpkeepReader,
    TicketUpkeepTransaction,
)
from deskwire.engine.tickets.ticket import PUBLIC_NAMES, Ticket, changed, first_values, ticket_tag

Values = Mapping[str, Any]
"""Fields of `Ticket` with their new values. `contact_id` sets the contact; its storage key follows from it."""


class LinkChanged(Conflict):
    """The ticket was linked or unlinked after it was read."""

    code = "ticket_changed"


class BulkOutcome(Struct, frozen=True):
    """The outcome of a bulk change; `matched` is `updated` and `unchanged` together."""

    matched: int
    updated: int
    unchanged: int
    not_found: Sequence[str]


def find_ticket(reader: TicketReader, project: Project, ticket_id: str) -> Ticket:
    """Return the stored ticket. Raises NotFound."""
    ticket = reader.ticket(project.rowid, ticket_id)
    if ticket is None:
        raise NotFound("There is no such ticket.", code="ticket_not_found")
    return ticket


def create_ticket(
    tx: TicketUpkeepTransaction, project: Project, ticket_id: str, values: Values, by: Actor, at: int
) -> Ticket:
    """Store a new ticket. Raises Invalid if it refers to something that the project does not have."""
    resolved = resolve(tx, project, None, values)
    new = Ticket(
        id=ticket_id, project=project.rowid, created_at=at, updated_at=at, activity_at=at, **resolved
    )
    ticket = tx.insert_ticket(new)
    tx.insert_activity(ticket.rowid, activity(by, "created", first_values(ticket), at))
    ticket_events.created(tx, project, ticket, by, at)
    return ticket


def change_ticket(
    tx: TicketUpkeepTransaction,
    project: Project,
    ticket_id: str,
    values: Values,
    by: Actor,
    at: int,
    linked_to: str | None,
    seen: Precondition = UNCONDITIONAL,
) -> Ticket:
    """Store a changed ticket; return it.

    Args:
        linked_to: the conversation that the ticket was linked to when it was read, if the link changes.
        seen: the `If-Match` precondition of the request.

    Raises:
        NotFound: there is no such ticket.
        PreconditionFailed: it is not what was `seen`.
        LinkChanged: `values` change the link, and it is not `linked_to`.
        Invalid: it would refer to something that the project does not have.
    """
    before = find_ticket(tx, project, ticket_id)
    seen.check(lambda: ticket_tag(before))
    if "conversation_id" in values and before.conversation_id != linked_to:
        raise _link_changed()
    return _save(tx, before, resolve(tx, project, before, values), by, at)


def remove_ticket(
    tx: TicketTransaction,
    project: Project,
    ticket_id: str,
    by: Actor,
    at: int,
    linked_to: str | None,
    seen: Precondition = UNCONDITIONAL,
) -> Ticket:
    """Delete a ticket and return it. Raises NotFound, PreconditionFailed or LinkChanged."""
    ticket = find_ticket(tx, project, ticket_id)
    seen.check(lambda: ticket_tag(ticket))
    if ticket.conversation_id != linked_to:
        raise _link_changed()
    tx.erase_ticket(ticket)
    ticket_events.deleted(tx, project, ticket, by, at)
    return ticket


def erase_tickets_of(tx: TicketTransaction, project: Project, contact: int, limit: int, at: int) -> int:
    """Erase up to `limit` of a contact's tickets; return their number."""
    tickets = tx.tickets_of(contact, limit)
    for ticket in tickets:
        tx.erase_ticket(ticket)
        ticket_events.deleted(tx, project, ticket, SYSTEM, at)
    return len(tickets)


def change_all(
    tx: TicketUpkeepTransaction, project: Project, ids: Sequence[str], values: Values, by: Actor, at: int
) -> BulkOutcome:
    """Apply the same change to several tickets. Raises Invalid, with no change, if a user or team is unknown."""
    resolved = resolve(tx, project, None, values, "/payload")
    updated, unchanged, not_found = 0, 0, list[str]()
    for ticket_id in ids:
        before = tx.ticket(project.rowid, ticket_id)
        if before is None:
            not_found.append(ticket_id)
        elif _save(tx, before, resolved, by, at) is before:
            unchanged += 1
        else:
            updated += 1
    return BulkOutcome(updated + unchanged, updated, unchanged, not_found)


def unlink_deleted(tx: TicketTransaction, conversation: Conversation, at: int) -> None:
    """Unlink the ticket of a conversation that is being deleted."""
    if conversation.ticket_id is not None:
        ticket = tx.ticket(conversation.project, conversation.ticket_id)
        if ticket is not None and ticket.conversation_id == conversation.id:
            _save(tx, ticket, {"conversation_id": None}, SYSTEM, at)


def follow_contact(tx: TicketTransaction, conversation: Conversation, contact: Contact, at: int) -> None:
    """Set the contact of the linked ticket to the new contact of its conversation."""
    if conversation.ticket_id is not None:
        ticket = tx.ticket(conversation.project, conversation.ticket_id)
        if ticket is not None and ticket.conversation_id == conversation.id:
            _save(tx, ticket, _of_contact(contact), SYSTEM, at)


def move_tickets_of(tx: TicketTransaction, contact: int, target: Contact, limit: int, at: int) -> int:
    """Move up to `limit` of a contact's tickets to another contact; return their number."""
    tickets = tx.tickets_of(contact, limit)
    for ticket in tickets:
        _save(tx, ticket, _of_contact(target), SYSTEM, at)
    return len(tickets)


def note_message(tx: TicketTransaction, ticket_id: str, author: Author, at: int) -> None:
    """Record the time of a message in the linked conversation. A contact's message wakes the ticket."""
    ticket = tx.snoozed_ticket(ticket_id) if author.type == "contact" else None
    if ticket is None:
        tx.touch_ticket(ticket_id, at)
    else:
        _save(tx, ticket, {"snoozed_until": None}, SYSTEM, at)


def change_due(tx: TicketUpkeepTransaction, now: int, limit: int) -> int:
    """Wake due tickets and unassign those of deleted teams; return the number of changes, at most `limit`."""
    woken = tx.snoozed_tickets(now, limit)
    for ticket in woken:
        _save(tx, ticket, {"snoozed_until": None}, SYSTEM, now)
    done = len(woken)
    for team, team_id in tx.deleted_teams() if done < limit else ():
        orphans = tx.tickets_of_team(team_id, limit - done)
        for ticket in orphans:
            _save(tx, ticket, {"processing_team": None}, SYSTEM, now)
        done += len(orphans)
        if done == limit:
            break
        tx.forget_team(team)
    return done


def resolve(
    reader: TicketUpkeepReader, project: Project, before: Ticket | None, values: Values, pointer: str = ""
) -> dict[str, Any]:
    """Return `values` with the contact's storage key, or that of the linked conversation's contact.

    Args:
        before: the current ticket, None for a new one.
        pointer: JSON pointer to the values in the body.

    Raises Invalid naming everything that the project does not have, and a user who is a viewer.
    """
    resolved = dict(values)
    contact, problems = _customer(reader, project, before, values)
    problems += _assignee_problems(reader, project, before, values)
    if problems:
        raise Invalid(
            *(Problem(pointer + problem.pointer, problem.code, problem.message) for problem in problems)
        )
    if contact is not None or "contact_id" in values:
        resolved |= {"contact": contact and contact.rowid, "contact_id": contact and contact.id}
    return resolved


def _assignee_problems(
    reader: TicketUpkeepReader, project: Project, before: Ticket | None, values: Values
) -> Iterator[Problem]:
    """Yield the problems of the assigned user and team; the current assignees are always accepted."""
    user, team = values.get("processing_user"), values.get("processing_team")
    if user is not None and (before is None or before.processing_user != user):
        pointer = f"/{PUBLIC_NAMES['processing_user']}"
        _, problem = assignable_user(reader, project.organisation, user, pointer)
        if problem is not None:
            yield problem
    if team is not None and reader.team_name(project.rowid, team) is None:
        yield _unknown("processing_team", "team")


def _customer(
    reader: TicketUpkeepReader, project: Project, before: Ticket | None, values: Values
) -> tuple[Contact | None, list[Problem]]:
    """Return the contact of `values`, None without one, and the problems."""
    if not values.keys() & {"conversation_id", "contact_id"}:
        return None, []
    contact_id = values.get("contact_id")
    linked = values.get("conversation_id", before and before.conversation_id)
    if linked is None:
        if contact_id is None:
            return None, []
        contact = reader.contact_by_id(project.rowid, contact_id)
        return contact, [] if contact is not None else [_unknown("contact_id", "contact")]
    conversation = reader.conversation(project.rowid, linked)
    if conversation is None:
        return None, [_unknown("conversation_id", "conversation")]
    customer = conversation[1]
    if "contact_id" in values and contact_id != customer.id:
        message = "A ticket that is linked to a conversation has the contact of that."
        return customer, [Problem("/contactId", "mismatch", message)]
    return customer, []


def _of_contact(contact: Contact) -> dict[str, Any]:
    return {"contact": contact.rowid, "contact_id": contact.id}


def _unknown(name: str, what: str) -> Problem:
    return Problem(f"/{PUBLIC_NAMES[name]}", "unknown", f"There is no such {what} in this project.")


def _save(tx: TicketTransaction, before: Ticket, values: Values, by: Actor, at: int) -> Ticket:
    """Store and log the change; return the same object if `values` change nothing."""
    after, changes = changed(before, values, at)
    if changes:
        tx.save_ticket(before, after)
        tx.insert_activity(after.rowid, activity(by, "changed", changes, at))
        ticket_events.changed(tx, after, [change.field for change in changes], by, at)
    return after


def _link_changed() -> LinkChanged:
    return LinkChanged(
        "The link between the ticket and its conversation was changed by another request. Read the ticket again."
    )
