"""Commands of one conversation that arrive together share a commit, and a failed command fails no other one."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Close, Command, Delete, Patch, Rate
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.core.errors import Invalid, Problem, Unavailable
from deskwire.engine.core.values import replace
from deskwire.engine.importing.records import MessageRecord
from deskwire.engine.importing.thread import with_messages
from deskwire.engine.ports import Transaction
from tests.engine.conversations.acting import Gate, ask_into, open_directory, sequences
from tests.support.builders import NOON, PROJECT, InlineStore, create, post, running
from tests.support.seeing import seen


async def test_commands_that_arrive_together_share_commits(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        command = create()
        await engine.directory.create(PROJECT, command)
        commits = len(engine.commits)
        answers: list[Any] = []
        async with trio.open_nursery() as askers:
            for _ in range(50):
                askers.start_soon(
                    ask_into, answers, lambda: engine.directory.ask(PROJECT, command.conversation_id, post())
                )
        assert sorted(answer.message["index"] for answer in answers) == list(range(50))
        assert len(engine.commits) - commits <= 10


def first_write_fails(store: InlineStore, then: Callable[[], None] | None = None) -> Gate:
    """Delays writes; the first write fails, and `then` is called before the second one."""
    store.before_write = gate = Gate(then)
    store.write_failure = Unavailable("disk", code="storage_failed")
    return gate


async def asked_one_after_the_other(
    directory: ActorRegistry, conversation_id: str, gate: Gate, *commands: Command
) -> list[Any]:
    """Return the answers to commands that are all sent before the first commit begins."""
    answers: list[list[Any]] = [[] for _ in commands]
    async with trio.open_nursery() as askers:
        for answer, command in zip(answers, commands, strict=True):
            askers.start_soon(ask_into, answer, lambda c=command: directory.ask(PROJECT, conversation_id, c))
            await wait_all_tasks_blocked()
        gate.open()
    return [answer for (answer,) in answers]


async def test_a_command_decided_on_a_failed_commit_is_decided_again(inline_store: InlineStore) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        gate = first_write_fails(inline_store)
        refused, *posted = await asked_one_after_the_other(
            directory, command.conversation_id, gate, Patch({"title": "lost"}), post(), post()
        )
        assert refused.reason == "storage_failed"
        assert [answer.message["index"] for answer in posted] == [0, 1]
        assert {answer.state.title for answer in posted} == {None}
        assert sequences(inline_store, command.conversation_id) == [1, 2, 3]


async def test_a_refusal_is_not_based_on_a_failed_commit(inline_store: InlineStore) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        gate = first_write_fails(inline_store)
        refused, patched = await asked_one_after_the_other(
            directory, command.conversation_id, gate, Close("agent"), Patch({"status": "PENDING"})
        )
        assert refused.reason == "storage_failed"
        assert patched.state.status == "PENDING"


async def test_an_import_is_never_mistaken_for_the_failed_commit(inline_store: InlineStore) -> None:
    """Both add one event to the conversation, but not the same one."""

    def imported(tx: Transaction) -> None:
        found = tx.conversation(PROJECT.rowid, command.conversation_id)
        assert found is not None
        message = MessageRecord(
            1, "1", "1", "agent", None, None, "of old", internal=False, created_at=NOON - 1
        )
        state = replace(with_messages(found[0], [message]), sequence=found[0].sequence + 1)
        tx.save_conversation(found[0], state, tx.claim(found[0]).routed)

    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        gate = first_write_fails(inline_store, lambda: inline_store.at_once(imported))
        refused, posted = await asked_one_after_the_other(
            directory, command.conversation_id, gate, Patch({"title": "lost"}), post()
        )
        assert refused.reason == "storage_failed"
        assert (posted.message["index"], posted.state.title) == (1, None)


async def test_commands_make_one_history_whichever_of_them_fail(tmp_path: Path) -> None:
    chance = random.Random(7)

    class Failing:
        def before(self, tx: Transaction) -> None:
            """Allow the write."""

        def after(self, tx: Transaction, receipt: Receipt) -> None:
            raise Invalid(Problem("/", "chance", "It was this one's turn."))

    async with running(tmp_path) as engine:
        command = create()
        await engine.directory.create(PROJECT, command)
        answers: list[Any] = []

        async def asker(number: int) -> None:
            for turn in range(15):
                asked = chance.choice(
                    (post("agent"), post(), Patch({"title": f"{number}.{turn}"}), Close("bot"))
                )
                wrapper = Failing() if chance.random() < 0.2 else None
                call = partial(engine.directory.ask, PROJECT, command.conversation_id, asked, wrapper)
                await ask_into(answers, call)

        async with trio.open_nursery() as askers:
            for number in range(20):
                askers.start_soon(asker, number)
        done = [answer for answer in answers if isinstance(answer, Receipt)]
        assert len(done) < len(answers) == 300
        indexes = sorted(answer.message["index"] for answer in done if answer.message)
        assert indexes == list(range(len(indexes)))
        found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, command.conversation_id))
        assert found is not None
        assert found[0].messages == len(indexes)
        events = [event for commit in engine.commits for event in commit.events]
        assert [event.sequence for event in events] == list(range(1, found[0].sequence + 1))
        last = await engine.directory.ask(PROJECT, command.conversation_id, Rate(5))
        assert last.state is not None
        assert last.state.sequence == found[0].sequence + 1


async def test_a_deletion_removes_no_event_of_an_earlier_commit(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        command = create()
        await engine.directory.create(PROJECT, command)
        answers: list[Any] = []
        go = threading.Event()
        async with trio.open_nursery() as askers:
            askers.start_soon(engine.store.write, lambda tx: go.wait(10))
            await wait_all_tasks_blocked(0.01)  # the writer is blocked, so the next commands arrive together
            for asked in (post(), post(), Delete("manual")):
                call = partial(engine.directory.ask, PROJECT, command.conversation_id, asked)
                askers.start_soon(ask_into, answers, call)
                await wait_all_tasks_blocked()
            go.set()
        events = [event for commit in engine.commits for event in commit.events]
        assert [event.sequence for event in events] == [1, 2, 3, 4]
