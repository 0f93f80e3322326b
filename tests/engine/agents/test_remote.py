"""Agents on two nodes: each node shows presence and ephemeral events of the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson
import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.accounts.people import User
from deskwire.engine.agents.presence import View, ephemeral_event
from deskwire.engine.agents.rights import Viewer
from deskwire.engine.agents.stream import AgentStream
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.events.log import EventLog
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, HandClock, InlineStore
from tests.support.linked_buses import LinkedBus

P = PROJECT.rowid


@dataclass
class Node:
    """The streams of one node."""

    streams: AgentStreams
    bus: LinkedBus

    async def open(self, user: User) -> AgentStream:
        viewer = Viewer(user.rowid, user.id, user.name, user.generation, PROJECT, None)
        return await self.streams.open(viewer, None, lambda: None)

    def look(self, stream: AgentStream, *conversations: str, composing: str | None = None) -> None:
        self.streams.view(stream.id, stream.viewer.user, P, View(conversations, composing))

    def present(self) -> dict[str, tuple[list[str], str | None]]:
        """Return the presence of all agents: the conversations that they view and write in."""
        shown = self.streams.present(P)
        assert all(each["online"] for each in shown)
        return {each["name"]: (each["conversationIds"], each["composing"]) for each in shown}


@dataclass
class World:
    """Two nodes and two agents."""

    store: InlineStore
    ada: User
    ken: User
    buses: list[LinkedBus]
    nursery: trio.Nursery

    def node(self, name: str) -> Node:
        bus = LinkedBus(self.buses)
        log = EventLog(self.store, 0, ring_events=100, ring_bytes=1 << 20)
        streams = AgentStreams(self.store, log, HandClock(), bus=bus, node=name)
        self.nursery.start_soon(streams.run)
        bus.connect()
        return Node(streams, bus)


@asynccontextmanager
async def world(store: InlineStore) -> AsyncIterator[World]:
    def hire(name: str) -> User:
        user = store.at_once(lambda tx: tx.insert_user(f"usr_{name}", f"{name}@x.org", name, None, NOON))
        store.at_once(lambda tx: tx.insert_membership(PROJECT.organisation, user.rowid, "agent", NOON))
        return user

    async with trio.open_nursery() as nursery:
        yield World(store, hire("ada"), hire("ken"), [], nursery)
        nursery.cancel_scope.cancel()


async def test_presence_includes_agents_of_other_nodes_and_their_views(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with world(inline_store) as both:
        here, there = both.node("a"), both.node("b")
        mine, ken = await here.open(both.ada), await there.open(both.ken)
        there.look(ken, "cnv_1", "cnv_2", composing="cnv_2")
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        assert here.present() == there.present()
        assert here.present() == {"ada": ([], None), "ken": (["cnv_1", "cnv_2"], "cnv_2")}
        received = [agent.name for agent in (await mine.next()).present]
        assert set(received) == {"ada", "ken"}
        assert (here.streams.viewed(P, "cnv_1"), here.streams.has_viewers) == (True, True)
        there.streams.close(ken)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        assert here.present() == {"ada": ([], None)}
        (gone,) = here.streams.present(P, (await mine.next()).present)
        assert (gone["name"], gone["online"]) == ("ken", False)
        assert (here.streams.viewed(P, "cnv_1"), here.streams.has_viewers) == (False, False)


async def test_agent_on_two_nodes_has_one_presence(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with world(inline_store) as both:
        here, there = both.node("a"), both.node("b")
        for node, conversation in ((here, "cnv_1"), (there, "cnv_2")):
            node.look(await node.open(both.ada), conversation)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        assert here.present() == {"ada": (["cnv_1", "cnv_2"], None)}
        assert there.present() == {"ada": (["cnv_2", "cnv_1"], None)}


async def test_later_node_gets_announcements_at_once(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with world(inline_store) as both:
        here = both.node("a")
        await here.open(both.ada)
        await trio.sleep(3)  # virtual time: the mock clock jumps
        there = both.node("b")
        await trio.sleep(0.1)  # virtual time: the mock clock jumps
        assert there.present() == {"ada": ([], None)}


async def test_lost_announcement_is_repeated_and_a_dead_node_expires(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with world(inline_store) as both:
        here, there = both.node("a"), both.node("b")
        there.bus.cut = True
        await there.open(both.ken)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert here.present() == {}
        there.bus.cut = False
        await trio.sleep(10)  # virtual time: the mock clock jumps
        assert here.present() == {"ken": ([], None)}
        there.bus.cut = True  # and never again
        await trio.sleep(14)  # virtual time: the mock clock jumps
        assert here.present() == {"ken": ([], None)}
        await trio.sleep(25)  # virtual time: the mock clock jumps
        assert here.present() == {}


async def test_expired_nodes_take_no_memory(inline_store: InlineStore, autojump_clock: MockClock) -> None:
    async with world(inline_store) as both:
        here = both.node("a")
        for number in range(50):
            there = both.node(f"b{number}")
            await there.open(both.ken)
            await trio.sleep(0.5)  # virtual time: the mock clock jumps
            there.bus.cut = True
        elsewhere = here.streams._remote
        assert elsewhere is not None
        await trio.sleep(40)  # virtual time: the mock clock jumps
        assert not elsewhere._incarnations


async def test_announcements_of_a_nodes_former_incarnation_expire_at_once(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with world(inline_store) as both:
        here, there = both.node("a"), both.node("b")
        await there.open(both.ken)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        there.bus.cut = True
        again = both.node("b")
        await again.open(both.ada)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert here.present() == {"ada": ([], None)}


@pytest.mark.parametrize(
    ("to_user", "viewing", "has"),
    [
        (None, None, True),
        ("ken", None, True),
        ("ada", None, False),
        (None, "cnv_1", True),
        (None, "cnv_9", False),
    ],
)
async def test_ephemeral_events_reach_the_other_node(
    to_user: str | None, viewing: str | None, has: bool, inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with world(inline_store) as both:
        here, there = both.node("a"), both.node("b")
        ken = await there.open(both.ken)
        there.look(ken, "cnv_1")
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        await ken.next()
        user = {"ken": both.ken.rowid, "ada": both.ada.rowid, None: None}[to_user]
        here.streams.broadcast(P, ephemeral_event("x", {"text": "ä\u0000"}), to_user=user, viewing=viewing)
        with trio.move_on_after(1) as waiting:
            (event,) = (await ken.next()).ephemeral
            assert orjson.loads(event.body) == {"type": "x", "data": {"text": "ä\u0000"}}
        assert waiting.cancelled_caught is not has


async def test_no_message_is_sent_for_a_project_with_local_agents_only(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with world(inline_store) as both:
        here, there = both.node("a"), both.node("b")
        await there.open(both.ken)
        await here.open(both.ada)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        here.bus.sent.clear()
        here.streams.broadcast(OTHER_PROJECT.rowid, ephemeral_event("x", {}))
        here.streams.broadcast(P, ephemeral_event("x", {}), viewing="cnv_1")
        assert here.bus.sent == []
        here.streams.broadcast(P, ephemeral_event("x", {}))
        assert len(here.bus.sent) == 1


async def test_announcement_of_a_busy_agent_fits_into_messages(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with world(inline_store) as both:
        here, there = both.node("a"), both.node("b")
        names = [f"cnv_{number:026}" for number in range(100)]
        for start in range(0, 100, 20):
            there.look(await there.open(both.ken), *names[start : start + 20])
        there.look(await there.open(both.ada), *names[:20])
        await trio.sleep(11)  # virtual time: the mock clock jumps
        assert here.present() == {"ken": (names[:60], None), "ada": (names[:20], None)}
