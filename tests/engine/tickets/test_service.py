"""Linking tickets while things fail and change under it: both sides agree at every moment (ADR 16)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Delete
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import Conflict, Invalid, NotFound, Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.engine.tickets.change import LinkChanged
from deskwire.engine.tickets.follow import TicketFollower
from deskwire.engine.tickets.service import TicketService
from deskwire.engine.tickets.ticket import Ticket
from tests.support.builders import NOON, PROJECT, HandClock, InlineStore, create
from tests.support.seeing import seen


@dataclass
class Office:
    """A ticket service with its store and its actors."""

    store: InlineStore
    directory: ActorRegistry
    desk: TicketService

    async def conversation(self, user_id: str) -> str:
        command = create(user_id)
        await self.directory.create(PROJECT, command)
        return command.conversation_id

    async def ticket(self, conversation: str | None = None) -> Ticket:
        values = {"title": "T", "conversation_id": conversation}
        return await self.desk.create(new_id("tkt", NOON), values, NOON)

    def sides(self, ticket: Ticket, *conversations: str) -> list[str | None]:
        """Return the id of the conversation that the ticket has, and that of the ticket that each conversation has."""
        found = seen(self.store, lambda reader: reader.ticket(PROJECT.rowid, ticket.id))
        rows = [seen(self.store, lambda reader, i=each: reader.conversation(PROJECT.rowid, i)) for each in conversations]  # type: ignore[misc]  # fmt: skip
        return [found and found.conversation_id, *(row and row[0].ticket_id for row in rows)]

    def before_the_next_write(self, deed: Callable[[], Awaitable[object]]) -> None:
        """Have something happen between the look at the ticket and its change."""
        usual = self.store.before_write

        async def first() -> None:
            self.store.before_write = usual
            await deed()

        self.store.before_write = first


@asynccontextmanager
async def open_office(path: Path) -> AsyncIterator[Office]:
    store = InlineStore(path)
    async with trio.open_nursery() as actors:
        directory = ActorRegistry(
            actors, store, HandClock(), mailbox=256, idle_s=60, live=100, ticket_follower=TicketFollower()
        )
        yield Office(
            store, directory, TicketService(store, directory, PROJECT, Actor("user", "usr_1", "Ada"))
        )
        actors.cancel_scope.cancel()
    store.close()


async def test_a_link_that_the_disk_refuses_is_on_neither_side(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        conversation, ticket = await office.conversation("u1"), await office.ticket()
        office.store.write_failure = Unavailable("full", code="storage_failed")
        with pytest.raises(Unavailable):
            await office.desk.change(ticket.id, {"conversation_id": conversation}, NOON)
        assert office.sides(ticket, conversation) == [None, None]
        await office.desk.change(ticket.id, {"conversation_id": conversation}, NOON)
        assert office.sides(ticket, conversation) == [conversation, ticket.id]


async def test_move_that_fails_half_way_unlinks_both_sides_and_is_repeatable(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        first, second = await office.conversation("u1"), await office.conversation("u2")
        ticket = await office.ticket(first)
        move = {"conversation_id": second, "title": "Moved"}

        async def fail_the_one_after() -> None:
            async def refuse() -> None:
                raise Unavailable("full", code="storage_failed")

            office.before_the_next_write(refuse)

        office.before_the_next_write(fail_the_one_after)
        with pytest.raises(Unavailable):
            await office.desk.change(ticket.id, move, NOON)
        assert office.sides(ticket, first, second) == [None, None, None]
        moved = await office.desk.change(ticket.id, move, NOON)
        assert moved.title == "Moved"
        assert office.sides(ticket, first, second) == [second, None, ticket.id]


async def test_move_to_a_conversation_that_was_just_taken_leaves_the_ticket_unchanged(
    tmp_path: Path,
) -> None:
    async with open_office(tmp_path) as office:
        first, second = await office.conversation("u1"), await office.conversation("u2")
        ticket = await office.ticket(first)

        def taken(tx: Transaction) -> None:
            found = tx.conversation(PROJECT.rowid, second)
            assert found is not None
            state = replace(found[0], ticket_id="tkt_other", revision=found[0].revision + 1)
            tx.save_conversation(found[0], state, tx.claim(found[0]).routed)

        async def take() -> None:
            office.store.at_once(taken)

        office.before_the_next_write(take)
        with pytest.raises(Conflict) as refused:
            await office.desk.change(ticket.id, {"conversation_id": second}, NOON)
        assert refused.value.reason == "conversation_linked"
        assert office.sides(ticket, first, second) == [first, ticket.id, "tkt_other"]


async def test_ticket_linked_just_before_its_deletion_is_deleted_on_both_sides(
    tmp_path: Path,
) -> None:
    async with open_office(tmp_path) as office:
        conversation, ticket = await office.conversation("u1"), await office.ticket()
        link = {"conversation_id": conversation}
        office.before_the_next_write(lambda: office.desk.change(ticket.id, link, NOON))
        await office.desk.delete(ticket.id, NOON)
        assert office.sides(ticket, conversation) == [None, None]
        with pytest.raises(NotFound):
            await office.desk.delete(ticket.id, NOON)


async def test_conversation_deleted_just_before_it_is_unlinked_does_not_block_the_change(
    tmp_path: Path,
) -> None:
    async with open_office(tmp_path) as office:
        conversation = await office.conversation("u1")
        ticket = await office.ticket(conversation)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(office.directory.ask, PROJECT, conversation, Delete("manual"))
            nursery.start_soon(office.desk.change, ticket.id, {"conversation_id": None, "title": "New"}, NOON)
        found = seen(office.store, lambda reader: reader.ticket(PROJECT.rowid, ticket.id))
        assert found is not None
        assert (found.conversation_id, found.title) == (None, "New")


async def test_ticket_whose_link_changes_at_each_read_is_given_up(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        ticket = await office.ticket()
        others = [await office.conversation("u1"), await office.conversation("u2")]

        def relink(tx: Transaction) -> None:
            now = tx.ticket(PROJECT.rowid, ticket.id)
            assert now is not None
            others.reverse()
            tx.save_ticket(now, replace(now, conversation_id=others[0]))

        async def meddle() -> None:
            await office.store.write(relink)
            office.before_the_next_write(meddle)

        office.before_the_next_write(meddle)
        with pytest.raises(LinkChanged) as refused:
            await office.desk.delete(ticket.id, NOON)
        assert isinstance(refused.value, Conflict)
        assert refused.value.reason == "ticket_changed"


async def test_a_conversation_that_is_gone_can_not_be_linked(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        conversation, ticket = await office.conversation("u1"), await office.ticket()
        await office.directory.ask(PROJECT, conversation, Delete("manual"))
        for wanted in (conversation, "no id at all"):
            with pytest.raises(Invalid) as refused:
                await office.desk.change(ticket.id, {"conversation_id": wanted}, NOON)
            assert [problem.pointer for problem in refused.value.problems] == ["/conversationId"]
