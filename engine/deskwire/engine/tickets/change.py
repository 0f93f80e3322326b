"""Changes of tickets in one transaction: checked against what they refer to, stored, and logged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Author, Conversation
from deskwire.engine.core.errors import Conflict, Invalid, NotFound, Problem
from deskwire.engine.tickets.activity import SYSTEM, By, activity
from deskwire.engine.tickets.ports import TicketChanges, TicketLooks, TicketReader, TicketTransaction
from deskwire.engine.tickets.ticket import PUBLIC_NAMES, Ticket, changed, first_values

Values = Mapping[str, Any]
"""Fields of `Ticket` with what they are to become; the contact by `contact_id` alone."""


class LinkChanged(Conflict):
    """The ticket was linked, or its link cut, since it was looked at."""

    code = "ticket_changed"


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """What came of a bulk change; `matched` is `updated` and `unchanged` together."""

    matched: int
    updated: int
    unchanged: int
    not_found: Sequence[str]


def find_ticket(reader: TicketReader, project: Project, ticket_id: str) -> Ticket:
    """The stored ticket. Raises NotFound."""
    ticket = reader.ticket(project.rowid, ticket_id)
    if ticket is None:
        raise NotFound("There is no such ticket.", code="ticket_not_found")
    return ticket


def create_ticket(
    tx: TicketChanges, project: Project, ticket_id: str, values: Values, by: By, at: int
) -> Ticket:
    """Store a new ticket. Raises Invalid if it refers to what the project does not have."""
    resolved = resolve(tx, project, None, values)
    new = Ticket(
        id=ticket_id, project=project.rowid, created_at=at, updated_at=at, activity_at=at, **resolved
    )
    ticket = tx.insert_ticket(new)
    tx.insert_activity(ticket.rowid, activity(by, "created", first_values(ticket), at))
    return ticket


def change_ticket(
    tx: TicketChanges,
    project: Project,
    ticket_id: str,
    values: Values,
    by: By,
    at: int,
    linked_to: str | None,
) -> Ticket:
    """Store a changed ticket; returns it.

    Args:
        linked_to: the conversation it is linked to, for a change of that.

    Raises:
        NotFound: there is no such ticket.
        LinkChanged: `values` change the link, and it is not `linked_to`.
        Invalid: it would refer to what the project does not have.
    """
    before = find_ticket(tx, project, ticket_id)
    if "conversation_id" in values and before.conversation_id != linked_to:
        raise _link_changed()
    return _save(tx, before, resolve(tx, project, before, values), by, at)


def remove_ticket(tx: TicketTransaction, project: Project, ticket_id: str, linked_to: str | None) -> Ticket:
    """Remove a ticket for good; returns what it was. Raises NotFound or LinkChanged."""
    ticket = find_ticket(tx, project, ticket_id)
    if ticket.conversation_id != linked_to:
        raise _link_changed()
    tx.erase_ticket(ticket)
    return ticket


def change_all(
    tx: TicketChanges, project: Project, ids: Sequence[str], values: Values, by: By, at: int
) -> BulkOutcome:
    """Change all these tickets alike. Raises Invalid if a user or team is unknown; then none is changed."""
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
    """Cut the link of the ticket whose conversation is being deleted."""
    if conversation.ticket_id is not None:
        ticket = tx.ticket(conversation.project, conversation.ticket_id)
        if ticket is not None and ticket.conversation_id == conversation.id:
            _save(tx, ticket, {"conversation_id": None}, SYSTEM, at)


def note_message(tx: TicketTransaction, ticket_id: str, author: Author, at: int) -> None:
    """Note that something was said in the ticket's conversation. What the contact says wakes the ticket."""
    ticket = tx.snoozed_ticket(ticket_id) if author.type == "contact" else None
    if ticket is None:
        tx.touch_ticket(ticket_id, at)
    else:
        _save(tx, ticket, {"snoozed_until": None}, SYSTEM, at)


def tend(tx: TicketChanges, now: int, limit: int) -> int:
    """Do up to `limit` of what is due: wake snoozed tickets, take them from deleted teams; how many it was."""
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
    reader: TicketLooks, project: Project, before: Ticket | None, values: Values, pointer: str = ""
) -> dict[str, Any]:
    """`values` with the contact's storage key, and a linked conversation's contact.

    Args:
        before: the ticket they are for, None for a new one.
        pointer: where the values stand in the body.

    Raises Invalid naming everything that the project does not have.
    """
    resolved = dict(values)
    contact, problems = _customer(reader, project, before, values)
    for name, find in _assignees(reader, project):
        wanted = values.get(name)
        if wanted is not None and find(wanted) is None:
            problems.append(_unknown(name, "user" if name == "processing_user" else "team"))
    if problems:
        raise Invalid(*(Problem(pointer + each.pointer, each.code, each.message) for each in problems))
    if contact is not None or "contact_id" in values:
        resolved |= {"contact": contact and contact.rowid, "contact_id": contact and contact.id}
    return resolved


def _assignees(reader: TicketLooks, project: Project) -> Iterator[tuple[str, Callable[[str], str | None]]]:
    yield "processing_user", lambda wanted: reader.member_name(project.organisation, wanted)
    yield "processing_team", lambda wanted: reader.team_name(project.rowid, wanted)


def _customer(
    reader: TicketLooks, project: Project, before: Ticket | None, values: Values
) -> tuple[Contact | None, list[Problem]]:
    """The contact that `values` make the ticket's own, None if they give it none; and what is wrong."""
    if not values.keys() & {"conversation_id", "contact_id"}:
        return None, []
    wanted = values.get("contact_id")
    linked = values.get("conversation_id", before and before.conversation_id)
    if linked is None:
        contact = None if wanted is None else reader.contact_by_id(project.rowid, wanted)
        return contact, [_unknown("contact_id", "contact")] if wanted is not None and contact is None else []
    found = reader.conversation(project.rowid, linked)
    if found is None:
        return None, [_unknown("conversation_id", "conversation")]
    if "contact_id" in values and wanted != found[1].id:
        message = "A ticket that is linked to a conversation has the contact of that."
        return found[1], [Problem("/contactId", "mismatch", message)]
    return found[1], []


def _unknown(name: str, what: str) -> Problem:
    return Problem(f"/{PUBLIC_NAMES[name]}", "unknown", f"There is no such {what} in this project.")


def _save(tx: TicketTransaction, before: Ticket, values: Values, by: By, at: int) -> Ticket:
    """Store and log what `values` change; the very same ticket if that is nothing."""
    after, changes = changed(before, values, at)
    if changes:
        tx.save_ticket(before, after)
        tx.insert_activity(after.rowid, activity(by, "changed", changes, at))
    return after


def _link_changed() -> LinkChanged:
    return LinkChanged("The ticket's link to a conversation has changed meanwhile; look again.")
