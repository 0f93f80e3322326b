"""Waits and pending steps outlast the actor and the process (decisions 7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from structlog.testing import capture_logs
from trio.testing import MockClock

from deskwire.engine.conversations import timers
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.automation.decide import decide_with_workflow
from deskwire.engine.conversations.automation.interpreter import STEPS_MAX
from deskwire.engine.conversations.automation.lookup import published_workflow
from deskwire.engine.conversations.commands import AnswerStep, Command, Delete, StartWorkflow, WorkflowCommand
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.timers import WorkflowTimer
from deskwire.engine.core.errors import Conflict, NotFound, Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction
from deskwire.engine.workflows.workflow import Published, Workflow
from tests.engine.workflows.building import LUCK, branch, buttons, send, sound_workflow, wait, workflow
from tests.support.builders import NOON, PROJECT, InlineStore, create, post
from tests.support.seeing import seen

REMINDER = workflow([wait(1, 60), send(2, "Still there?"), buttons(3, None)])


def now() -> int:
    """Milliseconds by the clock of the test, which jumps."""
    return NOON + round(trio.current_time() * 1000)


class Life:
    """A process's life on a store: its actors and the task that wakes them."""

    def __init__(self, store: InlineStore, nursery: trio.Nursery) -> None:
        self.store = store
        self.directory = ActorRegistry(nursery, store, now, mailbox=256, idle_s=60, live=1_000)
        self.timers = WorkflowTimer(store, now, self.directory)

    async def ask(self, conversation_id: str, command: Command | WorkflowCommand) -> Conversation | None:
        """Run a command, and wake the timer task if the commit has set a due time."""
        receipt = await self.directory.ask(PROJECT, conversation_id, command)
        if (
            receipt.state is not None
            and receipt.state.run is not None
            and receipt.state.run.due_at is not None
        ):
            self.timers.wake()
        return receipt.state


@asynccontextmanager
async def life(store: InlineStore) -> AsyncIterator[Life]:
    async with trio.open_nursery() as nursery:
        here = Life(store, nursery)
        nursery.start_soon(here.timers.run)
        yield here
        nursery.cancel_scope.cancel()


async def stored(store: InlineStore, document: Any) -> tuple[Workflow, Published]:
    """Store a workflow; return it, and its version as a conversation runs it."""
    name, trigger, flows = document["name"], document["trigger"]["type"], document["flows"]

    def insert(tx: Transaction) -> tuple[Workflow, Published]:
        made = Workflow(0, new_id("wfl", NOON), PROJECT.rowid, name, trigger, 1, NOON, NOON)
        made = tx.insert_workflow(made, flows)
        return made, published_workflow(tx, PROJECT, made)

    return await store.write(insert)


async def started(here: Life, document: Any = REMINDER) -> str:
    """The id of a conversation in which a workflow has started."""
    _, running = await stored(here.store, document)
    command = create()
    await here.directory.create(PROJECT, command)
    await here.ask(command.conversation_id, StartWorkflow(running))
    return command.conversation_id


def state_of(store: InlineStore, conversation_id: str) -> Conversation:
    found = seen(store, lambda reader: reader.conversation(PROJECT.rowid, conversation_id))
    assert found is not None
    return found[0]


def texts(store: InlineStore, conversation_id: str) -> list[str]:
    state = state_of(store, conversation_id)
    return [
        message.text for message in seen(store, lambda reader: reader.messages(state.rowid, internal=False))
    ]


async def test_a_wait_ends_at_its_time(inline_store: InlineStore, autojump_clock: MockClock) -> None:
    async with life(inline_store) as here:
        conversation_id = await started(here)
        await trio.sleep(59)  # virtual time: the mock clock jumps
        assert texts(inline_store, conversation_id) == []
        await trio.sleep(2)  # virtual time: the mock clock jumps
        assert texts(inline_store, conversation_id) == ["Still there?", "Choose"]
        state = state_of(inline_store, conversation_id)
        assert state.run is not None
        assert state.run.action_id == 3


@pytest.mark.parametrize("down_s", [1, 10_000])
async def test_a_wait_and_a_pending_step_outlast_the_process(
    inline_store: InlineStore, autojump_clock: MockClock, down_s: float
) -> None:
    async with life(inline_store) as here:
        conversation_id = await started(here)
    await trio.sleep(down_s)  # virtual time: the mock clock jumps
    async with life(inline_store):
        await trio.sleep(61)  # virtual time: the mock clock jumps
        assert texts(inline_store, conversation_id) == ["Still there?", "Choose"]
    async with life(inline_store) as here:
        state = await here.ask(conversation_id, AnswerStep(3, "b0"))
        assert state is not None
        assert state.run is None


async def test_more_than_one_batch_wakes_at_once(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with life(inline_store) as here:
        _, running = await stored(inline_store, REMINDER)
        ids = []
        for _ in range(timers.BATCH_SIZE + 3):
            command = create()
            await here.directory.create(PROJECT, command)
            await here.ask(command.conversation_id, StartWorkflow(running))
            ids.append(command.conversation_id)
        await trio.sleep(61)  # virtual time: the mock clock jumps
        assert {len(texts(inline_store, each)) for each in ids} == {2}


async def test_conversation_deleted_during_a_wait_stays_deleted(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with life(inline_store) as here:
        conversation_id = await started(here)
        await here.ask(conversation_id, Delete("manual"))
        assert seen(inline_store, lambda reader: reader.next_run()) is None
        await trio.sleep(100)  # virtual time: the mock clock jumps
        with pytest.raises(NotFound):
            await here.ask(conversation_id, post())


async def test_a_full_disk_delays_a_wait_and_does_not_end_it(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with life(inline_store) as here:
        conversation_id = await started(here)
        inline_store.write_failure = Unavailable("full", code="storage_failed")
        await trio.sleep(63)  # virtual time: the mock clock jumps
        assert inline_store.write_failure is None
        assert texts(inline_store, conversation_id) == ["Still there?", "Choose"]


async def test_actor_that_fails_at_its_wait_delays_no_other(
    inline_store: InlineStore, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad: list[str] = []

    def failing(state: Any, *others: Any) -> Any:
        if state is not None and state.id in bad:
            raise RuntimeError("a bug")
        return decide_with_workflow(state, *others)

    monkeypatch.setattr("deskwire.engine.conversations.commit.decide_with_workflow", failing)
    async with life(inline_store) as here:
        first, second = await started(here), await started(here)
        bad.append(first)
        await trio.sleep(62)  # virtual time: the mock clock jumps
        assert (texts(inline_store, first), len(texts(inline_store, second))) == ([], 2)
        bad.clear()
        await trio.sleep(700)  # virtual time: the mock clock jumps
        assert len(texts(inline_store, first)) == 2


async def test_changing_or_deleting_a_workflow_does_not_disturb_where_it_runs(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with life(inline_store) as here:
        made, running = await stored(inline_store, REMINDER)
        ids = [create() for _ in range(2)]
        for command in ids:
            await here.directory.create(PROJECT, command)
            await here.ask(command.conversation_id, StartWorkflow(running))
        await inline_store.write(lambda tx: tx.delete_workflow(made, NOON))
        await inline_store.write(lambda tx: tx.forget_versions(NOON + 3_600_000))
        await trio.sleep(61)  # virtual time: the mock clock jumps
        for command in ids:
            assert texts(inline_store, command.conversation_id) == ["Still there?", "Choose"]
            await here.ask(command.conversation_id, AnswerStep(3, "b0"))
        await inline_store.write(lambda tx: tx.forget_versions(NOON + 3_600_000))
        assert seen(inline_store, lambda reader: reader.workflow_version(running.version)) is None


async def test_endless_loop_is_stopped_and_logged(inline_store: InlineStore) -> None:
    """The check refuses it, but an older definition might contain one."""
    async with trio.open_nursery() as nursery:
        here = Life(inline_store, nursery)
        with capture_logs() as entries:
            conversation_id = await started(here, workflow([send(1), branch(2, "f0")]))
        (entry,) = [each for each in entries if each["event"] == "workflows.stopped"]
        assert (entry["log_level"], entry["reason"], entry["conversation"]) == (
            "warning",
            "step_limit",
            conversation_id,
        )
        state = state_of(inline_store, conversation_id)
        assert (state.run, state.status, state.messages) == (None, "OPEN", STEPS_MAX // 2)
        nursery.cancel_scope.cancel()


async def test_removed_version_starts_no_workflow_and_asks_for_a_retry(inline_store: InlineStore) -> None:
    async with trio.open_nursery() as nursery:
        here = Life(inline_store, nursery)
        made, running = await stored(inline_store, REMINDER)
        await inline_store.write(lambda tx: tx.delete_workflow(made, NOON))
        await inline_store.write(lambda tx: tx.forget_versions(NOON + 59_000))
        assert seen(inline_store, lambda reader: reader.workflow_version(running.version)) is not None
        await inline_store.write(lambda tx: tx.forget_versions(NOON + 61_000))
        command = create()
        await here.directory.create(PROJECT, command)
        with pytest.raises(Unavailable):
            await here.ask(command.conversation_id, StartWorkflow(running))
        nursery.cancel_scope.cancel()


def test_a_process_that_ends_between_any_two_commands_changes_nothing(tmp_path: Path) -> None:
    """Kill the process between two commits: every command is one, so a kill at any line is one between two."""
    number = iter(range(10_000))

    @settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(LUCK)
    def holds(luck: Random) -> None:
        document, seed = sound_workflow(luck), luck.random()
        outcomes = []
        for restarts in (False, True):
            folder = tmp_path / str(next(number))
            folder.mkdir()
            store = InlineStore(folder)
            outcomes.append(
                trio.run(
                    _history, store, document, Random(seed), restarts, clock=MockClock(autojump_threshold=0)
                )
            )
            store.close()
        assert outcomes[0] == outcomes[1]

    holds()


async def _history(store: InlineStore, document: Any, luck: Random, restarts: bool) -> list[Any]:
    """Return the messages and the waiting steps over some commands; with a new process for each command or not."""
    command, seen = create(), list[Any]()
    _, running = await stored(store, document)
    plan: list[Command | WorkflowCommand] = [StartWorkflow(running)]
    while plan:
        async with life(store) as here:
            if not seen:
                await here.directory.create(PROJECT, command)
            while plan:
                await _carry_out(here, command.conversation_id, plan.pop())
                await trio.sleep(70)  # virtual time: the mock clock jumps, and every wait ends
                state = state_of(store, command.conversation_id)
                run = state.run
                seen.append(
                    (texts(store, state.id), state.attributes, state.status, state.sequence, run and run.step)
                )
                if len(seen) < 8:
                    plan.append(_next(luck, state))
                if restarts:
                    break
    return [(each[:-1], each[-1] and each[-1]["actionId"]) for each in seen]


def _next(luck: Random, state: Conversation) -> Command | WorkflowCommand:
    if state.run is not None and state.run.step is not None and luck.random() < 0.8:
        action = state.run.step["action"]
        if action["type"] == "form":
            return AnswerStep(action["id"], {"number": "A-1", "paid": luck.random() < 0.5})
        return AnswerStep(action["id"], luck.choice(action["options"])["id"])
    return post(luck.choice(("contact", "bot", "system")), "text")


async def _carry_out(here: Life, conversation_id: str, command: Command | WorkflowCommand) -> None:
    try:
        await here.ask(conversation_id, command)
    except Conflict:
        pass
