"""Presence of contacts for agents, on one node and on several."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import trio
from trio.testing import MockClock

from deskwire.engine.accounts.people import User
from deskwire.engine.agents.presence import View
from deskwire.engine.agents.rights import Viewer
from deskwire.engine.agents.stream import AgentStream
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.customers.presence import OFFLINE_DELAY_S, ContactKey, ContactPresence
from deskwire.engine.customers.stream import Page
from deskwire.engine.events.log import EventLog
from tests.support.builders import NOON, PROJECT, HandClock, InlineStore
from tests.support.linked_buses import LinkedBus

CART = Page("https://shop.example/cart", "Cart")
ADA = ContactKey(PROJECT.rowid, "con_ada")
BOB = ContactKey(PROJECT.rowid, "con_bob")


@dataclass
class Node:
    """One node, with an agent."""

    agents: AgentStreams
    presence: ContactPresence
    bus: LinkedBus
    user: User

    async def open(self) -> AgentStream:
        user = self.user
        viewer = Viewer(user.rowid, user.id, user.name, user.generation, PROJECT, None)
        return await self.agents.open(viewer, None, lambda: None)

    def look(self, stream: AgentStream, contact: ContactKey | None, conversation: str = "cnv_1") -> None:
        """Report that the page shows a conversation of the contact, or none."""
        view = View(() if contact is None else (conversation,))
        added = self.agents.view(stream.id, self.user.rowid, PROJECT.rowid, view)
        if contact is not None:
            self.presence.show(stream.id, dict.fromkeys(added, contact))


@asynccontextmanager
async def nodes(store: InlineStore, *names: str) -> AsyncIterator[list[Node]]:
    """Yield running nodes, linked if there are several."""
    user = store.at_once(lambda tx: tx.insert_user("usr_eve", "eve@x.org", "eve", None, NOON))
    store.at_once(lambda tx: tx.insert_membership(PROJECT.organisation, user.rowid, "agent", NOON))
    buses: list[LinkedBus] = []
    async with trio.open_nursery() as nursery:
        made = []
        for name in names:
            bus = LinkedBus(buses)
            shared = bus if len(names) > 1 else None
            log = EventLog(store, 0, ring_events=100, ring_bytes=1 << 20)
            agents = AgentStreams(store, log, HandClock(), bus=shared, node=name)
            presence = ContactPresence(agents, shared, name)
            nursery.start_soon(agents.run)
            nursery.start_soon(presence.run)
            made.append(Node(agents, presence, bus, user))
        for node in made:
            node.bus.connect()
        yield made
        nursery.cancel_scope.cancel()


async def heard(stream: AgentStream) -> list[dict[str, Any]]:
    """Return the contacts' presence that a page gets within a second."""
    found: list[dict[str, Any]] = []
    with trio.move_on_after(1):
        while True:
            for each in (await stream.next()).ephemeral:
                event = orjson.loads(each.body)
                found += [event["data"]] if event["type"] == "contact.presence" else []
    return found


def shown(contact: ContactKey, *, online: bool, page: Page | None = None) -> dict[str, Any]:
    url = page and {"url": page.url, "title": page.title}
    return {"contactId": contact.contact, "online": online, "page": url}


async def test_page_gets_presence_with_its_view_and_after_each_change(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a") as (node,):
        looking, other = await node.open(), await node.open()
        node.look(looking, ADA)
        assert await heard(looking) == [shown(ADA, online=False)]
        node.presence.opened(ADA, CART)
        node.presence.opened(BOB, CART)
        assert await heard(looking) == [shown(ADA, online=True, page=CART)]
        node.presence.set_page(ADA, Page("https://shop.example/help"))
        (changed,) = await heard(looking)
        assert changed["page"] == {"url": "https://shop.example/help", "title": None}
        assert await heard(other) == []
        node.look(other, ADA, "cnv_2")
        assert await heard(other) == [changed]


async def test_contact_is_offline_some_seconds_after_the_last_stream(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a") as (node,):
        looking = await node.open()
        node.look(looking, ADA)
        for _ in range(2):
            node.presence.opened(ADA, None)
        await heard(looking)
        node.presence.closed(ADA)
        await trio.sleep(2 * OFFLINE_DELAY_S)  # virtual time: the mock clock jumps
        assert await heard(looking) == [], "another tab is open"
        node.presence.closed(ADA)
        await trio.sleep(OFFLINE_DELAY_S / 2)  # virtual time: the mock clock jumps
        node.presence.opened(ADA, None)
        await trio.sleep(2 * OFFLINE_DELAY_S)  # virtual time: the mock clock jumps
        assert await heard(looking) == [], "it was a reload"
        node.presence.closed(ADA)
        began = trio.current_time()
        while not (await looking.next()).ephemeral:
            pass
        assert OFFLINE_DELAY_S <= trio.current_time() - began < OFFLINE_DELAY_S + 1
        assert node.presence.view(ADA) == shown(ADA, online=False)


async def test_closed_view_gets_no_more_presence(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a") as (node,):
        looking = await node.open()
        node.look(looking, ADA)
        await heard(looking)
        node.look(looking, None)
        node.presence.opened(ADA, None)
        assert await heard(looking) == []
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert node.presence._viewed == {}


async def test_view_follows_the_merge_of_its_contact(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a") as (node,):
        looking, other = await node.open(), await node.open()
        node.look(looking, ADA)
        node.look(other, BOB, "cnv_2")
        node.presence.opened(BOB, CART)
        await heard(looking), await heard(other)
        node.presence.merged(ADA, BOB)
        assert await heard(looking) == [shown(BOB, online=True, page=CART)]
        node.presence.opened(ADA, CART)
        assert await heard(looking) == [], "the merged contact is shown nowhere"
        node.presence.closed(BOB)
        await trio.sleep(2 * OFFLINE_DELAY_S)  # virtual time: the mock clock jumps
        for each in (looking, other):
            assert (await heard(each))[-1] == shown(BOB, online=False)


async def test_views_of_all_nodes_follow_a_merge(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a", "b") as (here, there):
        looking = await here.open()
        here.look(looking, ADA)
        there.presence.opened(BOB, CART)
        await heard(looking)
        there.presence.merged(ADA, BOB)
        assert (await heard(looking))[-1] == shown(BOB, online=True, page=CART)


async def test_agent_gets_presence_of_a_contact_on_another_node(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a", "b") as (here, there):
        there.presence.opened(ADA, CART)
        there.presence.opened(BOB, CART)
        looking = await here.open()
        here.look(looking, ADA)
        received = await heard(looking)
        assert received[-1] == shown(ADA, online=True, page=CART)
        assert here.presence.view(BOB) == shown(BOB, online=False), "only viewed contacts are announced"
        await trio.sleep(120)  # virtual time: the mock clock jumps
        assert await heard(looking) == [], "the requests of that time keep it up to date"
        there.presence.closed(ADA)
        await trio.sleep(2 * OFFLINE_DELAY_S)  # virtual time: the mock clock jumps
        assert (await heard(looking))[-1] == shown(ADA, online=False)


async def test_presence_of_a_dead_node_expires_and_a_reconnect_restores_it(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a", "b") as (here, there):
        there.presence.opened(ADA, None)
        looking = await here.open()
        here.look(looking, ADA)
        assert (await heard(looking))[-1]["online"]
        there.bus.cut = True
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert (await heard(looking))[-1] == shown(ADA, online=False)
        there.bus.connect()
        here.bus.connect()
        assert (await heard(looking))[-1] == shown(ADA, online=True)


async def test_question_about_one_contact_asks_all_nodes(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a", "b") as (here, there):
        there.presence.opened(ADA, CART)
        assert await here.presence.ask(ADA) == shown(ADA, online=True, page=CART)
        began = trio.current_time()
        assert await here.presence.ask(BOB) == shown(BOB, online=False)
        assert 0 < trio.current_time() - began < 1
        assert await there.presence.ask(ADA) == shown(ADA, online=True, page=CART)


async def test_thousand_online_contacts_send_nothing_that_no_agent_views(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with nodes(inline_store, "a", "b") as (here, there):
        sent = len(there.bus.sent)
        for number in range(1_000):
            there.presence.opened(ContactKey(PROJECT.rowid, f"con_{number}"), CART)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        of_contacts = [each for each in there.bus.sent[sent:] if each[0] == "contacts"]
        assert of_contacts == []
        looking = await here.open()
        here.look(looking, ContactKey(PROJECT.rowid, "con_7"))
        assert (await heard(looking))[-1]["online"]
