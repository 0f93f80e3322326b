"""Typing, from the agent's command to the events, on a mock clock (decisions 4; ADR 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Close, Command, Delete, MarkRead, Patch, PostMessage
from deskwire.engine.conversations.conversation import Author
from deskwire.engine.conversations.typing import EphemeralPublisher, SetTyping, TypingAgent
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import EphemeralEvent
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, HandClock, InlineStore, create, post

ADA, BOB = TypingAgent("usr_ada", "Ada"), TypingAgent("usr_bob", "Bob")


@dataclass
class Office:
    """A registry with one conversation, and the events that its listeners got, with their times in seconds."""

    directory: ActorRegistry
    store: InlineStore
    passed: list[EphemeralEvent]
    conversation_id: str = ""
    began: float = field(default_factory=trio.current_time)
    times: list[float] = field(default_factory=list)

    @property
    def told(self) -> list[tuple[float, str, str]]:
        """Return the time, the type and the agent of each event."""
        return [
            (
                at,
                event.type.removeprefix("agent.typing."),
                orjson.loads(event.body)["data"]["agent"]["name"],
            )
            for at, event in zip(self.times, self.passed, strict=True)
        ]

    async def do(self, command: Command) -> None:
        await self.directory.ask(PROJECT, self.conversation_id, command)

    async def type(self, agent: TypingAgent = ADA, typing: bool = True) -> None:
        await self.directory.ask(PROJECT, self.conversation_id, SetTyping(agent, typing))

    def listen(self, event: EphemeralEvent) -> None:
        self.passed.append(event)
        self.times.append(trio.current_time() - self.began)


@asynccontextmanager
async def opened(store: InlineStore, *, visible: bool = True, **limits: Any) -> AsyncIterator[Office]:
    clock = HandClock()
    async with trio.open_nursery() as nursery:
        bounds = {"mailbox": 256, "idle_s": 60.0, "live": 100} | limits
        listeners: list[Office] = []
        passing = EphemeralPublisher(clock, lambda event: listeners[0].listen(event))
        office = Office(ActorRegistry(nursery, store, clock, publisher=passing, **bounds), store, [])
        listeners.append(office)
        command = create(visible=visible)
        office.conversation_id = command.conversation_id
        await office.directory.create(PROJECT, command)
        yield office
        nursery.cancel_scope.cancel()


def reply(agent: TypingAgent, *, internal: bool = False) -> PostMessage:
    return PostMessage(new_id("msg", NOON), Author("agent", agent.id, agent.name), "Hello", internal)


async def test_the_event_has_exactly_the_decided_fields_and_no_sequence(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    """Contract 2.10, decisions 4."""
    async with opened(inline_store) as office:
        await office.type()
        (event,) = office.passed
        envelope = orjson.loads(event.body)
        assert list(envelope) == ["id", "type", "apiVersion", "createdAt", "projectId", "sequence", "data"]
        assert (envelope["sequence"], envelope["type"]) == (None, "agent.typing.started")
        assert envelope["data"] == {
            "conversationId": office.conversation_id,
            "agent": {"id": "usr_ada", "name": "Ada"},
        }
        assert (event.project, event.user_id, event.conversation_id) == (1, "user-1", office.conversation_id)


async def test_typing_expires_once_after_six_seconds(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    """Decisions 4."""
    async with opened(inline_store) as office:
        await office.type()
        await trio.sleep(300)  # virtual time: the mock clock jumps
        assert office.told == [(0, "started", "Ada"), (6, "stopped", "Ada")]


async def test_agent_whose_typing_has_expired_can_type_again(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        for _ in range(2):
            await office.type()
            await trio.sleep(10)  # virtual time: the mock clock jumps
        assert office.told == [
            (0, "started", "Ada"),
            (6, "stopped", "Ada"),
            (10, "started", "Ada"),
            (16, "stopped", "Ada"),
        ]


async def test_agent_who_keeps_typing_is_announced_at_most_every_three_seconds(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        for _ in range(9):
            await office.type()
            await trio.sleep(1)  # virtual time: the mock clock jumps
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert office.told == [
            (0, "started", "Ada"),
            (3, "started", "Ada"),
            (6, "started", "Ada"),
            (14, "stopped", "Ada"),  # 6 s after the last sign, which was at 8
        ]


async def test_an_agent_can_stop_at_once_and_only_once(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        await office.type(typing=False)
        await office.type()
        await trio.sleep(2)  # virtual time: the mock clock jumps
        await office.type(typing=False)
        await office.type(typing=False)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert office.told == [(0, "started", "Ada"), (2, "stopped", "Ada")]


async def test_agents_who_type_simultaneously_expire_separately(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        await office.type(ADA)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        await office.type(BOB)
        await trio.sleep(3)  # virtual time: the mock clock jumps
        await office.type(ADA)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert office.told == [
            (0, "started", "Ada"),
            (2, "started", "Bob"),
            (5, "started", "Ada"),
            (8, "stopped", "Bob"),
            (11, "stopped", "Ada"),
        ]


@pytest.mark.parametrize("internal", [False, True], ids=["message", "note"])
async def test_an_agents_message_or_note_ends_that_agents_typing_at_once(
    inline_store: InlineStore, autojump_clock: MockClock, internal: bool
) -> None:
    async with opened(inline_store) as office:
        await office.type(ADA)
        await office.type(BOB)
        await office.do(post("contact"))
        await office.do(post("agent"))  # by an agent without an id, who is unknown
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await office.do(reply(ADA, internal=internal))
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert office.told[2:] == [(1, "stopped", "Ada"), (6, "stopped", "Bob")]


@pytest.mark.parametrize("command", [Close("agent"), Delete("manual")], ids=["closed", "deleted"])
async def test_the_end_of_the_conversation_ends_all_typing_at_once(
    inline_store: InlineStore, autojump_clock: MockClock, command: Command
) -> None:
    async with opened(inline_store) as office:
        await office.type(ADA)
        await office.type(BOB)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await office.do(command)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert office.told[2:] == [(1, "stopped", "Ada"), (1, "stopped", "Bob")]


async def test_a_command_that_fails_or_changes_nothing_ends_no_typing(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        await office.type()
        inline_store.write_failure = Unavailable("disk", code="storage_failed")
        with pytest.raises(Unavailable):
            await office.do(reply(ADA))
        await office.do(MarkRead())
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert office.told == [(0, "started", "Ada"), (6, "stopped", "Ada")]


async def test_an_agent_may_type_into_a_closed_conversation(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    """Decisions 4: an agent may write a message there, which does not reopen it."""
    async with opened(inline_store) as office:
        await office.do(Close("agent"))
        await office.type()
        await office.do(Close("agent"))
        assert office.told == [(0, "started", "Ada")]


async def test_typing_in_a_hidden_conversation_is_not_public(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store, visible=False) as office:
        await office.type()
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert office.told == []
        await office.do(Patch({"visible": True}))
        await office.type()
        assert office.told == [(1, "started", "Ada")]


async def test_typing_in_an_unknown_or_foreign_conversation_is_not_found(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        command = SetTyping(ADA, True)
        for project, conversation in (
            (PROJECT, create().conversation_id),
            (OTHER_PROJECT, office.conversation_id),
        ):
            with pytest.raises(NotFound):
                await office.directory.ask(project, conversation, command)
        await wait_all_tasks_blocked()
        assert len(office.directory) == 1
        assert office.told == []


async def test_typing_writes_nothing(inline_store: InlineStore, autojump_clock: MockClock) -> None:
    """Decisions 4: never stored."""
    async with opened(inline_store) as office:
        writes = inline_store.writes
        await office.type()
        await office.type(typing=False)
        assert inline_store.writes == writes


async def test_an_actor_stays_until_its_last_typist_has_stopped(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store, idle_s=1.0) as office:
        await office.type()
        await trio.sleep(5.9)  # virtual time: the mock clock jumps
        assert len(office.directory) == 1
        await trio.sleep(2)  # virtual time: the mock clock jumps
        assert len(office.directory) == 0
        assert office.told == [(0, "started", "Ada"), (6, "stopped", "Ada")]


async def test_a_quiet_conversation_makes_room_before_one_in_which_an_agent_types(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store, live=2) as office:
        await office.type()
        await office.directory.create(PROJECT, create())
        await office.directory.create(
            PROJECT, create()
        )  # in place of the quiet one, though it was used later
        assert office.told == [(0, "started", "Ada")]


async def test_a_command_evicts_an_actor_with_typists_which_publishes_stopped(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    """The bound on actors is kept, no command is refused because of typing, and no indicator stays on."""
    async with opened(inline_store, live=1) as office:
        await office.type()
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await office.directory.create(PROJECT, create())
        assert office.told == [(0, "started", "Ada"), (1, "stopped", "Ada")]
        await office.type()
        assert office.told[2:] == [(1, "started", "Ada")]
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert office.told[3:] == [(7, "stopped", "Ada")]


async def test_all_typing_stops_with_the_service(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        await office.type()
    assert office.told == [(0, "started", "Ada"), (0, "stopped", "Ada")]
    await trio.sleep(60)  # virtual time: the mock clock jumps
    assert len(office.told) == 2
