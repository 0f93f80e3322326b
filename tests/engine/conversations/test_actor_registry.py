"""The registry: at most one actor for each conversation, a bounded number of them, none lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.actors import ActorRegistry, ConversationActor, PendingCommand
from deskwire.engine.conversations.commands import Assign
from deskwire.engine.conversations.pipeline import SharedDependencies
from deskwire.engine.conversations.typing import EphemeralPublisher
from deskwire.engine.core.errors import Unavailable
from tests.support.builders import PROJECT, HandClock, InlineStore, create, post
from tests.support.seeing import seen


@asynccontextmanager
async def opened(
    store: InlineStore, *, idle_s: float = 60, live: int = 100, mailbox: int = 256
) -> AsyncIterator[ActorRegistry]:
    async with trio.open_nursery() as nursery:
        yield ActorRegistry(nursery, store, HandClock(), mailbox=mailbox, idle_s=idle_s, live=live)
        nursery.cancel_scope.cancel()


async def test_an_idle_actor_ends_after_its_idle_time(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store, idle_s=60) as directory:
        command = create()
        await directory.create(PROJECT, command)
        await trio.sleep(59)  # virtual time: the mock clock jumps
        assert len(directory) == 1
        await trio.sleep(2)  # virtual time: the mock clock jumps
        assert len(directory) == 0
        receipt = await directory.ask(PROJECT, command.conversation_id, post())
        assert receipt.state is not None
        assert receipt.state.sequence == 2


async def test_a_command_restarts_the_idle_time(inline_store: InlineStore, autojump_clock: MockClock) -> None:
    async with opened(inline_store, idle_s=60) as directory:
        command = create()
        await directory.create(PROJECT, command)
        for _ in range(5):
            await trio.sleep(50)  # virtual time: the mock clock jumps
            assert len(directory) == 1
            await directory.ask(PROJECT, command.conversation_id, post())


async def test_an_actor_with_a_pending_command_is_never_idle(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async def slowly() -> None:
        await trio.sleep(500)  # virtual time: the mock clock jumps

    async with opened(inline_store, idle_s=60, live=1) as directory:
        inline_store.before_write = slowly
        async with trio.open_nursery() as asker:
            asker.start_soon(directory.create, PROJECT, create())
            await trio.sleep(400)  # virtual time: the mock clock jumps
            assert len(directory) == 1
            with pytest.raises(Unavailable) as refused:
                await directory.create(PROJECT, create())
            assert refused.value.reason == "overloaded"


async def test_the_least_recently_used_actor_is_evicted_for_a_new_one(inline_store: InlineStore) -> None:
    async with opened(inline_store, live=3) as directory:
        commands = [create() for _ in range(3)]
        for command in commands:
            await directory.create(PROJECT, command)
        await directory.ask(PROJECT, commands[0].conversation_id, post())
        reads = inline_store.reads
        await directory.create(PROJECT, create())  # in the place of commands[1]
        assert len(directory) == 3
        await directory.ask(PROJECT, commands[0].conversation_id, post())
        await directory.ask(PROJECT, commands[2].conversation_id, post())
        assert inline_store.reads == reads
        await directory.ask(PROJECT, commands[1].conversation_id, post())
        assert inline_store.reads == reads + 1
        assert len(directory) == 3


async def test_an_actor_that_just_got_a_command_is_not_idle(inline_store: InlineStore) -> None:
    """A waiting task gets its command without the channel's buffer, and runs only in the next scheduler step."""
    command = create()
    actor = ConversationActor(
        PROJECT,
        command.conversation_id,
        SharedDependencies(inline_store, HandClock(), 8, EphemeralPublisher(HandClock())),
    )
    ask = PendingCommand(command)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run, lambda _: None)
        await wait_all_tasks_blocked()
        assert actor.idle
        actor.send_nowait(ask)
        assert not actor.idle
        await ask.take()
        await wait_all_tasks_blocked()
        assert actor.idle
        actor.close()


async def test_there_are_never_two_actors_for_one_conversation(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    """Actors are evicted by age and by pressure at any time; a second actor would get StaleState."""
    chance = random.Random(20)

    async def now_and_then() -> None:
        for _ in range(chance.randrange(3)):
            await trio.sleep(chance.choice((0, 0, 0.5, 1.0, 1.5)))  # virtual time: the mock clock jumps

    inline_store.before_write = now_and_then
    done = Counter[str]()
    refused = Counter[str]()

    async def ask(directory: ActorRegistry, conversation_id: str, user: int) -> None:
        for n in range(25):
            await trio.sleep(chance.choice((0, 0, 0, 1.0, 2.0)))  # virtual time: the mock clock jumps
            command = post() if n % 2 else Assign(Assignee("user", str(user), f"{user}.{n}"))
            try:
                await directory.ask(PROJECT, conversation_id, command)
                done[conversation_id] += 1
            except Unavailable as refusal:
                refused[refusal.reason] += 1

    async with opened(inline_store, idle_s=1.0, live=4) as directory:
        commands = [create() for _ in range(8)]
        for command in commands:
            await directory.create(PROJECT, command)
        async with trio.open_nursery() as askers:
            for command in commands:
                for user in range(3):
                    askers.start_soon(ask, directory, command.conversation_id, user)
        assert len(directory) <= 4
    assert set(refused) <= {"overloaded"}
    for command in commands:
        found = seen(inline_store, lambda reader, c=command: reader.conversation(1, c.conversation_id))  # type: ignore[misc]
        assert found is not None
        assert found[0].sequence == 1 + done[command.conversation_id]
    assert sum(done.values()) > 100
