"""One actor: it serves commands in order, survives failures, and answers every pending command."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry
from deskwire.engine.conversations.commands import Close, Command, Delete, MarkRead, Patch, Rate
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.errors import Conflict, NotFound, StaleState, Unavailable
from tests.engine.conversations.acting import Gate, ask_into, open_directory, sequences
from tests.support.builders import OTHER_PROJECT, PROJECT, InlineStore, create, post


async def state_after(directory: ActorRegistry, conversation_id: str, command: Command) -> Conversation:
    """Return the state after `command`."""
    receipt = await directory.ask(PROJECT, conversation_id, command)
    assert receipt.state is not None
    return receipt.state


async def test_commands_to_one_conversation_are_carried_out_one_after_the_other(
    inline_store: InlineStore,
) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        answers: list[Receipt] = []
        async with trio.open_nursery() as askers:
            for n in range(50):
                askers.start_soon(
                    ask_into,
                    answers,
                    lambda n=n: directory.ask(PROJECT, command.conversation_id, post("agent", str(n))),
                )
        indexes = sorted(answer.message["index"] for answer in answers if answer.message)
        assert indexes == list(range(50))
        assert sequences(inline_store, command.conversation_id) == list(range(1, 52))
        assert len(directory) == 1


async def test_no_command_is_answered_before_the_last_one_is_durable(inline_store: InlineStore) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        inline_store.before_write = gate = Gate()
        answers: list[Any] = []
        async with trio.open_nursery() as askers:
            for _ in range(2):
                askers.start_soon(
                    ask_into, answers, lambda: directory.ask(PROJECT, command.conversation_id, Close("agent"))
                )
            await wait_all_tasks_blocked()
            assert (gate.waiting, answers) == (1, [])
            gate.open()
        assert sequences(inline_store, command.conversation_id) == [1, 2]


async def test_a_full_mailbox_refuses_at_once_as_busy(inline_store: InlineStore) -> None:
    async with open_directory(inline_store, mailbox=3) as directory:
        command = create()
        await directory.create(PROJECT, command)
        inline_store.before_write = gate = Gate()
        answers: list[Any] = []
        async with trio.open_nursery() as askers:
            for _ in range(4):  # one is carried out, three are in the mailbox
                askers.start_soon(
                    ask_into, answers, lambda: directory.ask(PROJECT, command.conversation_id, post())
                )
                await wait_all_tasks_blocked()
            with pytest.raises(Unavailable) as refused:
                await directory.ask(PROJECT, command.conversation_id, post())
            assert refused.value.reason == "conversation_busy"
            assert answers == []
            gate.open()
        assert [type(answer) for answer in answers] == [Receipt] * 4
        assert sequences(inline_store, command.conversation_id) == [1, 2, 3, 4, 5]


async def test_a_command_is_carried_out_after_its_caller_is_cancelled(
    inline_store: InlineStore,
) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        inline_store.before_write = gate = Gate()
        with trio.CancelScope() as gives_up:
            async with trio.open_nursery() as asker:
                asker.start_soon(directory.ask, PROJECT, command.conversation_id, Rate(9))
                await wait_all_tasks_blocked()
                gives_up.cancel()
        gate.open()
        assert (await state_after(directory, command.conversation_id, Rate(9))).sequence == 2


async def test_a_bug_in_one_actor_ends_nothing_else_and_is_answered(inline_store: InlineStore) -> None:
    async with open_directory(inline_store) as directory:
        bad, good = create(), create()
        for command in (bad, good):
            await directory.create(PROJECT, command)
        inline_store.write_failure = RuntimeError("a bug")
        with pytest.raises(ActorFailed):
            await directory.ask(PROJECT, bad.conversation_id, post())
        assert (await state_after(directory, good.conversation_id, post())).sequence == 2
        assert (await state_after(directory, bad.conversation_id, post())).sequence == 2


async def test_after_a_failed_commit_the_state_is_read_again(inline_store: InlineStore) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        inline_store.write_failure = Unavailable("disk", code="storage_failed")
        with pytest.raises(Unavailable) as refused:
            await directory.ask(PROJECT, command.conversation_id, post())
        assert refused.value.reason == "storage_failed"
        assert (await state_after(directory, command.conversation_id, post())).sequence == 2


async def test_command_is_decided_again_in_the_commit_after_a_state_change(
    inline_store: InlineStore,
) -> None:
    async with open_directory(inline_store) as one, open_directory(inline_store) as other:
        command = create()
        await one.create(PROJECT, command)
        await other.ask(PROJECT, command.conversation_id, post())  # without the knowledge of `one`
        receipt = await one.ask(PROJECT, command.conversation_id, post())
        assert receipt.message is not None
        assert receipt.message["index"] == 1
        assert sequences(inline_store, command.conversation_id) == [1, 2, 3]


async def test_a_command_that_the_changed_state_forbids_writes_nothing(
    inline_store: InlineStore,
) -> None:
    async with open_directory(inline_store) as one, open_directory(inline_store) as other:
        command = create()
        await one.create(PROJECT, command)
        await other.ask(PROJECT, command.conversation_id, Close("agent"))
        with pytest.raises(Conflict):
            await one.ask(PROJECT, command.conversation_id, Patch({"status": "PENDING"}))
        assert sequences(inline_store, command.conversation_id) == [1, 2]


async def test_a_conversation_deleted_by_another_writer_is_not_found(
    inline_store: InlineStore,
) -> None:
    async with open_directory(inline_store) as one, open_directory(inline_store) as other:
        command = create()
        await one.create(PROJECT, command)
        await other.ask(PROJECT, command.conversation_id, Delete("manual"))
        with pytest.raises(NotFound):
            await one.ask(PROJECT, command.conversation_id, post())


async def test_a_state_with_an_old_revision_and_the_same_sequence_is_stale(
    inline_store: InlineStore,
) -> None:
    async with open_directory(inline_store) as one, open_directory(inline_store) as other:
        command = create(visible=False)
        await one.create(PROJECT, command)
        await other.ask(PROJECT, command.conversation_id, Patch({"title": "theirs"}))
        state = await state_after(one, command.conversation_id, Rate(3))
        assert (state.title, state.rating) == ("theirs", 3)


async def test_state_that_is_stale_even_in_the_commit_is_reported_as_busy(
    inline_store: InlineStore,
) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        unhindered = inline_store.before_write

        async def changed() -> None:
            await unhindered()
            inline_store.write_failure = StaleState("changed")

        inline_store.before_write = changed
        with pytest.raises(Unavailable) as refused:
            await directory.ask(PROJECT, command.conversation_id, post())
        assert refused.value.reason == "conversation_busy"
        inline_store.before_write = unhindered
        assert (await state_after(directory, command.conversation_id, post())).sequence == 2


async def test_a_failed_read_is_reported_and_repeated_for_the_next_command(
    inline_store: InlineStore,
) -> None:
    command = create()
    async with open_directory(inline_store) as directory:
        await directory.create(PROJECT, command)
    async with open_directory(inline_store) as directory:
        inline_store.read_failure = Unavailable("disk", code="storage_failed")
        with pytest.raises(Unavailable):
            await directory.ask(PROJECT, command.conversation_id, post())
        assert (await state_after(directory, command.conversation_id, post())).sequence == 2


async def test_a_refused_command_does_not_change_the_actor(inline_store: InlineStore) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        await directory.ask(PROJECT, command.conversation_id, Close("agent"))
        writes = inline_store.writes
        with pytest.raises(Conflict):
            await directory.ask(PROJECT, command.conversation_id, Patch({"status": "PENDING"}))
        assert inline_store.writes == writes
        assert (await state_after(directory, command.conversation_id, post())).status == "OPEN"


async def test_commands_queued_after_a_deletion_get_not_found(inline_store: InlineStore) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        inline_store.before_write = gate = Gate()
        answers: list[Any] = []
        async with trio.open_nursery() as askers:
            for asked in (Delete("manual"), post(), MarkRead(), Delete("gdpr")):
                askers.start_soon(
                    ask_into,
                    answers,
                    lambda asked=asked: directory.ask(PROJECT, command.conversation_id, asked),
                )
                await wait_all_tasks_blocked()
            gate.open()
        assert Counter(type(answer) for answer in answers) == {Receipt: 1, NotFound: 3}
        assert len(directory) == 0
        with pytest.raises(NotFound):
            await directory.ask(PROJECT, command.conversation_id, post())


async def test_another_projects_conversation_does_not_exist(inline_store: InlineStore) -> None:
    async with open_directory(inline_store) as directory:
        command = create()
        await directory.create(PROJECT, command)
        with pytest.raises(NotFound) as foreign:
            await directory.ask(OTHER_PROJECT, command.conversation_id, Delete("manual"))
        with pytest.raises(NotFound) as unknown:
            await directory.ask(PROJECT, create().conversation_id, Delete("manual"))
        assert str(foreign.value) == str(unknown.value)
        assert len(directory) == 1
        assert sequences(inline_store, command.conversation_id) == [1]


async def test_a_shutdown_answers_all_pending_commands(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    command = create()
    answers: list[Any] = []
    async with trio.open_nursery() as askers:
        askers.cancel_scope.deadline = trio.current_time() + 5
        async with open_directory(inline_store) as directory:
            await directory.create(PROJECT, command)
            inline_store.before_write = Gate()
            for _ in range(3):
                askers.start_soon(
                    ask_into, answers, lambda: directory.ask(PROJECT, command.conversation_id, post())
                )
            askers.start_soon(ask_into, answers, lambda: directory.create(PROJECT, create()))
            await wait_all_tasks_blocked()
    assert [answer.reason for answer in answers] == ["shutting_down"] * 4
    assert len(directory) == 0


async def test_a_command_after_the_shutdown_is_refused_as_shutting_down(inline_store: InlineStore) -> None:
    command = create()
    async with open_directory(inline_store) as directory:
        await directory.create(PROJECT, command)
    for _ in range(2):  # the second must not wait for an actor that never ran
        with pytest.raises(Unavailable) as refused, trio.fail_after(5):
            await directory.ask(PROJECT, command.conversation_id, post())
        assert refused.value.reason == "shutting_down"
