"""Snoozes end at their time, also after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.conversations import timers
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Command, Delete, Patch
from deskwire.engine.conversations.timers import SnoozeTimer
from deskwire.engine.core.errors import Unavailable
from tests.support.builders import NOON, PROJECT, InlineStore, create, post
from tests.support.seeing import seen


def now() -> int:
    """Return the milliseconds of the mock clock."""
    return NOON + round(trio.current_time() * 1000)


class Life:
    """A process on a store: its actors, and the snooze timer."""

    def __init__(self, store: InlineStore, nursery: trio.Nursery) -> None:
        self.store = store
        self.directory = ActorRegistry(nursery, store, now, mailbox=256, idle_s=60, live=1_000)
        self.wakings = SnoozeTimer(store, now, self.directory)

    async def ask(self, conversation_id: str, command: Command) -> None:
        """Carry out a command; wake the timer if the conversation is snoozed after it."""
        receipt = await self.directory.ask(PROJECT, conversation_id, command)
        if receipt.state is not None and receipt.state.snoozed_until is not None:
            self.wakings.wake()

    async def snoozed(self, seconds: float) -> str:
        """Return the id of a new conversation with a snooze of this length."""
        command = create()
        await self.directory.create(PROJECT, command)
        until = now() + round(seconds * 1000)
        await self.ask(command.conversation_id, Patch({"snoozed_until": until}))
        return command.conversation_id

    def until(self, conversation_id: str) -> int | None:
        """Return the stored end of the snooze (ms)."""
        found = seen(self.store, lambda reader: reader.conversation(PROJECT.rowid, conversation_id))
        assert found is not None
        return found[0].snoozed_until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[InlineStore]:
    """Open a store, which is closed at the end."""
    with closing(InlineStore(tmp_path)) as opened:
        yield opened


@asynccontextmanager
async def life(store: InlineStore) -> AsyncIterator[Life]:
    async with trio.open_nursery() as nursery:
        here = Life(store, nursery)
        nursery.start_soon(here.wakings.run)
        yield here
        nursery.cancel_scope.cancel()


async def test_a_conversation_wakes_at_its_time_and_not_before(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    async with life(store) as here:
        conversation_id = await here.snoozed(90)
        await trio.sleep(89)
        assert here.until(conversation_id) == NOON + 90_000
        await trio.sleep(2)
        assert here.until(conversation_id) is None


async def test_snooze_survives_a_restart_and_an_overdue_one_ends_at_the_start(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    async with life(store) as here:
        overdue, ahead = await here.snoozed(60), await here.snoozed(600)
    await trio.sleep(300)
    async with life(store) as here:
        await trio.sleep(1)
        assert (here.until(overdue), here.until(ahead)) == (None, NOON + 600_000)
        await trio.sleep(300)
        assert here.until(ahead) is None


async def test_a_snooze_that_ends_earlier_than_the_next_wakes_first(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    async with life(store) as here:
        late, soon = await here.snoozed(1_000), await here.snoozed(5)
        await trio.sleep(6)
        assert (here.until(soon), here.until(late)) == (None, NOON + 1_000_000)


async def test_a_moved_or_ended_snooze_does_nothing_at_its_old_time(
    store: InlineStore, autojump_clock: MockClock
) -> None:
    async with life(store) as here:
        moved, ended, gone = [await here.snoozed(10) for _ in range(3)]
        await here.ask(moved, Patch({"snoozed_until": NOON + 50_000}))
        await here.ask(ended, post())
        await here.ask(gone, Delete("manual"))
        revision = seen(here.store, lambda reader: reader.conversation(PROJECT.rowid, ended))
        await trio.sleep(20)
        assert here.until(moved) == NOON + 50_000
        assert seen(here.store, lambda reader: reader.conversation(PROJECT.rowid, ended)) == revision


async def test_more_than_a_batch_wakes_together(store: InlineStore, autojump_clock: MockClock) -> None:
    async with life(store) as here:
        many = [await here.snoozed(10) for _ in range(timers.BATCH_SIZE + 3)]
        await trio.sleep(11)
        assert [here.until(each) for each in many] == [None] * len(many)


async def test_a_disk_that_refuses_is_tried_again(store: InlineStore, autojump_clock: MockClock) -> None:
    async with life(store) as here:
        conversation_id = await here.snoozed(10)
        await trio.sleep(9)
        store.write_failure = Unavailable("The disk refused.", code="storage_failed")
        await trio.sleep(5)
        assert here.until(conversation_id) is None
