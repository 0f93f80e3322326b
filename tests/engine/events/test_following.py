"""The timing of a follower: at once after a local commit or a hint, otherwise at the next poll."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.ports import ProjectHead
from deskwire.engine.events.types import AgentsSource, StoredEvent, Topic
from tests.engine.events.shared_table import Node, SharedTable

CNV_1 = Topic(1, "conversation", "cnv_1")
FIRST = 1 << 40


@dataclass
class Deliveries:
    """A deliverer that records its calls."""

    positions: Mapping[int, int] = field(default_factory=dict)
    hints: list[ProjectHead] = field(default_factory=list)
    looks: list[ProjectHead] = field(default_factory=list)
    forgotten: set[int] = field(default_factory=set)
    rewritten: list[StoredEvent] = field(default_factory=list)

    def note_hints(self, heads: Iterable[ProjectHead]) -> None:
        self.hints += heads

    def note_heads(self, heads: Iterable[ProjectHead], before: Mapping[int, int]) -> None:
        self.looks += heads

    def forget(self, conversations: frozenset[int]) -> None:
        self.forgotten |= conversations

    def rewrite(self, events: Sequence[StoredEvent]) -> None:
        self.rewritten += events


@asynccontextmanager
async def following(*nodes: Node) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(node.follower.run)
        await wait_all_tasks_blocked()
        yield
        nursery.cancel_scope.cancel()


async def shown_after(node: Node, source: int | Topic | AgentsSource, after: int) -> tuple[float, list[int]]:
    """Return the time until a reader is woken, and the events that it reads."""
    began = trio.current_time()
    await node.log.wait(source, after)
    chunk = node.log.recent(source, after, 100)
    assert chunk is not None
    return trio.current_time() - began, [event.position - FIRST for event in chunk.events]


async def test_contiguous_local_commit_is_published_without_a_query(autojump_clock: MockClock) -> None:
    table = SharedTable()
    node = Node(table)
    async with following(node):
        await node.log.open(CNV_1)
        reads = node.store.reads
        node.follower.commit_nowait(table.commit(1, [(1, False), (1, True)]))
        assert await shown_after(node, CNV_1, FIRST) == (0, [1])
        assert (node.store.reads, node.log.position(1)) == (reads, FIRST + 2)


async def test_local_commit_after_a_gap_brings_the_missing_events(autojump_clock: MockClock) -> None:
    table = SharedTable()
    node = Node(table)
    async with following(node):
        await node.log.open(1)
        table.commit(1, [(1, False)])
        node.follower.commit_nowait(table.commit(1, [(1, False)]))
        assert await shown_after(node, 1, FIRST) == (0, [1, 2])


@pytest.mark.parametrize(("how", "seconds"), [("hint", 0.0), ("look", 5.0), ("no bus", 0.25)])
async def test_foreign_commit_is_published_after_a_hint_or_the_next_poll(
    how: str, seconds: float, autojump_clock: MockClock
) -> None:
    table = SharedTable()
    here, there = Node(table, listening=how != "no bus"), Node(table)
    async with following(here, there):
        await here.log.open(AgentsSource(1))
        there.follower.commit_nowait(table.commit(1, [(1, True), (2, False)]))
        await wait_all_tasks_blocked()
        if how == "hint":
            here.bus.deliver(there.bus.sent)
        assert await shown_after(here, AgentsSource(1), FIRST) == (seconds, [1, 2])


async def test_commit_during_the_opening_of_a_project_is_published_at_once(
    autojump_clock: MockClock,
) -> None:
    table = SharedTable()
    here, there = Node(table), Node(table)
    async with following(here, there), trio.open_nursery() as nursery:
        here.store.delays = [0.3]
        nursery.start_soon(here.log.open, 1)
        await trio.sleep(0.1)
        here.follower.commit_nowait(table.commit(1, [(1, False)]))
        there.follower.commit_nowait(table.commit(1, [(1, False)]))
        await trio.sleep(0.1)
        here.bus.deliver(there.bus.sent)
        await trio.sleep(0.1)
        assert await shown_after(here, 1, FIRST) == (0, [1, 2])


async def test_simultaneous_commits_send_one_hint_for_each_project(autojump_clock: MockClock) -> None:
    table = SharedTable()
    node = Node(table)
    async with following(node):
        for project in range(1, 131):
            for _ in range(3):
                node.follower.commit_nowait(table.commit(project, [(1, False)]))
        await wait_all_tasks_blocked()
        assert len(node.bus.sent) == 3, "sixty heads at most in each"
        there = Node(table)
        there.bus.deliver(node.bus.sent)
        assert there.follower.counters.hints == 130


async def test_reconnected_bus_triggers_a_poll(autojump_clock: MockClock) -> None:
    table = SharedTable()
    node = Node(table)
    async with following(node):
        await node.log.open(1)
        table.commit(1, [(1, False)])
        await trio.sleep(1)
        for received in node.bus.received:
            received()
        assert await shown_after(node, 1, FIRST) == (0, [1])


async def test_catch_up_waits_until_memory_is_current(autojump_clock: MockClock) -> None:
    table = SharedTable()
    node = Node(table, batch_size=2)
    async with following(node):
        await node.log.open(1)
        table.commit(1, [(1, False)] * 9)
        table.commit(1, [], frozenset({1}))
        table.commit(1, [(2, False)])
        await node.follower.catch_up()
        assert [event.position - FIRST for event in node.held()] == [11, 12], (
            "a deletion, and the later events"
        )
        node.store.failures = 1
        with pytest.raises(Unavailable):
            await node.follower.catch_up()


async def test_deliverer_is_notified_of_erasures_in_projects_without_readers(
    autojump_clock: MockClock,
) -> None:
    table = SharedTable()
    node, deliveries = Node(table), Deliveries({1: 0, 2: 0})
    store: Any = node.store
    node.follower = Follower(store, node.log, node.bus, deliveries, batch_size=2)
    table.commit(1, [(number, False) for number in range(1, 9)])
    table.commit(1, [], frozenset(range(1, 8)))
    async with following(node):
        await node.follower.catch_up()
        assert deliveries.forgotten == set(range(1, 8))
        assert deliveries.looks == [table.head(1), table.head(2)]
        reads = node.store.reads
        await trio.sleep(4.9)
        await node.follower.catch_up()
        assert node.store.reads == reads + 1, "the heads, and no erasures again"


async def test_concurrent_polls_apply_erasures_if_the_later_serves_more_projects(
    autojump_clock: MockClock,
) -> None:
    table = SharedTable()
    node, deliveries = Node(table), Deliveries({1: 0})
    store: Any = node.store
    node.follower = Follower(store, node.log, node.bus, deliveries)
    for project in (1, 2):
        table.commit(project, [], frozenset({project}))
    async with following(node), trio.open_nursery() as nursery:
        node.store.delays = [0.5, 0]  # the erasures come late
        nursery.start_soon(node.follower.catch_up)
        await trio.sleep(0.1)
        deliveries.positions = {1: 0, 2: 0}
        await node.follower.catch_up()
    assert deliveries.forgotten == {1, 2}


async def test_catch_up_returns_when_a_local_commit_fills_the_gap(
    autojump_clock: MockClock,
) -> None:
    table = SharedTable()
    node = Node(table)
    async with following(node), trio.open_nursery() as nursery:
        await node.log.open(1)
        made = table.commit(1, [(1, False)])
        node.store.delays = [0.1]
        with trio.fail_after(60):
            nursery.start_soon(node.follower.catch_up)
            await trio.sleep(0.05)
            node.store.failures = 1  # so that the local commit is applied before its events are read
            await trio.sleep(0.1)
            node.follower.commit_nowait(made)
            while nursery.child_tasks:  # noqa: ASYNC110  # virtual time
                await trio.sleep(1)


async def test_events_lost_by_the_database_are_evicted(autojump_clock: MockClock) -> None:
    table = SharedTable()
    node = Node(table)
    async with following(node):
        for source in (1, AgentsSource(1), CNV_1):
            await node.log.open(source)
        node.follower.commit_nowait(table.commit(1, [(1, False), (1, True), (1, False)]))
        del table.rows[1:]
        table.ends[1] = FIRST + 1
        await trio.sleep(5.1)
        assert (node.held(), node.log.memory_size, node.log.position(1)) == ([], (0, 0), FIRST + 1)
        node.follower.commit_nowait(table.commit(1, [(1, False)]))
        for source in (1, AgentsSource(1), CNV_1):
            assert await shown_after(node, source, FIRST + 1) == (0, [2])


async def test_unused_project_is_evicted(autojump_clock: MockClock) -> None:
    table = SharedTable()
    node = Node(table)
    async with following(node):
        for source in (1, CNV_1, AgentsSource(2)):
            await node.log.open(source)
        for project in (1, 2):
            node.follower.commit_nowait(table.commit(project, [(project, False)]))
        node.log.close(1)
        await trio.sleep(30)
        assert set(node.log.open_projects) == {1, 2}, "its conversation is still read"
        node.log.close(CNV_1)
        async with node.log.waiting(1):
            await trio.sleep(30)
            assert set(node.log.open_projects) == {1, 2}, "a reader waits"
        await trio.sleep(4)
        assert set(node.log.open_projects) == {1, 2}, "for readers that return soon"
        await trio.sleep(10)
        assert (set(node.log.open_projects), node.log.memory_size[0]) == ({2}, 1)


async def test_a_long_poll_of_a_project_that_was_not_open_misses_nothing(autojump_clock: MockClock) -> None:
    table = SharedTable()
    node = Node(table)
    async with following(node), trio.open_nursery() as nursery:
        chunk = await node.log.read(1, 0, 10)
        assert not chunk.events
        table.commit(1, [(1, False)])
        found: list[int] = []

        async def poll() -> None:
            upto = chunk.upto
            async with node.log.waiting(1):
                while len(found) < 2:
                    await node.log.wait(1, upto)
                    more = await node.log.read_after_wait(1, upto, 10)
                    found.extend(event.position - FIRST for event in more.events)
                    upto = more.upto

        nursery.start_soon(poll)
        await wait_all_tasks_blocked()
        assert found == [1]
        node.follower.commit_nowait(table.commit(1, [(2, False)]))
        await wait_all_tasks_blocked()
        assert found == [1, 2]
