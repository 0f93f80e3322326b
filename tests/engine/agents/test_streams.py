"""Streams of agents without HTTP: batches for readers, their timing, and cleanup (ADR 51)."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf

import orjson
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.accounts.people import User
from deskwire.engine.agents.presence import View, ephemeral_event
from deskwire.engine.agents.rights import Viewer
from deskwire.engine.agents.stream import AgentStream
from deskwire.engine.agents.streams import MAX_STREAMS_PER_USER, AgentStreams
from deskwire.engine.cluster.cluster import GRACE_PERIOD_S, REDIRECT_DELAY_S, Cluster, NoBus, SingleNode
from deskwire.engine.core.errors import NotFound, TooManyRequests, Unavailable
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.types import AgentsSource, EventDraft, StoredEvent
from deskwire.engine.ports import Transaction
from deskwire.http.stream.sse import HEARTBEAT_INTERVAL_S, AgentStreamBody
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, HandClock, InlineStore


@dataclass
class Office:
    """Streams over a store, with two agents."""

    store: InlineStore
    log: EventLog
    streams: AgentStreams
    people: list[User]
    dropped: list[str] = field(default_factory=list)

    def viewer(self, number: int = 0, session: str | None = None) -> Viewer:
        user = self.people[number]
        return Viewer(user.rowid, user.id, user.name, user.generation, PROJECT, session)

    async def open(
        self, number: int = 0, after: str | None = None, session: str | None = None
    ) -> AgentStream:
        user = self.people[number]
        return await self.streams.open(
            self.viewer(number, session), after, lambda: self.dropped.append(user.name)
        )

    def commit(self, *drafts: EventDraft) -> None:
        """Store and publish events."""
        made = [self.store.at_once(partial(_append, draft)) for draft in drafts]
        self.log.publish(made)


def _append(draft: EventDraft, tx: Transaction) -> StoredEvent:
    return tx.append_event(PROJECT, draft, None, NOON)


@asynccontextmanager
async def opened(
    store: InlineStore, most: int = 1_000, cluster: Cluster | None = None
) -> AsyncIterator[Office]:
    def hire(name: str) -> User:
        user = store.at_once(lambda tx: tx.insert_user(f"usr_{name}", f"{name}@x.org", name, None, NOON))
        store.at_once(lambda tx: tx.insert_membership(PROJECT.organisation, user.rowid, "agent", NOON))
        return user

    people = [hire("ada"), hire("ken")]
    log = EventLog(store, 0, ring_events=1_000, ring_bytes=1 << 20)
    async with trio.open_nursery() as nursery:
        bus = None if cluster is None else NoBus()
        streams = AgentStreams(store, log, HandClock(), streams_max=most, bus=bus, cluster=cluster)
        nursery.start_soon(streams.run)
        yield Office(store, log, streams, people)
        nursery.cancel_scope.cancel()


NOTE = EventDraft("note.created", None, {"n": 1})
SAID = EventDraft("contact.updated", None, {"n": 2})


async def test_a_reader_gets_public_and_internal_events_in_their_order(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        stream = await office.open()
        office.commit(SAID, NOTE, SAID)
        batch = await stream.next()
        assert [event.type for event in batch.events] == [SAID.type, NOTE.type, SAID.type]
        assert stream.lag == 0
        again = await office.open(after=batch.events[0].id)
        assert (await again.next()).events == batch.events[1:]


async def test_busy_project_wakes_a_reader_at_most_twenty_times_a_second(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        stream = await office.open()
        began, batches, seen = trio.current_time(), 0, 0

        async def write() -> None:
            for _ in range(1_000):
                office.commit(SAID)
                await trio.sleep(0.001)  # virtual time: the mock clock jumps

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            while seen < 1_000:
                batch = await stream.next()
                seen += len(batch.events)
                batches += bool(batch.events)
        assert batches <= 20 * (trio.current_time() - began) + 17, "64 at once, where there are more"


async def test_slow_reader_gets_newest_ephemeral_events_and_current_presence(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        slow, other = await office.open(0), await office.open(1)
        for number in range(100):
            office.streams.broadcast(PROJECT.rowid, ephemeral_event("x", {"n": number}))
            view = View((f"cnv_{number}",))
            office.streams.view(other.id, other.viewer.user, PROJECT.rowid, view)
            await trio.sleep(0.3)  # virtual time: the mock clock jumps
        batch = await slow.next()
        assert [orjson.loads(each.body)["data"]["n"] for each in batch.ephemeral] == list(range(68, 100))
        received = {each["id"]: each for each in office.streams.present(PROJECT.rowid, batch.present)}
        assert received["usr_ken"]["conversationIds"] == ["cnv_99"]


async def test_ephemeral_events_reach_their_recipients_only(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        ada, again, ken = await office.open(0), await office.open(0), await office.open(1)
        office.streams.view(ken.id, ken.viewer.user, PROJECT.rowid, View(("cnv_1",)))
        office.streams.view(again.id, ada.viewer.user, PROJECT.rowid, View(("cnv_1", "cnv_2")))
        pass_on, project = office.streams.broadcast, PROJECT.rowid
        pass_on(project, ephemeral_event("all", {}))
        pass_on(project, ephemeral_event("ken", {}), to_user=ken.viewer.user)
        pass_on(project, ephemeral_event("viewing", {}), viewing="cnv_1")
        pass_on(project, ephemeral_event("adas", {}), viewing="cnv_1", to_user=ada.viewer.user)
        pass_on(project, ephemeral_event("nobody", {}), viewing="cnv_3")
        pass_on(OTHER_PROJECT.rowid, ephemeral_event("others", {}))
        pass_on(OTHER_PROJECT.rowid, ephemeral_event("others", {}), to_user=ken.viewer.user)

        async def received(stream: AgentStream) -> list[str]:
            return [orjson.loads(each.body)["type"] for each in (await stream.next()).ephemeral]

        assert await received(ada) == ["all"]
        assert await received(again) == ["all", "viewing", "adas"]
        assert await received(ken) == ["all", "ken", "viewing"]
        assert office.streams.viewed(project, "cnv_1")
        office.streams.close(ken)
        office.streams.close(again)
        assert not office.streams.viewed(project, "cnv_1")


async def test_closed_or_failed_streams_leave_no_state(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        streams = [await office.open(number % 2) for number in range(6)]
        office.streams.view(streams[0].id, streams[0].viewer.user, PROJECT.rowid, View(("cnv_1",)))
        with trio.CancelScope() as scope:
            scope.cancel()
            await office.open()
        inline_store.read_failure = Unavailable("The disk is unavailable.")
        with pytest.raises(Unavailable):
            await office.open()
        assert len(office.streams) == 6
        for stream in streams:
            office.streams.close(stream)
        assert len(office.streams) == 0
        assert (office.streams._by_project, office.streams._by_user, office.streams._viewers) == ({}, {}, {})
        assert office.log.recent(AgentsSource(PROJECT.rowid), 0, 1) is None
        with pytest.raises(NotFound):
            office.streams.view(streams[0].id, streams[0].viewer.user, PROJECT.rowid, View())


async def test_stream_opened_beyond_the_limit_ends_with_too_many_streams(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store, most=MAX_STREAMS_PER_USER + 1) as office:
        for _ in range(MAX_STREAMS_PER_USER):
            await office.open(0)
        with pytest.raises(TooManyRequests):
            office.streams.check_room(office.viewer(0))
        assert (await (await office.open(0)).next()).bye == "too_many_streams"
        with pytest.raises(TooManyRequests, match="DESKWIRE_AGENT_STREAMS"):
            office.streams.check_room(office.viewer(1))


async def test_stream_ends_with_its_session_and_others_continue(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        mine, other = await office.open(session="ses_1"), await office.open(session="ses_2")
        office.streams.end_sessions(["ses_1"])
        assert (await mine.next()).bye == "session_ended"
        office.commit(NOTE)
        assert (await other.next()).events


async def test_failed_check_of_rights_is_retried(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        stream = await office.open(1)
        ken = office.people[1].rowid
        inline_store.at_once(lambda tx: tx.delete_membership(PROJECT.organisation, ken))
        inline_store.read_failure = Unavailable("The disk is unavailable.")
        office.streams.rights_changed_nowait()
        while (bye := (await stream.next()).bye) is None:
            pass
        assert bye == "permission_lost"


async def test_shutdown_drops_readers_that_do_not_take_the_goodbye(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        polite = await office.open(0)
        await office.open(1)
        office.streams.close_all()
        assert (await polite.next()).bye == "shutdown"
        office.streams.close(polite)
        began = trio.current_time()
        await office.streams.drain_streams()
        assert (office.dropped, trio.current_time() - began < 2) == (["ken"], True)
        assert (await (await office.open(0)).next()).bye == "shutdown", "it came later"


async def test_quiet_stream_sends_comments_and_ends_with_its_credential(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        until = trio.current_time() + 40

        async def good_for() -> float:
            return max(0.0, until - trio.current_time())

        pieces = AgentStreamBody(office.streams, office.open, good_for)
        assert b"event: hello" in await anext(pieces)
        came, began = [], trio.current_time()
        async for piece in pieces:
            came.append((round(trio.current_time() - began), piece.split(b"\n")[0]))
        quiet = [at for at, words in came if words.startswith(b":")]
        assert all(b - a <= HEARTBEAT_INTERVAL_S + 1 for a, b in itertools.pairwise([0, *quiet]))
        assert (len(quiet) >= 2, came[-1]) == (True, (40, b"event: bye"))
        await pieces.aclose()
        await pieces.aclose()
        await wait_all_tasks_blocked()
        assert len(office.streams) == 0


async def next_events(stream: AgentStream) -> Sequence[StoredEvent]:
    """Return the next stored events; earlier ephemeral events are skipped."""
    while not (batch := await stream.next()).events:
        pass
    return batch.events


class LosingCluster(SingleNode):
    """A node whose lease is valid until a time that the test sets."""

    def __init__(self) -> None:
        self.valid_until = inf
        self.turned = trio.Event()

    def set(self, valid_until: float) -> None:
        self.valid_until = valid_until
        self.turned.set()
        self.turned = trio.Event()

    async def until_valid(self) -> None:
        """See `Cluster.until_valid`."""
        while trio.current_time() >= self.valid_until:
            await self.turned.wait()


@pytest.mark.parametrize("lost_at", [4.5, -inf])
async def test_streams_end_after_their_node_was_long_without_its_lease(
    lost_at: float, inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    """Another node may be connected to the database, and heartbeats of a stream do not show that this node is not."""
    cluster = LosingCluster()
    async with opened(inline_store, cluster=cluster) as office:
        stream = await office.open()
        await trio.sleep(1)  # virtual time: the mock clock jumps
        cluster.set(lost_at)
        began = max(trio.current_time(), lost_at)
        assert office.streams.stalled == (lost_at == -inf)
        with pytest.raises(Unavailable) as refused:
            await next_events(stream)
        assert refused.value.reason == "out_of_touch"
        assert GRACE_PERIOD_S <= trio.current_time() - began <= GRACE_PERIOD_S + 1
        assert office.streams.counters.ended["out_of_touch"] == 1
        office.streams.close(stream)
        cluster.set(inf)
        again = await office.open()
        office.commit(SAID)
        assert await next_events(again)


async def test_streams_end_sooner_if_another_node_is_ready(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    cluster = LosingCluster()
    async with opened(inline_store, cluster=cluster) as office:
        stream = await office.open()
        office.streams.send_away_nowait()
        cluster.set(-inf)
        await trio.sleep(1.2)  # virtual time: the mock clock jumps
        office.streams.send_away_nowait()  # a load balancer notices only this late that no node is ready
        await trio.sleep(REDIRECT_DELAY_S)  # virtual time: the mock clock jumps
        assert not stream.lapsed
        office.streams.send_away_nowait()
        with pytest.raises(Unavailable):
            await next_events(stream)
        assert trio.current_time() < GRACE_PERIOD_S


async def test_streams_continue_after_a_lease_was_lost_for_a_moment(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    cluster = LosingCluster()
    async with opened(inline_store, cluster=cluster) as office:
        stream = await office.open()
        for _ in range(3):
            cluster.set(-inf)
            await trio.sleep(GRACE_PERIOD_S - 1.5)  # virtual time: the mock clock jumps
            cluster.set(inf)
            await trio.sleep(1)  # virtual time: the mock clock jumps
        office.commit(SAID)
        assert await next_events(stream)


async def test_stream_reads_the_end_of_its_credential_again_after_a_change_of_rights(
    inline_store: InlineStore, autojump_clock: MockClock
) -> None:
    async with opened(inline_store) as office:
        until = trio.current_time() + 3_600

        async def good_for() -> float:
            return max(0.0, until - trio.current_time())

        pieces = AgentStreamBody(office.streams, office.open, good_for)
        while not (await anext(pieces)).startswith(b":"):
            pass
        began = trio.current_time()
        until = began + 40  # as after a shorter limit of an organisation
        office.streams.rights_changed_nowait()
        came = [piece async for piece in pieces]
        assert (b"session_ended" in came[-1], round(trio.current_time() - began)) == (True, 40)
        await pieces.aclose()
