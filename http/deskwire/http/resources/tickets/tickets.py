"""Tickets: created, listed, searched, changed one by one or in bulk (contract 4.2; decisions 7)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.audit.trail import RecordingHook
from deskwire.engine.core.errors import Invalid
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.tickets.activity import TicketActivity, activity_view
from deskwire.engine.tickets.change import change_all, find_ticket, resolve
from deskwire.engine.tickets.ports import (
    SORT_KEYS,
    TicketFilter,
    TicketPageKey,
    TicketReader,
    TicketSort,
    TicketUpkeepReader,
)
from deskwire.engine.tickets.service import TicketService
from deskwire.engine.tickets.ticket import Ticket, ticket_tag, ticket_view
from deskwire.http.api.calls import Answer, Call, Tagged
from deskwire.http.api.input.validation import Body, Query, nulls
from deskwire.http.api.pagination import Paged, bad_cursor, page
from deskwire.http.api.routing import LARGE, Routes, Tag, dashboard
from deskwire.http.resources.member_filters import MemberFilterReader, contact_named, require_assignee
from deskwire.http.resources.tickets.requests import (
    NULLABLE,
    ChangeTicketRequest,
    ChangeTicketsRequest,
    CreateTicketRequest,
    TicketList,
    ahead,
    bulk_values,
    new_values,
    patch_values,
)
from deskwire.http.schemas import tickets as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(
    Tag("Tickets", "Create, list, search, change and delete tickets, one by one or in bulk."),
    unrecorded="The ticket's activity has an entry with the author.",
)


class TicketListReader(TicketReader, MemberFilterReader, Protocol):
    """Reads of lists, and of the members and contacts in filters."""


_ONE: Final = "/tickets/<ticket_id>"
_READ: Final = dashboard("tickets.read")
_MANAGE: Final = dashboard("tickets.manage")
_REFERENCES: Final = ("processing_user", "processing_team", "conversation_id", "contact_id")
_SORTS: Final = tuple(TicketSort(key, order) for key in SORT_KEYS for order in ("desc", "asc"))
"""The orders of a list. Their indexes are the first part of a cursor, so new ones go to the end."""


async def _check_snooze(call: Call[Any, Query]) -> None:
    ahead(call.body.snoozed_until, call.services.clock())


def _references(
    within: str | None = None, pointer: str = ""
) -> Callable[[Call[Any, Query]], Coroutine[Any, Any, None]]:
    """Return a check of the objects that a body refers to; see `resolve`."""

    async def check(call: Call[Any, Query]) -> None:
        body = call.body if within is None else getattr(call.body, within)
        named = {name: getattr(body, name, None) for name in _REFERENCES}
        given = {name: value for name, value in named.items() if value is not None}
        identifier, project = call.path.get("ticket_id"), call.project

        def resolved(reader: TicketUpkeepReader) -> None:
            before = None if identifier is None else find_ticket(reader, project, identifier)
            resolve(reader, project, before, given, pointer)

        try:
            await call.services.store.read(resolved)
        except Invalid as refused:  # without a known conversation, the contact to match is not known either
            raise Invalid(*(each for each in refused.problems if each.code != "mismatch")) from None

    return check


@routes.add(
    "POST",
    "/tickets",
    _MANAGE,
    operation_id="createTicket",
    body=CreateTicketRequest,
    limit=LARGE,
    answer=shapes.Ticket,
    errors=(
        "conversation_linked",
        "conversation_merged",
        "ticket_changed",
        "conversation_busy",
        "overloaded",
    ),
    idempotent=True,
    further=(_check_snooze, _references()),
)
async def create_ticket(call: Call[CreateTicketRequest, Query]) -> Answer:
    """Create a ticket. With `conversationId`, the conversation is linked to it in the same commit."""
    now = call.services.clock()
    return ticket_view(
        await _service(call).create(
            new_id("tkt", now), new_values(call.body, now), now, call.keeping(ticket_view)
        )
    )


@routes.add(
    "GET", "/tickets", _READ, operation_id="listTickets", query=TicketList, answer=page_of(shapes.Ticket)
)
async def list_tickets(call: Call[Body, TicketList]) -> Answer:
    """List the tickets of a project, newest first by default (`sort`, `order`)."""
    query, sort = call.query, TicketSort(call.query.sort, call.query.order)
    after = _place(query, sort)
    placed = await call.services.store.read(
        lambda reader: reader.tickets(call.project.rowid, _filter(reader, call), sort, after, query.rows)
    )
    number = _SORTS.index(sort)
    return page(
        query,
        placed,
        lambda each: ticket_view(each[0]),
        lambda each: (number, each[1].value, each[1].rowid),
    )


@routes.add(
    "PUT",
    "/tickets/bulk",
    _MANAGE,
    operation_id="changeTickets",
    body=ChangeTicketsRequest,
    limit=LARGE,
    answer=shapes.BulkOutcome,
    further=(
        nulls("processing_user", "processing_team", within="payload", pointer="/payload"),
        _references("payload", "/payload"),
    ),
)
async def change_tickets(call: Call[ChangeTicketsRequest, Query]) -> Answer:
    """Make the same change to many tickets, in one transaction.

    `matched` is the number of tickets found, the sum of `updated` and `unchanged`; `notFound` has the ids of the others.
    """
    now, by = call.services.clock(), call.access.actor
    values = bulk_values(call.body.payload, now)
    ids = call.body.selection.ids[: call.body.selection.limit]
    outcome = await call.services.store.write(lambda tx: change_all(tx, call.project, ids, values, by, now))
    return {
        "matched": outcome.matched,
        "updated": outcome.updated,
        "unchanged": outcome.unchanged,
        "notFound": list(outcome.not_found),
    }


@routes.add("GET", _ONE, _READ, operation_id="getTicket", answer=shapes.Ticket, tagged=True)
async def get_ticket(call: Call[Body, Query]) -> Answer:
    """Fetch a ticket. Its `ETag` is for `If-Match` of a change; `lastActivityAt` does not count in it."""
    return _tagged(
        await call.services.store.read(
            InlineQuery(lambda reader: find_ticket(reader, call.project, _id(call)))
        )
    )


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="changeTicket",
    body=ChangeTicketRequest,
    limit=LARGE,
    answer=shapes.Ticket,
    errors=(
        "conversation_linked",
        "conversation_merged",
        "ticket_changed",
        "conversation_busy",
        "overloaded",
        "changed_meanwhile",
    ),
    tagged=True,
    further=(nulls(*NULLABLE), _check_snooze, _references()),
)
async def change_ticket(call: Call[ChangeTicketRequest, Query]) -> Answer:
    """Change a ticket. A new `conversationId` also changes the `ticketId` of the conversations concerned."""
    now = call.services.clock()
    return _tagged(await _service(call).change(_id(call), patch_values(call.body, now), now))


@routes.add(
    "DELETE",
    _ONE,
    _MANAGE,
    operation_id="deleteTicket",
    answer=Deleted,
    errors=("ticket_changed", "conversation_busy", "overloaded", "changed_meanwhile"),
    records=("ticket.deleted",),
    tagged=True,
)
async def delete_ticket(call: Call[Body, Query]) -> Answer:
    """Delete a ticket permanently, with its activity log. Its conversation remains."""
    recording: RecordingHook[Ticket] = RecordingHook(
        call.origin, lambda gone: (deleted("ticket", gone.id, call.project.rowid),)
    )
    ticket = await _service(call).delete(_id(call), call.services.clock(), recording)
    return {"id": ticket.id, "deleted": True}


@routes.add(
    "GET",
    f"{_ONE}/activity",
    _READ,
    operation_id="listActivity",
    query=Paged,
    answer=page_of(shapes.TicketActivity),
)
async def list_activity(call: Call[Body, Paged]) -> Answer:
    """List the changes of a ticket with their authors, newest first."""
    query, before = call.query, call.query.row

    def listed(reader: TicketUpkeepReader) -> Sequence[TicketActivity]:
        ticket = find_ticket(reader, call.project, _id(call))
        return reader.ticket_activity(ticket.rowid, before, query.rows)

    entries = await call.services.store.read(listed)
    return page(query, entries, activity_view, lambda entry: entry.rowid)


def _id(call: Call[Any, Any]) -> str:
    return call.path["ticket_id"]


def _service(call: Call[Any, Any]) -> TicketService:
    return TicketService(
        call.services.store, call.services.actors, call.project, call.access.actor, call.seen
    )


def _tagged(ticket: Ticket) -> Tagged:
    return Tagged(ticket_view(ticket), ticket_tag(ticket))


def _filter(reader: TicketListReader, call: Call[Body, TicketList]) -> TicketFilter:
    """Return the filter of a list. Raises BadRequest for an unknown contact or assignee."""
    query, project = call.query, call.project
    contact = None if query.contact is None else contact_named(reader, project, query.contact)
    if query.assignee not in (None, "none"):
        assigned = TicketFilter(assignee=query.assignee)
        require_assignee(
            reader,
            project,
            "assignee",
            query.assignee,
            lambda: bool(reader.tickets(project.rowid, assigned, TicketSort("createdAt", "desc"), None, 1)),
        )
    return TicketFilter(
        status=query.status,
        priority=query.priority,
        assignee=query.assignee,
        tag=query.tag,
        type=query.type,
        snoozed=query.snoozed,
        contact=contact,
        conversation=query.conversation,
        text=query.q,
    )


def _place(query: TicketList, sort: TicketSort) -> TicketPageKey | None:
    """Return the page key after which the page starts. Raises BadRequest for another order's cursor."""
    place = query.place
    if place is None:
        return None
    number, value, rowid = place
    if number != _SORTS.index(sort):
        raise bad_cursor("This cursor is one of another sort.")
    return TicketPageKey(value, rowid)
