"""Snoozed tickets wake up at their time, also after restarts, crashes and changes (decisions 7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.accounts.teams import Team
from deskwire.engine.core.actor import SYSTEM, Actor
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction
from deskwire.engine.tickets.change import change_ticket, create_ticket
from deskwire.engine.tickets.snooze import BATCH, TicketSnoozeTimer
from deskwire.engine.tickets.ticket import Ticket, TicketChange
from tests.support.builders import NOON, PROJECT, InlineStore
from tests.support.seeing import seen

BY = Actor("user", "usr_1", "Ada")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[InlineStore]:
    opened = InlineStore(tmp_path)
    yield opened
    opened.close()


def now() -> int:
    """Milliseconds by the clock of the test, which jumps."""
    return NOON + round(trio.current_time() * 1000)


@asynccontextmanager
async def tending(store: InlineStore) -> AsyncIterator[TicketSnoozeTimer]:
    """Upkeep that runs as long as the context."""
    upkeep = TicketSnoozeTimer(store, now)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upkeep.run)
        yield upkeep
        nursery.cancel_scope.cancel()


async def ticket_until(store: InlineStore, until: int | None, **values: Any) -> Ticket:
    """Store a ticket that is snoozed until then."""
    values = {"title": "T", "snoozed_until": until, **values}
    return await store.write(lambda tx: create_ticket(tx, PROJECT, new_id("tkt", NOON), values, BY, now()))


def read(store: InlineStore, ticket: Ticket) -> Ticket:
    found = seen(store, lambda reader: reader.ticket(PROJECT.rowid, ticket.id))
    assert found is not None
    return found


async def test_ticket_wakes_at_its_time_and_the_log_names_the_system(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    until = now() + 90_000
    ticket = await ticket_until(store, until)
    async with tending(store):
        await trio.sleep(89)  # virtual time: the mock clock jumps
        assert read(store, ticket).snoozed_until == until
        await trio.sleep(2)  # virtual time: the mock clock jumps
    woken = read(store, ticket)
    assert (woken.snoozed_until, woken.updated_at) == (None, until)
    entry = seen(store, lambda reader: reader.ticket_activity(ticket.rowid, None, 10))[0]
    assert (entry.by, entry.action, entry.at) == (SYSTEM, "changed", until)
    assert (
        entry.changes == [TicketChange("snoozedUntil", "2026-09-21T12:14:50.000Z", None)]
        or len(entry.changes) == 1
    )
    assert (entry.changes[0].field, entry.changes[0].after) == ("snoozedUntil", None)


async def test_an_earlier_time_that_comes_later_is_noticed(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    late = await ticket_until(store, now() + 3_600_000)
    async with tending(store) as upkeep:
        await trio.sleep(1)  # virtual time: the mock clock jumps
        early = await ticket_until(store, now() + 5_000)
        upkeep.wake()
        await trio.sleep(6)  # virtual time: the mock clock jumps
        assert read(store, early).snoozed_until is None
        assert read(store, late).snoozed_until is not None


async def test_nothing_is_read_or_written_while_nothing_is_snoozed(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    async with tending(store):
        await trio.sleep(1)  # virtual time: the mock clock jumps
        writes = store.writes
        await trio.sleep(10_000)  # virtual time: the mock clock jumps
        assert store.writes == writes


async def test_ticket_that_came_due_during_an_outage_wakes_at_the_start(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    tickets = [await ticket_until(store, now() + 1_000) for _ in range(3)]
    await trio.sleep(10)  # virtual time: the mock clock jumps
    async with tending(store):
        await trio.sleep(0.01)  # virtual time: the mock clock jumps
        assert [read(store, ticket).snoozed_until for ticket in tickets] == [None] * 3


async def test_more_tickets_than_one_batch_wake_together(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    def many(tx: Transaction) -> list[Ticket]:
        values = {"title": "T", "snoozed_until": NOON + 1_000}
        return [create_ticket(tx, PROJECT, new_id("tkt", NOON), values, BY, NOON) for _ in range(BATCH + 7)]

    tickets = await store.write(many)
    async with tending(store):
        await trio.sleep(2)  # virtual time: the mock clock jumps
    assert {read(store, ticket).snoozed_until for ticket in tickets} == {None}


async def test_postponed_snooze_does_not_wake_at_the_old_time(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    ticket = await ticket_until(store, now() + 10_000)
    async with tending(store) as upkeep:
        await trio.sleep(1)  # virtual time: the mock clock jumps
        later = now() + 100_000
        await store.write(
            lambda tx: change_ticket(tx, PROJECT, ticket.id, {"snoozed_until": later}, BY, now(), None)
        )
        upkeep.wake()
        await trio.sleep(50)  # virtual time: the mock clock jumps
        assert read(store, ticket).snoozed_until == later
        await trio.sleep(55)  # virtual time: the mock clock jumps
        assert read(store, ticket).snoozed_until is None


async def test_a_full_disk_delays_the_wake_up_and_does_not_end_it(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    ticket = await ticket_until(store, now() + 1_000)
    store.write_failure = Unavailable("full", code="storage_failed")
    async with tending(store):
        await trio.sleep(3)  # virtual time: the mock clock jumps
    assert read(store, ticket).snoozed_until is None


async def test_tickets_are_taken_from_a_deleted_team_and_then_it_is_forgotten(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    team = await store.write(
        lambda tx: tx.insert_team(Team(new_id("team", NOON), PROJECT.rowid, "Returns", NOON, NOON))
    )

    def many(tx: Transaction) -> list[Ticket]:
        values = {"title": "T", "processing_team": team.id}
        return [create_ticket(tx, PROJECT, new_id("tkt", NOON), values, BY, NOON) for _ in range(BATCH + 3)]

    tickets = await store.write(many)
    async with tending(store) as upkeep:
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await store.write(lambda tx: tx.delete_team(team.rowid, now()))
        upkeep.wake()
        await trio.sleep(1)  # virtual time: the mock clock jumps
    assert {read(store, ticket).processing_team for ticket in tickets} == {None}
    assert seen(store, lambda reader: reader.deleted_teams()) == []


async def test_deletion_cut_short_by_a_crash_is_finished_at_the_next_start(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    team = await store.write(
        lambda tx: tx.insert_team(Team(new_id("team", NOON), PROJECT.rowid, "Returns", NOON, NOON))
    )
    ticket = await ticket_until(store, None, processing_team=team.id)
    await store.write(lambda tx: tx.delete_team(team.rowid, NOON))
    async with tending(store):
        await trio.sleep(1)  # virtual time: the mock clock jumps
    assert read(store, ticket).processing_team is None
