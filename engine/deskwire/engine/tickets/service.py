"""The service that creates, changes and deletes tickets, a linked one together with its conversation.

A conversation holds its ticket's id, which its customer can see, so the link changes through the conversation's
actor, and both sides are written in its one commit. Moving a ticket from one conversation to another takes two
commits; if that is cut short in between, the ticket is linked to none, on both sides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.activity import Doer
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import LinkTicket
from deskwire.engine.conversations.commit import Receipt
from deskwire.engine.conversations.decide import already_linked
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.precondition import ANYHOW, Precondition
from deskwire.engine.core.store import Inline, Store
from deskwire.engine.core.wrapper import Wrapper, wrapped
from deskwire.engine.tickets.activity import By
from deskwire.engine.tickets.change import (
    LinkChanged,
    Values,
    change_ticket,
    create_ticket,
    find_ticket,
    remove_ticket,
    resolve,
)
from deskwire.engine.tickets.ports import TicketChanges, TicketLooks
from deskwire.engine.tickets.ticket import Ticket

Job = Callable[[TicketChanges], Ticket]

_TRIES: Final = 3
"""Attempts at a change whose ticket is linked anew, or unlinked, meanwhile."""


class TicketWrite(Struct):
    """The `Wrapper` that writes a ticket in the commit of its conversation; `ticket` is what was written."""

    job: Job
    ticket: Ticket | None = None

    def before(self, tx: TicketChanges) -> None:
        """Write the ticket."""
        self.ticket = self.job(tx)

    def after(self, _tx: object, _receipt: Receipt) -> None:
        """Do nothing more."""


class TicketService(Struct, frozen=True):
    """A project's tickets, as one user works on them.

    Every method raises NotFound for an unknown ticket, ChangedMeanwhile if it is not what its author has `seen`, Invalid for
    what the project does not have, and Conflict if the conversation has another ticket or the link keeps changing. Cancellation: what has
    begun to be committed is committed; a move to another conversation may end half way.
    """

    store: Store[TicketLooks, TicketChanges]
    actors: ActorRegistry
    project: Project
    by: By
    seen: Precondition = ANYHOW

    async def create(
        self, ticket_id: str, values: Values, at: int, wrapper: Wrapper[Ticket] | None = None
    ) -> Ticket:
        """Return a new ticket, linked if `values` name a conversation; `wrapper` is what else its commit does."""
        conversation, job = values.get("conversation_id"), self._creation(ticket_id, values, at)
        job = wrapped(job, wrapper)
        if conversation is None:
            return await self.store.write(job)
        await self.store.read(Inline(lambda reader: self._check(reader, None, values, ticket_id)))
        return await self._together(conversation, ticket_id, True, job)

    async def change(self, ticket_id: str, values: Values, at: int) -> Ticket:
        """Change the ticket to these values; return it."""
        return await _again(lambda: self._change(ticket_id, values, at))

    async def delete(self, ticket_id: str, at: int, wrapper: Wrapper[Ticket] | None = None) -> Ticket:
        """Remove the ticket for good; return it as it was. `wrapper` is what else its commit does."""
        return await _again(lambda: self._delete(ticket_id, at, wrapper))

    async def _change(self, ticket_id: str, values: Values, at: int) -> Ticket:
        before = await self.store.read(Inline(lambda reader: self._changeable(reader, ticket_id, values)))
        linked = before.conversation_id
        target = values.get("conversation_id", linked)
        if target == linked:
            return await self.store.write(self._changing(ticket_id, values, at, linked, self.seen))
        if linked is not None and target is not None:
            await self._together(linked, ticket_id, False, self._moving(ticket_id, values, at, linked))
            return await self._together(
                target, ticket_id, True, self._changing(ticket_id, values, at, None, ANYHOW)
            )
        job = self._changing(ticket_id, values, at, linked, self.seen)
        return await self._together(target or linked or "", ticket_id, target is not None, job)

    async def _delete(self, ticket_id: str, at: int, wrapper: Wrapper[Ticket] | None) -> Ticket:
        ticket = await self.store.read(Inline(lambda reader: find_ticket(reader, self.project, ticket_id)))
        linked = ticket.conversation_id
        job = wrapped(self._removal(ticket_id, at, linked), wrapper)
        if linked is None:
            return await self.store.write(job)
        return await self._together(linked, ticket_id, False, job)

    def _changeable(self, reader: TicketLooks, ticket_id: str, values: Values) -> Ticket:
        """Return the ticket as it is. Raises what speaks against the link that `values` give it."""
        before = find_ticket(reader, self.project, ticket_id)
        if values.get("conversation_id", before.conversation_id) != before.conversation_id:
            self._check(reader, before, values, ticket_id)
        return before

    def _check(self, reader: TicketLooks, before: Ticket | None, values: Values, ticket_id: str) -> None:
        """Raise what speaks against the link that `values` make, before anything is written."""
        resolve(reader, self.project, before, values)
        conversation = reader.conversation(self.project.rowid, values["conversation_id"] or "")
        if conversation is not None and conversation[0].ticket_id not in (None, ticket_id):
            raise already_linked()

    async def _together(self, conversation: str, ticket_id: str, linked: bool, job: Job) -> Ticket:
        """Write the ticket in the commit in which the conversation is linked, or its link cut."""
        assert is_id(conversation, "cnv"), "only a conversation that exists is linked"
        write = TicketWrite(job)
        try:
            doer = Doer(self.by.type, self.by.user_id, self.by.name)
            await self.actors.ask(self.project, conversation, LinkTicket(ticket_id, linked), write, doer)
        except NotFound as error:
            if error.reason != "conversation_not_found":
                raise
            raise LinkChanged("The conversation was deleted meanwhile.") from None
        assert write.ticket is not None, "it is written in that commit"
        return write.ticket

    def _creation(self, ticket_id: str, values: Values, at: int) -> Job:
        return lambda tx: create_ticket(tx, self.project, ticket_id, values, self.by, at)

    def _changing(
        self, ticket_id: str, values: Values, at: int, linked: str | None, seen: Precondition
    ) -> Job:
        return lambda tx: change_ticket(tx, self.project, ticket_id, values, self.by, at, linked, seen)

    def _moving(self, ticket_id: str, values: Values, at: int, linked: str) -> Job:
        """Return the job that cuts the link, unless by then something speaks against the next one."""

        def cut(tx: TicketChanges) -> Ticket:
            self._changeable(tx, ticket_id, values)
            unlinked = {"conversation_id": None}
            return change_ticket(tx, self.project, ticket_id, unlinked, self.by, at, linked, self.seen)

        return cut

    def _removal(self, ticket_id: str, at: int, linked: str | None) -> Job:
        return lambda tx: remove_ticket(tx, self.project, ticket_id, self.by, at, linked, self.seen)


async def _again(attempt: Callable[[], Awaitable[Ticket]]) -> Ticket:
    """Return the attempt's result; begin anew if the ticket's link has changed meanwhile."""
    for _ in range(_TRIES - 1):
        try:
            return await attempt()
        except LinkChanged:
            continue
    return await attempt()
