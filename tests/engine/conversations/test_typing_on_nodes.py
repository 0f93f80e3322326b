"""Typing in a conversation on two nodes: `stopped` comes once, from the node that tracks the agent (ADR 60)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Close, Command, Delete
from deskwire.engine.conversations.conversation import Author
from deskwire.engine.conversations.typing import EphemeralPublisher, SetTyping, TypingAgent
from deskwire.engine.core.errors import DomainError
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EphemeralEvent
from tests.engine.conversations.acting import open_directory
from tests.support.builders import NOON, PROJECT, InlineStore, create, post
from tests.support.linked_buses import LinkedBus

ADA = TypingAgent("usr_ada", "Ada")


@dataclass(eq=False)
class Stage:
    """Two nodes with one conversation, and the typing events of each node."""

    nodes: tuple[ActorRegistry, ActorRegistry]
    buses: tuple[LinkedBus, LinkedBus]
    conversation: str
    said: list[tuple[int, str]] = field(default_factory=list)

    async def types(self, node: int, agent: TypingAgent = ADA, *, typing: bool = True) -> None:
        await self.nodes[node].ask(PROJECT, self.conversation, SetTyping(agent, typing))


@asynccontextmanager
async def stage(store: InlineStore) -> AsyncIterator[Stage]:
    ends = list[LinkedBus]()
    buses = (LinkedBus(ends), LinkedBus(ends))
    said = list[tuple[int, str]]()

    def publisher(node: int) -> EphemeralPublisher:
        def note(event: EphemeralEvent) -> None:
            said.append((node, event.type.removeprefix("agent.typing.")))

        return EphemeralPublisher(lambda: NOON, note)

    async with (
        open_directory(store, bus=buses[0], publisher=publisher(0)) as one,
        open_directory(store, bus=buses[1], publisher=publisher(1)) as other,
    ):
        command = create()
        await one.create(PROJECT, command)
        yield Stage((one, other), buses, command.conversation_id, said)


async def test_stop_at_another_node_ends_typing_at_once_and_once(
    autojump_clock: MockClock, inline_store: InlineStore
) -> None:
    async with stage(inline_store) as live:
        await live.types(0)
        await live.types(1, typing=False)
        assert live.said == [(0, "started"), (0, "stopped")]
        await trio.sleep(10)  # virtual time: the mock clock jumps
        assert live.said == [(0, "started"), (0, "stopped")]


async def test_agent_who_types_on_at_another_node_stops_only_there(
    autojump_clock: MockClock, inline_store: InlineStore
) -> None:
    async with stage(inline_store) as live:
        await live.types(0)
        await trio.sleep(4)  # virtual time: the mock clock jumps
        await live.types(1)
        await trio.sleep(10)  # virtual time: the mock clock jumps
        assert live.said == [(0, "started"), (1, "started"), (1, "stopped")]


@pytest.mark.parametrize("what", ["message", "close", "delete"])
async def test_a_commit_on_another_node_ends_typing(
    autojump_clock: MockClock, inline_store: InlineStore, what: str
) -> None:
    async with stage(inline_store) as live:
        author = Author("agent", ADA.id, ADA.name)
        commands: dict[str, Command] = {
            "message": replace(post(), author=author),
            "close": Close("agent"),
            "delete": Delete("manual"),
        }
        await live.types(0)
        live.said.clear()
        await live.nodes[1].ask(PROJECT, live.conversation, commands[what])
        assert live.said == [(0, "stopped")]


async def test_without_the_bus_typing_expires(autojump_clock: MockClock, inline_store: InlineStore) -> None:
    async with stage(inline_store) as live:
        live.buses[0].cut = True
        await live.types(0)
        await live.types(1, typing=False)
        await trio.sleep(7)  # virtual time: the mock clock jumps
        assert live.said == [(0, "started"), (0, "stopped")]


async def test_a_message_without_typists_sends_nothing_to_other_nodes(
    autojump_clock: MockClock, inline_store: InlineStore
) -> None:
    async with stage(inline_store) as live:
        for node in live.nodes:
            try:
                await node.ask(PROJECT, live.conversation, post("agent"))
            except DomainError as refused:
                raise AssertionError("nothing is refused") from refused
        assert [bus.sent for bus in live.buses] == [[], []]
