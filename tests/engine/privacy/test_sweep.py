"""The sweep over the real store: it deletes what is due, and nothing that is not (ADR 21)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.people import Project
from deskwire.engine.audit.trail import AuditFilter
from deskwire.engine.conversations.actors import ActorCommand, ActorFailed, ActorRegistry
from deskwire.engine.conversations.commands import Create, Expire, Patch
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.ports import ExpiredConversation
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.values import replace
from deskwire.engine.privacy.retention import (
    BATCH_ROWS_MAX,
    CONVERSATIONS_BATCH_SIZE,
    ConversationSweep,
    batches,
)
from tests.support.builders import NOON, PROJECT, HandClock, InlineStore, Running, create, post, running
from tests.support.seeing import seen

DAY_MS = 86_400_000
LONG_MS = 33 * DAY_MS


@asynccontextmanager
async def aged(directory: Path, days: int, *commands: Create) -> AsyncIterator[tuple[Running, HandClock]]:
    """Yield the engine with these conversations, that many days after they were made."""
    clock = HandClock()
    async with running(directory, clock=clock) as engine:
        for command in commands:
            await engine.directory.create(PROJECT, command)
        clock.now += days * DAY_MS
        yield engine, clock


def sweep_of(engine: Running, clock: HandClock, directory: ActorRegistry | None = None) -> ConversationSweep:
    return ConversationSweep(
        engine.store, directory or engine.directory, clock, bot_only_ms=LONG_MS, day_ms=DAY_MS
    )


def left(engine: Running, *commands: Create) -> list[bool]:
    """Return, for each of these conversations, whether it still exists."""
    return [
        seen(engine.store, lambda reader, c=command: reader.conversation(1, c.conversation_id)) is not None  # type: ignore[misc]
        for command in commands
    ]


def deletions(engine: Running) -> list[dict[str, Any]]:
    """Return the data of the deletions in the feed."""
    events = seen(
        engine.store,
        lambda reader: reader.events(PROJECT.rowid, 0, 1_000, frozenset({"conversation.deleted"})),
    )
    return [orjson.loads(event.body)["data"] for event in events]


async def test_only_bot_only_conversations_are_deleted_33_days_after_their_creation(
    tmp_path: Path,
) -> None:
    alone, answered = create(message=post("bot")), create(message=post("agent"))
    async with aged(tmp_path, 34, alone, answered) as (engine, clock):
        young = create()
        await engine.directory.create(PROJECT, young)
        sweep = sweep_of(engine, clock)
        await sweep.run()
        assert left(engine, alone, answered, young) == [False, True, True]
        assert sweep.deleted == {"bot_only": 1, "archived": 0}
        (data,) = deletions(engine)
        assert data["reason"] == "retention"
        assert data["conversation"]["id"] == alone.conversation_id


async def test_audit_trail_counts_the_deletions_of_retention(tmp_path: Path) -> None:
    answered, *alone = create(message=post("agent")), create(), create("user-2")
    async with aged(tmp_path, 34, answered, *alone) as (engine, clock):
        await sweep_of(engine, clock).run()
        wanted = AuditFilter(action="conversation.expired")
        (record,) = seen(engine.store, lambda reader: reader.audit_records(None, wanted, None, 10))
        assert record.actor == Actor("system")
        assert (record.object, record.count) == (PROJECT.id, 2)
        assert record.details == {"conversations": 2}


async def test_conversation_is_not_deleted_early(tmp_path: Path) -> None:
    alone = create()
    async with aged(tmp_path, 32, alone) as (engine, clock):
        await sweep_of(engine, clock).run()
        assert left(engine, alone) == [True]


async def test_an_archived_conversation_follows_the_window_of_its_project(tmp_path: Path) -> None:
    kept, archived = create(message=post("agent")), create(message=post("agent"))
    async with aged(tmp_path, 0, kept, archived) as (engine, clock):
        for command in (kept, archived):
            await engine.directory.ask(PROJECT, command.conversation_id, Patch({"archived": True}))
        await engine.directory.ask(PROJECT, kept.conversation_id, Patch({"archived": False}))
        clock.now += 364 * DAY_MS
        await sweep_of(engine, clock).run()
        assert left(engine, kept, archived) == [True, True]
        clock.now += 2 * DAY_MS
        await engine.store.write(lambda tx: tx.save_project(with_window(None)))
        await sweep_of(engine, clock).run()
        assert left(engine, kept, archived) == [True, True]
        await engine.store.write(lambda tx: tx.save_project(with_window(365)))
        sweep = sweep_of(engine, clock)
        await sweep.run()
        assert left(engine, kept, archived) == [True, False]
        assert sweep.deleted == {"bot_only": 0, "archived": 1}


def with_window(days: int | None) -> Project:
    return replace(PROJECT, settings=replace(PROJECT.settings, archived_retention_days=days))


async def test_sweep_takes_several_reads_and_batches(tmp_path: Path) -> None:
    many = [create(f"user-{number}") for number in range(210)]
    async with aged(tmp_path, 34, *many) as (engine, clock):
        sweep = sweep_of(engine, clock)
        await sweep.run()
        assert sweep.deleted["bot_only"] == len(many)
        assert not any(left(engine, *many))


class Forestalled:
    """A directory in which something happens to a conversation right before the sweep gets there."""

    def __init__(self, directory: ActorRegistry, before: dict[str, ActorCommand | Exception]) -> None:
        self._directory = directory
        self._before = before

    async def ask(
        self,
        project: Project,
        conversation_id: str,
        command: ActorCommand,
        wrapper: CommitHook[Receipt] | None = None,
    ) -> Receipt:
        assert isinstance(command, Expire)
        first = self._before.get(conversation_id)
        if isinstance(first, Exception):
            raise first
        if first is not None:
            await self._directory.ask(project, conversation_id, first)
        return await self._directory.ask(project, conversation_id, command, wrapper)


async def test_reply_or_unarchiving_at_the_last_moment_saves_the_conversation(
    tmp_path: Path,
) -> None:
    answered, taken_out = create(), create(message=post("agent"))
    async with aged(tmp_path, 0, answered, taken_out) as (engine, clock):
        await engine.directory.ask(PROJECT, taken_out.conversation_id, Patch({"archived": True}))
        clock.now += 400 * DAY_MS
        last: dict[str, ActorCommand | Exception] = {
            answered.conversation_id: post("agent"),
            taken_out.conversation_id: Patch({"archived": False}),
        }
        sweep = sweep_of(engine, clock, cast(ActorRegistry, Forestalled(engine.directory, last)))
        await sweep.run()
        assert left(engine, answered, taken_out) == [True, True]
        assert sweep.deleted == {"bot_only": 0, "archived": 0}


async def test_failing_or_busy_conversation_is_skipped_and_the_others_are_deleted(tmp_path: Path) -> None:
    busy, broken, fine = create("a"), create("b"), create("c")
    async with aged(tmp_path, 34, busy, broken, fine) as (engine, clock):
        faults: dict[str, ActorCommand | Exception] = {
            busy.conversation_id: Unavailable("busy", code="conversation_busy"),
            broken.conversation_id: ActorFailed("a bug"),
        }
        sweep = sweep_of(engine, clock, cast(ActorRegistry, Forestalled(engine.directory, faults)))
        await sweep.run()
        assert left(engine, busy, broken, fine) == [True, True, False]
        await sweep_of(engine, clock).run()
        assert left(engine, busy, broken) == [False, False]


async def test_hidden_conversation_is_deleted_without_an_event(tmp_path: Path) -> None:
    hidden = create(visible=False)
    async with aged(tmp_path, 34, hidden) as (engine, clock):
        await sweep_of(engine, clock).run()
        assert (left(engine, hidden), deletions(engine)) == ([False], [])


async def test_disk_error_ends_the_round_and_the_next_one_resumes_it(tmp_path: Path) -> None:
    store, clock = InlineStore(tmp_path), HandClock()
    async with trio.open_nursery() as actors:
        directory = ActorRegistry(actors, store, clock, mailbox=4, idle_s=60, live=10)
        command = create()
        await directory.create(PROJECT, command)
        clock.now += LONG_MS
        store.write_failure = Unavailable("full", code="storage_failed")
        sweep = ConversationSweep(store, directory, clock, bot_only_ms=LONG_MS, day_ms=DAY_MS)
        with pytest.raises(Unavailable, match="full"):
            await sweep.run()
        assert sweep.deleted["bot_only"] == 0
        await sweep.run()
        assert sweep.deleted["bot_only"] == 1
        actors.cancel_scope.cancel()
    store.close()


def due_of(sizes: Sequence[int]) -> list[ExpiredConversation]:
    return [
        ExpiredConversation("prj_1", f"cnv_{number}", rows, (NOON, number))
        for number, rows in enumerate(sizes)
    ]


@given(st.lists(st.integers(0, 2 * BATCH_ROWS_MAX), max_size=60))
def test_batches_keep_the_order_and_are_small_unless_one_alone_is_large(sizes: list[int]) -> None:
    found = due_of(sizes)
    cut = list(batches(found))
    assert [due for batch in cut for due in batch] == found
    for batch in cut:
        assert 1 <= len(batch) <= CONVERSATIONS_BATCH_SIZE
        assert len(batch) == 1 or sum(due.rows for due in batch) <= BATCH_ROWS_MAX
