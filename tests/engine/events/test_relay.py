"""Typing events between nodes: relayed only to nodes with listeners."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio.testing import MockClock

from deskwire.engine.events.relay import TypingRelay
from deskwire.engine.events.types import EphemeralEvent
from tests.support.linked_buses import LinkedBus


class Node:
    """A node with listeners in some projects."""

    def __init__(self, buses: list[LinkedBus], name: str, *listening: int) -> None:
        self.bus = LinkedBus(buses)
        self.listening = {*listening}
        self.came: list[EphemeralEvent] = []
        self.relay = TypingRelay(self.bus, name, lambda: self.listening, self.came.append)


@asynccontextmanager
async def running(*nodes: Node) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(node.relay.run)
            node.bus.connect()
        await trio.sleep(0.6)
        yield
        nursery.cancel_scope.cancel()


def typing(project: int = 1, *, internal: bool = False) -> EphemeralEvent:
    return EphemeralEvent(
        "evt_1", "agent.typing.started", project, 7, "cnv_7", "u7", b'{"a":"\xc3\xa4"}', internal
    )


async def test_relayed_event_is_unchanged_on_nodes_with_listeners(autojump_clock: MockClock) -> None:
    buses: list[LinkedBus] = []
    here, there, both = Node(buses, "a"), Node(buses, "b", 1, 5_000), Node(buses, "c", 2)
    async with running(here, there, both):
        for event in (typing(), typing(internal=True), typing(5_000)):
            here.relay.offer(event)
            assert there.came.pop() == event
        here.bus.sent.clear()
        here.relay.offer(typing(3))
        assert here.bus.sent == []


async def test_new_listener_is_announced_soon_and_a_silent_node_expires(
    autojump_clock: MockClock,
) -> None:
    buses: list[LinkedBus] = []
    here, there = Node(buses, "a"), Node(buses, "b")
    async with running(here, there):
        here.relay.offer(typing())
        assert not there.came
        there.listening.add(1)
        await trio.sleep(0.6)
        here.relay.offer(typing())
        assert len(there.came) == 1
        there.listening.clear()
        await trio.sleep(11)
        here.relay.offer(typing())
        assert len(there.came) == 1, "no listener is left"
        there.listening.add(1)
        await trio.sleep(1)
        there.bus.cut = True
        here.bus.sent.clear()
        await trio.sleep(26)
        here.relay.offer(typing())
        assert not [payload for _, payload in here.bus.sent if b"event" in payload]


async def test_starting_node_requests_announcements(autojump_clock: MockClock) -> None:
    buses: list[LinkedBus] = []
    there = Node(buses, "b", 1)
    async with running(there):
        here = Node(buses, "a")
        async with running(here):
            here.relay.offer(typing())
            assert len(there.came) == 1


async def test_expired_nodes_take_no_memory(autojump_clock: MockClock) -> None:
    buses: list[LinkedBus] = []
    here = Node(buses, "a")
    async with running(here):
        for number in range(50):
            gone = Node(buses, f"b{number}", 1)
            async with running(gone):
                pass
            gone.bus.cut = True
        await trio.sleep(40)
        assert not here.relay._remote_listeners


async def test_announcement_size_is_independent_of_the_number_of_projects(autojump_clock: MockClock) -> None:
    buses: list[LinkedBus] = []
    here, there = Node(buses, "a"), Node(buses, "b", *range(100_000))
    async with running(here, there):
        assert max(len(payload) for _, payload in there.bus.sent) < 600
