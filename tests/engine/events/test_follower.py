"""A node's log against the shared table: no event is skipped, duplicated or out of order, with and without hints."""

from __future__ import annotations

from random import Random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from trio.testing import MockClock

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.types import AgentsSource, Topic
from tests.engine.events.shared_table import FollowingReader, Node, SharedTable

CNV_11 = Topic(1, "conversation", "cnv_11")
SOURCES: list[int | Topic | AgentsSource] = [
    1,
    2,
    AgentsSource(1),
    AgentsSource(2),
    CNV_11,
    Topic(2, "conversation", "cnv_22"),
    Topic(1, "contact", "u1"),
]


class Life:
    """Two nodes over one table and their readers, with commits, hints and faults at random."""

    def __init__(self, rng: Random, nursery: trio.Nursery) -> None:
        self.rng = rng
        self.nursery = nursery
        self.table = SharedTable()
        listening = rng.random() < 0.7
        self.nodes = [
            Node(self.table, ring_events=rng.choice([2, 8, 100]), listening=listening, batch_size=8)
            for _ in "ab"
        ]
        self.readers: dict[FollowingReader, trio.CancelScope] = {}
        for node in self.nodes:
            nursery.start_soon(node.follower.run)

    async def live(self, steps: int) -> None:
        weights = {
            self.commit: 12,
            self.hear: 12,
            self.carry: 6,
            self.begin: 3,
            self.stop: 1,
            self.slow: 3,
            self.fail: 1,
        }
        for step in self.rng.choices([*weights], [*weights.values()], k=steps):
            step()
            await trio.sleep(self.rng.choice([0, 0, 0, 0.0005, 0.003, 0.05, 0.3]))
            if self.rng.random() < 0.02:
                await trio.sleep(self.rng.choice([1, 7, 15]))
        await self.end()

    def commit(self) -> None:
        rng, table, project = self.rng, self.table, self.rng.randint(1, 2)
        conversations = range(10 * project + 1, 10 * project + 9)
        erased = frozenset({rng.choice(conversations)} - table.erased if rng.random() < 0.1 else ())
        count = rng.choice([0, 1, 1, 2, 3, 20])
        made = [(number, rng.random() < 0.3) for number in rng.choices(conversations, k=count)]
        live = [each for each in made if each[0] not in table.erased | erased]
        rng.choice(self.nodes).unheard.append(table.commit(project, live, erased))

    def hear(self) -> None:
        """A node learns the outcome of one of its commits, usually the oldest."""
        node = self.rng.choice(self.nodes)
        if node.unheard:
            node.follower.commit_nowait(node.unheard.pop(self.rng.choice([0, 0, 0, -1])))

    def carry(self) -> None:
        """Deliver a node's messages to the other one: all, some, or some twice."""
        to, sender = self.rng.sample(self.nodes, 2)
        sent, sender.bus.sent = sender.bus.sent, []
        to.bus.deliver(self.rng.choice([sent, sent, [], [*sent, *reversed(sent)], sent[-1:]]))

    def begin(self) -> None:
        self.nursery.start_soon(self.follow, self.rng.choice(self.nodes), self.rng.choice(SOURCES))

    def stop(self) -> None:
        if self.readers:
            reader = self.rng.choice([*self.readers])
            self.readers.pop(reader).cancel()

    def slow(self) -> None:
        self.rng.choice(self.nodes).store.delays = [self.rng.random() * 0.4 for _ in range(6)]

    def fail(self) -> None:
        self.rng.choice(self.nodes).store.failures = self.rng.randint(1, 4)

    async def follow(self, node: Node, source: int | Topic | AgentsSource) -> None:
        try:
            await node.log.open(source)
        except Unavailable:
            return
        try:
            reader = FollowingReader(
                node, source, await node.log.newest(source if isinstance(source, int) else source.project)
            )
            self.readers[reader] = trio.CancelScope()
            with self.readers[reader]:
                await self.read(reader)
        except Unavailable:
            pass
        finally:
            node.log.close(source)

    async def read(self, reader: FollowingReader) -> None:
        log = reader.node.log
        while True:
            settled = log.settled(reader.source, reader.cursor)
            missed = [row for row in self.table.of(reader.source, reader.cursor) if row.position <= settled]
            assert not missed, "settled reports no event"
            try:
                if not await reader.turn(self.rng.randint(1, 5)):
                    await log.wait(reader.source, reader.cursor)
            except Unavailable:
                await trio.sleep(0.1)
            await trio.sleep(self.rng.choice([0, 0, 0.01, 0.5]))

    async def end(self) -> None:
        """Wait for both nodes to become current without any hint, and compare."""
        for node in self.nodes:
            node.store.failures, node.store.delays = 0, []
            while node.unheard:
                node.follower.commit_nowait(node.unheard.pop())
        await trio.sleep(5.5)
        for reader in self.readers:
            await self.compare(reader)
        for node in self.nodes:
            stored = {row.position for row in self.table.rows}
            gone = {event.position for event in node.held() if not event.internal} - stored
            assert not gone, f"{gone} is erased, and in memory"
            ends = {project: self.table.head(project).events for project in node.log.open_projects}
            assert dict(node.log.open_projects) == ends
            assert node.follower.missing_events == 0
            assert node.log.memory_size[1] == sum(len(event.body) for event in node.held())

    async def compare(self, reader: FollowingReader) -> None:
        stored = {row.position for row in self.table.of(reader.source, reader.start)}
        with trio.move_on_after(60):
            while not stored <= set(reader.found):  # noqa: ASYNC110  # virtual time
                await trio.sleep(1)
        assert reader.found == sorted(set(reader.found)), "each once and in order"
        lacking = stored - set(reader.found)
        assert not lacking, f"{reader.source} was not shown {lacking}"
        assert {row.position for row in self.table.history} >= set(reader.found)


@given(st.integers(0, 1 << 30))
@settings(max_examples=200)
def test_every_reader_of_every_node_has_each_event_once_and_in_order(seed: int) -> None:
    async def live() -> None:
        async with trio.open_nursery() as nursery:
            await Life(Random(seed), nursery).live(120)
            nursery.cancel_scope.cancel()

    with capture_logs(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)
        patch.setattr("trio._core._run._r", Random(seed))
        trio.run(live, clock=MockClock(autojump_threshold=0))
