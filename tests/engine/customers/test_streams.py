"""Customers' streams without HTTP: reads, shared rendering, limits and ends."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import orjson
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.cluster.cluster import GRACE_PERIOD_S, Cluster, SingleNode
from deskwire.engine.core.errors import TooManyRequests, Unavailable
from deskwire.engine.customers.presence import ContactKey, ContactPresence
from deskwire.engine.customers.stream import CustomerStream, RenderedEvents, StreamCustomer, rendered_event
from deskwire.engine.customers.streams import MAX_STREAMS_PER_SESSION, CustomerStreams
from deskwire.engine.events.log import NO_EVENT_ID, EventLog
from deskwire.engine.events.types import EphemeralEvent, EventDraft, StoredEvent, Topic
from deskwire.engine.ports import Transaction
from tests.support.builders import NOON, PROJECT, HandClock, InlineStore
from tests.support.linked_buses import LinkedBus

CHANNEL = "chn_01KZ00000000000000000000C1"


def visitor(number: int = 0, user: str = "visitor-1") -> StreamCustomer:
    """Return a visitor who has not written: the session is not stored."""
    return StreamCustomer(f"cse_{number}", b"%d" % number, PROJECT, CHANNEL, user)


def said(text: str, user: str = "visitor-1") -> EventDraft:
    """Return the event of a contact's conversation, with the fields that a customer's view needs."""
    conversation = {"id": "cnv_1", "title": text, "contact": {"id": "con_1", "userId": user}}
    return EventDraft("conversation.updated", None, {"conversation": conversation, "changed": ["title"]})


@dataclass
class Shop:
    """Streams over a store with a channel."""

    store: InlineStore
    log: EventLog
    streams: CustomerStreams
    rendered: list[bytes]
    dropped: list[str] = field(default_factory=list)

    async def open(self, customer: StreamCustomer | None = None, after: str | None = None) -> CustomerStream:
        customer = customer or visitor()
        return await self.streams.open(customer, after, lambda: self.dropped.append(customer.session))

    def commit(self, *drafts: EventDraft) -> list[StoredEvent]:
        """Store and publish events."""
        made = [self.store.at_once(partial(_append, draft)) for draft in drafts]
        self.log.publish(made)
        return made

    async def titles(self, stream: CustomerStream) -> list[str]:
        """Return the titles in the stream's next batch, as the customer sees them."""
        shown = [self.streams.rendered(stream, event) for event in (await stream.next()).events]
        return [orjson.loads(each)["data"]["conversation"]["title"] for each in shown if each is not None]


def _append(draft: EventDraft, tx: Transaction) -> StoredEvent:
    return tx.append_event(PROJECT, draft, None, NOON)


def store_channel(store: InlineStore) -> None:
    columns = {
        "id": CHANNEL,
        "project": PROJECT.rowid,
        "type": "widget",
        "name": "Shop",
        "enabled": 1,
        "origins": "[]",
        "identity_mode": "optional",
        "public_keys": "[]",
        "visitors_allowed": 1,
        "ask": "[]",
        "look": "{}",
        "native": 0,
        "sealed_secret": b"",
        "secret_tail": "",
        "created_at": NOON,
        "updated_at": NOON,
    }
    marks = ", ".join("?" * len(columns))
    sql = f"INSERT INTO channels ({', '.join(columns)}) VALUES ({marks})"
    store.at_once(lambda tx: tx.conn.execute(sql, tuple(columns.values())))  # type: ignore[attr-defined]


def change_channel(store: InlineStore, change: str) -> None:
    store.at_once(lambda tx: tx.conn.execute(f"UPDATE channels SET {change}"))  # type: ignore[attr-defined]


@asynccontextmanager
async def opened(
    store: InlineStore, most: int = 1_000, bus: Any = None, cluster: Cluster | None = None, ring: int = 1_000
) -> AsyncIterator[Shop]:
    log = EventLog(store, 0, ring_events=ring, ring_bytes=1 << 20)
    rendered: list[bytes] = []

    def render(body: bytes) -> bytes:
        rendered.append(body)
        return rendered_event(body)

    async with trio.open_nursery() as nursery:
        presence = ContactPresence(AgentStreams(store, log, HandClock()), bus, "a")
        streams = CustomerStreams(
            store, log, presence, HandClock(), render, streams_max=most, bus=bus, cluster=cluster
        )
        nursery.start_soon(streams.run)
        yield Shop(store, log, streams, rendered)
        nursery.cancel_scope.cancel()


@pytest.fixture
def shop_store(inline_store: InlineStore) -> InlineStore:
    """A store with a channel."""
    store_channel(inline_store)
    return inline_store


async def test_event_is_rendered_once_for_all_tabs(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(shop_store) as shop:
        tabs = [await shop.open(visitor(number)) for number in range(8)]
        shop.commit(said("one"), said("two"))
        for tab in tabs:
            assert await shop.titles(tab) == ["one", "two"]
        assert len(shop.rendered) == 2


async def test_redacted_event_is_rendered_again(shop_store: InlineStore) -> None:
    rendered = RenderedEvents(lambda body: b"view of " + body)
    event = StoredEvent(1, "evt_1", "x", 1, 1, 1, b"secret")
    redacted = StoredEvent(1, "evt_1", "x", 1, 1, 1, b"******")
    assert rendered.rendered(event, shared=True) == b"view of secret"
    assert rendered.rendered(redacted, shared=True) == b"view of ******"


async def test_visitors_stream_gets_the_first_message_and_presence_begins(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(shop_store) as shop:
        stream = await shop.open()
        assert shop.streams.presence.view(ContactKey(PROJECT.rowid, "con_1"))["online"] is False
        shop.commit(said("first"))
        assert await shop.titles(stream) == ["first"]
        assert shop.streams.presence.view(ContactKey(PROJECT.rowid, "con_1"))["online"] is True


async def test_returning_stream_reads_missed_events_from_the_table(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(shop_store) as shop:
        stream = await shop.open()
        (first,) = shop.commit(said("one"))
        await stream.next()
        shop.streams.close(stream)
        shop.commit(said("of another", "u2"), said("two"))
        again = await shop.open(after=first.id)
        assert (again.start.resumed_after, again.start.gap) == (first.id, False)
        assert shop.log.recent(Topic(PROJECT.rowid, "contact", "visitor-1"), 0, 9) is None


async def test_closed_and_failed_streams_leave_no_state(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(shop_store) as shop:
        streams = [await shop.open(visitor(number % 2)) for number in range(6)]
        with trio.CancelScope() as scope:
            scope.cancel()
            await shop.open()
        shop_store.read_failure = Unavailable("The disk is unavailable.")
        with pytest.raises(Unavailable):
            await shop.open()
        assert len(shop.streams) == 6
        for stream in streams:
            shop.streams.close(stream)
        assert (len(shop.streams), shop.streams._by_session, shop.streams._by_topic) == (0, {}, {})
        assert shop.streams._shares.taken == 0
        assert shop.log.recent(Topic(PROJECT.rowid, "contact", "visitor-1"), 0, 1) is None


async def test_session_has_a_maximum_of_streams_and_long_polls(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(shop_store) as shop:
        for _ in range(MAX_STREAMS_PER_SESSION):
            await shop.open()
        with pytest.raises(TooManyRequests, match="10"):
            shop.streams.check_room(visitor())
        assert (await (await shop.open()).next()).bye == "too_many_streams"
        shop.streams.check_room(visitor(1))


@pytest.mark.parametrize(
    "change", ["enabled = 0", "removed_at = 1", "visitors_allowed = 0", "identity_mode = 'required'"]
)
async def test_check_ends_streams_that_the_channel_refuses(
    shop_store: InlineStore, autojump_clock: MockClock, change: str
) -> None:
    async with opened(shop_store) as shop:
        stream = await shop.open()
        change_channel(shop_store, change)
        shop.streams.check_sessions_nowait()
        began = trio.current_time()
        assert (await stream.next()).bye == "session_ended"
        assert trio.current_time() - began < 1
        assert (await (await shop.open()).next()).bye == "session_ended", "it opened afterwards"


async def test_failed_check_of_sessions_is_retried(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(shop_store) as shop:
        stream = await shop.open()
        change_channel(shop_store, "enabled = 0")
        shop_store.read_failure = Unavailable("The disk is unavailable.")
        shop.streams.check_sessions_nowait()
        assert (await stream.next()).bye == "session_ended"


async def test_session_ended_on_one_node_ends_streams_on_the_others(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    buses: list[LinkedBus] = []
    one, other = LinkedBus(buses), LinkedBus(buses)
    async with opened(shop_store, bus=one) as here, opened(shop_store, bus=other) as there:
        streams = [await there.open(visitor(number)) for number in range(3)]
        here.streams.end_sessions([f"cse_{number}" for number in range(200)])
        assert [(await each.next()).bye for each in streams] == ["session_ended"] * 3


async def test_node_without_its_lease_ends_streams_without_a_goodbye(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    class Unsure(SingleNode):
        valid_until = inf

        async def until_valid(self) -> None:
            await trio.sleep_forever()

    cluster, buses = Unsure(), list[LinkedBus]()
    async with opened(shop_store, bus=LinkedBus(buses), cluster=cluster) as shop:
        stream = await shop.open()
        cluster.valid_until = 0.0
        assert shop.streams.stalled == 1
        began = trio.current_time()
        with pytest.raises(Unavailable):
            await stream.next()
        assert trio.current_time() - began <= GRACE_PERIOD_S + 2
        assert shop.streams.counters.ended["out_of_touch"] == 1


async def test_shutdown_ends_streams_and_drops_readers_that_do_not_read(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(shop_store) as shop:
        polite = await shop.open(visitor(1))
        await shop.open(visitor(2))
        shop.streams.close_all()
        assert (await polite.next()).bye == "shutdown"
        shop.streams.close(polite)
        await shop.streams.drain_streams()
        assert shop.dropped == ["cse_2"]


async def test_typing_of_an_agent_reaches_the_contacts_streams(
    shop_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(shop_store) as shop:
        mine, other = await shop.open(), await shop.open(visitor(1, "u2"))
        data = {"conversationId": "cnv_1", "agent": {"id": "usr_1", "name": "Eve"}}
        event = partial(
            EphemeralEvent,
            "evt_1",
            "agent.typing.started",
            PROJECT.rowid,
            1,
            "cnv_1",
            "visitor-1",
            orjson.dumps({"data": data}),
        )
        shop.streams.offer_ephemeral(event(internal=True))
        shop.streams.offer_ephemeral(event())
        (passing,) = (await mine.next()).ephemeral
        shown = {"conversationId": "cnv_1", "agent": {"name": "Eve"}}
        assert orjson.loads(passing.body) == {"type": "agent.typing.started", "data": shown}
        with trio.move_on_after(1) as nothing:
            await other.next()
        assert nothing.cancelled_caught


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), ring=st.sampled_from([1, 8, 1_000]))
def test_tabs_that_reconnect_at_random_miss_and_repeat_nothing(
    seed: int, ring: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tabs read, disconnect after any batch, and continue after their last id while events are committed."""
    store = InlineStore(tmp_path_factory.mktemp("shop"))
    store_channel(store)
    dice = random.Random(seed)

    async def life() -> None:
        async with opened(store, ring=ring) as shop:
            committed: list[str] = []
            tabs: list[tuple[CustomerStream, list[str]]] = [
                (await shop.open(visitor(number), NO_EVENT_ID), []) for number in range(3)
            ]
            for step in range(60):
                if dice.random() < 0.6:
                    draft = said(f"{step}", dice.choice(["visitor-1", "another"]))
                    (event,) = shop.commit(draft)
                    if draft.data["conversation"]["contact"]["userId"] == "visitor-1":
                        committed.append(event.id)
                number = dice.randrange(3)
                stream, seen = tabs[number]
                if dice.random() < 0.4:
                    seen += [each.id for each in await stream.read()]
                elif dice.random() < 0.3:
                    shop.streams.close(stream)
                    again = await shop.open(visitor(number), seen[-1] if seen else NO_EVENT_ID)
                    assert not again.start.gap
                    tabs[number] = again, seen
            for stream, seen in tabs:
                while more := await stream.read():
                    seen += [each.id for each in more]
                assert seen == committed

    try:
        trio.run(life, clock=MockClock(autojump_threshold=0))
    finally:
        store.close()
