"""A contact's erasure when something is in its way: it is bounded for the caller, and not given up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actors import ActorCommand, ActorFailed, ActorRegistry
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.core.tasks.failure import RESTART_DELAY_S
from deskwire.engine.privacy.erasure import RESPONSE_TIMEOUT_S, Erasures
from tests.support.builders import PROJECT, HandClock, InlineStore, create, running
from tests.support.failures import cancelled, failures_logged
from tests.support.seeing import seen


class Unruly:
    """A directory whose actors raise the failures in `failures`."""

    def __init__(self, directory: ActorRegistry) -> None:
        self._directory = directory
        self.failures: list[Exception] = []
        self.failed = 0

    async def ask(self, project: Project, conversation_id: str, command: ActorCommand) -> Receipt:
        if self.failures:
            self.failed += 1
            raise self.failures.pop()
        return await self._directory.ask(project, conversation_id, command)


@asynccontextmanager
async def erasing(directory: Path) -> AsyncIterator[tuple[Erasures, InlineStore, Unruly]]:
    """Erasures over a store with one contact that has three conversations."""
    store = InlineStore(directory)
    async with trio.open_nursery() as nursery:
        actors = ActorRegistry(nursery, store, HandClock(), mailbox=8, idle_s=60, live=10)
        for _ in range(3):
            await actors.create(PROJECT, create())
        unruly = Unruly(actors)
        yield Erasures(nursery, store, HandClock(), cast(ActorRegistry, unruly)), store, unruly
        nursery.cancel_scope.cancel()
    store.close()


def conversations(store: InlineStore) -> int:
    """Return the number of all conversations."""
    rows = seen(store, lambda reader: reader.bot_only_before(1 << 60, (-1, -1), 100))
    return len(rows)


async def test_actors_bug_and_a_full_mailbox_delay_an_erasure_without_ending_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with erasing(tmp_path) as (erasures, store, unruly):
        busy = Unavailable("busy", code="conversation_busy")
        unruly.failures = [ActorFailed("a bug"), busy, ActorFailed("a bug"), busy]
        contact = await erasures.erase(PROJECT, "user-1")
        assert (contact.user_id, unruly.failed, conversations(store)) == ("user-1", 4, 0)
        assert seen(store, lambda reader: reader.erasing()) == []


async def test_caller_of_a_long_erasure_is_notified_and_may_ask_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with erasing(tmp_path) as (erasures, store, unruly):
        unruly.failures = [Unavailable("full", code="storage_failed")] * 200
        began = trio.current_time()
        with pytest.raises(Unavailable) as told:
            await erasures.erase(PROJECT, "user-1")
        assert (told.value.reason, trio.current_time() - began) == ("erasure_under_way", RESPONSE_TIMEOUT_S)
        assert seen(store, lambda reader: reader.contact(PROJECT.rowid, "user-1")) is None
        unruly.failures = []
        again = await erasures.erase(PROJECT, "user-1")
        assert (again.user_id, conversations(store)) == ("user-1", 0)
        with pytest.raises(NotFound):
            await erasures.erase(PROJECT, "user-1")


async def test_erasure_is_finished_if_its_caller_leaves_while_it_is_marked(tmp_path: Path) -> None:
    """Finish it: its mark is committed, so a repeated call would not find the contact."""
    async with running(tmp_path) as service, trio.open_nursery() as nursery:
        await service.directory.create(PROJECT, create())
        erasures = Erasures(nursery, service.store, HandClock(), service.directory)
        with trio.CancelScope() as caller:
            caller.cancel()
            await erasures.erase(PROJECT, "user-1")
        with trio.fail_after(10):
            with suppress(NotFound):
                await erasures.erase(PROJECT, "user-1")  # waits for it, unless it has ended
        left = await service.store.read(
            lambda reader: (reader.contact(PROJECT.rowid, "user-1"), reader.erasing())
        )
        assert left == (None, [])


async def test_a_restart_takes_an_erasure_up_and_a_caller_finds_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with erasing(tmp_path) as (erasures, store, unruly):
        await store.write(lambda tx: tx.mark_erasing(1))
        unruly.failures = [Unavailable("full", code="storage_failed")] * 3
        await erasures.resume()
        assert (await erasures.erase(PROJECT, "user-1")).user_id == "user-1"
        assert conversations(store) == 0
        events = seen(store, lambda reader: reader.events(PROJECT.rowid, 0, 100, frozenset()))
        assert [event.type for event in events] == [*["conversation.deleted"] * 3, "contact.updated"]


async def test_bug_in_an_erasure_is_logged_and_the_erasure_tried_again_later(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Let through, it would end the nursery of all actors; and the next start would begin with it."""
    async with erasing(tmp_path) as (erasures, store, unruly):
        unruly.failures = [cast(Exception, BaseExceptionGroup("", [ValueError("a bug"), await cancelled()]))]
        with failures_logged() as failures:
            with pytest.raises(Unavailable):
                await erasures.erase(PROJECT, "user-1")
            (entry,) = failures()
            await trio.sleep(RESTART_DELAY_S)
        assert entry["event"] == "erasure.failed"
        assert entry["contact"].startswith("con_")
        assert (seen(store, lambda reader: reader.erasing()), conversations(store)) == ([], 0)
