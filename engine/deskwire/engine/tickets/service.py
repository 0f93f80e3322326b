"""The service that creates, changes and deletes tickets, and keeps links to conversations consistent.

A conversation holds the id of its ticket, which its customer can see, so the conversation's actor changes the link, and
one commit writes both sides. Moving a ticket to another conversation takes two commits; after a crash between them the
ticket is unlinked on both sides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import LinkTicket
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.decide import already_linked
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.commits import CommitHook, with_hook
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.core.values import UNCONDITIONAL, Precondition
from deskwire.engine.tickets.change import (
    LinkChanged,
    Values,
    change_ticket,
    create_ticket,
    find_ticket,
    remove_ticket,
    resolve,
)
from deskwire.engine.tickets.ports import TicketUpkeepReader, TicketUpkeepTransaction
from deskwire.engine.tickets.ticket import Ticket

Job = Callable[[TicketUpkeepTransaction], Ticket]

_TRIES: Final = 3
"""Attempts at a change while other requests change the link of the ticket."""


class TicketWrite(Struct):
    """Writes a ticket in the commit of its conversation (a `CommitHook`); `ticket` is the result."""

    job: Job
    ticket: Ticket | None = None

    def before(self, tx: TicketUpkeepTransaction) -> None:
        """Write the ticket."""
        self.ticket = self.job(tx)

    def after(self, _tx: object, _receipt: Receipt) -> None:
        """Do nothing."""


class TicketService(Struct, frozen=True):
    """Changes of a project's tickets on behalf of one actor.

    Every method raises NotFound for an unknown ticket, PreconditionFailed if the precondition `seen` fails, Invalid for
    references that the project does not have, and Conflict if the conversation has another ticket or the link keeps
    changing. Cancellation: a commit in progress completes; a move to another conversation may stop between its commits.
    """

    store: Store[TicketUpkeepReader, TicketUpkeepTransaction]
    actors: ActorRegistry
    project: Project
    by: Actor
    seen: Precondition = UNCONDITIONAL

    async def create(
        self, ticket_id: str, values: Values, at: int, hook: CommitHook[Ticket] | None = None
    ) -> Ticket:
        """Create a ticket, linked if `values` name a conversation; `hook` adds to its commit."""
        conversation, job = values.get("conversation_id"), self._creation(ticket_id, values, at)
        job = with_hook(job, hook)
        if conversation is None:
            return await self.store.write(job)
        await self.store.read(InlineQuery(lambda reader: self._check(reader, None, values, ticket_id)))
        return await self._together(conversation, ticket_id, True, job)

    async def change(self, ticket_id: str, values: Values, at: int) -> Ticket:
        """Change the ticket and return it."""
        return await _again(lambda: self._change(ticket_id, values, at))

    async def delete(self, ticket_id: str, at: int, hook: CommitHook[Ticket] | None = None) -> Ticket:
        """Delete the ticket and return it; `hook` adds to its commit."""
        return await _again(lambda: self._delete(ticket_id, at, hook))

    async def _change(self, ticket_id: str, values: Values, at: int) -> Ticket:
        before = await self.store.read(
            InlineQuery(lambda reader: self._changeable(reader, ticket_id, values))
        )
        linked = before.conversation_id
        target = values.get("conversation_id", linked)
        if target == linked:
            return await self.store.write(self._changing(ticket_id, values, at, linked, self.seen))
        if linked is not None and target is not None:
            await self._together(linked, ticket_id, False, self._moving(ticket_id, values, at, linked))
            return await self._together(
                target, ticket_id, True, self._changing(ticket_id, values, at, None, UNCONDITIONAL)
            )
        job = self._changing(ticket_id, values, at, linked, self.seen)
        return await self._together(target or linked or "", ticket_id, target is not None, job)

    async def _delete(self, ticket_id: str, at: int, hook: CommitHook[Ticket] | None) -> Ticket:
        ticket = await self.store.read(
            InlineQuery(lambda reader: find_ticket(reader, self.project, ticket_id))
        )
        linked = ticket.conversation_id
        job = with_hook(self._removal(ticket_id, at, linked), hook)
        if linked is None:
            return await self.store.write(job)
        return await self._together(linked, ticket_id, False, job)

    def _changeable(self, reader: TicketUpkeepReader, ticket_id: str, values: Values) -> Ticket:
        """Return the current ticket. Raises if its new link is not allowed."""
        before = find_ticket(reader, self.project, ticket_id)
        if values.get("conversation_id", before.conversation_id) != before.conversation_id:
            self._check(reader, before, values, ticket_id)
        return before

    def _check(
        self, reader: TicketUpkeepReader, before: Ticket | None, values: Values, ticket_id: str
    ) -> None:
        """Check the new link before anything is written. Raises Invalid or Conflict."""
        resolve(reader, self.project, before, values)
        conversation = reader.conversation(self.project.rowid, values["conversation_id"] or "")
        if conversation is not None and conversation[0].ticket_id not in (None, ticket_id):
            raise already_linked()

    async def _together(self, conversation: str, ticket_id: str, linked: bool, job: Job) -> Ticket:
        """Write the ticket in the commit that links or unlinks the conversation."""
        assert is_id(conversation, "cnv"), "only an existing conversation is linked"
        write = TicketWrite(job)
        try:
            await self.actors.ask(self.project, conversation, LinkTicket(ticket_id, linked), write, self.by)
        except NotFound as error:
            if error.reason != "conversation_not_found":
                raise
            raise LinkChanged("The conversation was deleted by another request.") from None
        assert write.ticket is not None, "it is written in that commit"
        return write.ticket

    def _creation(self, ticket_id: str, values: Values, at: int) -> Job:
        return lambda tx: create_ticket(tx, self.project, ticket_id, values, self.by, at)

    def _changing(
        self, ticket_id: str, values: Values, at: int, linked: str | None, seen: Precondition
    ) -> Job:
        return lambda tx: change_ticket(tx, self.project, ticket_id, values, self.by, at, linked, seen)

    def _moving(self, ticket_id: str, values: Values, at: int, linked: str) -> Job:
        """Return the job that unlinks the ticket, unless the new link is no longer allowed."""

        def cut(tx: TicketUpkeepTransaction) -> Ticket:
            self._changeable(tx, ticket_id, values)
            unlinked = {"conversation_id": None}
            return change_ticket(tx, self.project, ticket_id, unlinked, self.by, at, linked, self.seen)

        return cut

    def _removal(self, ticket_id: str, at: int, linked: str | None) -> Job:
        return lambda tx: remove_ticket(tx, self.project, ticket_id, self.by, at, linked, self.seen)


async def _again(attempt: Callable[[], Awaitable[Ticket]]) -> Ticket:
    """Return the attempt's result; retry if the link of the ticket changed during the attempt."""
    for _ in range(_TRIES - 1):
        try:
            return await attempt()
        except LinkChanged:
            continue
    return await attempt()
