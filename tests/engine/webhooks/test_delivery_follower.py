"""Deliveries committed by several nodes: each is sent once, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar, cast

import orjson
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from trio.testing import MockClock

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.ports import Advance, LogSegment, ProjectHead
from deskwire.engine.events.shared_log import SharedLog
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.ports import Commit
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.delivery_follower import DeliveryFollower
from deskwire.engine.webhooks.queue.backlog import Backlog
from deskwire.engine.webhooks.queue.outbox import Outbox
from deskwire.engine.webhooks.queue.retries import Retries

T = TypeVar("T")
SHIFT = 40
# Endpoints and their projects.
ENDPOINTS = {1: 1, 2: 1, 3: 1, 4: 2}


@dataclass
class Post:
    """The table of deliveries, and the deliveries sent."""

    rows: dict[int, Delivery] = field(default_factory=dict)
    pending: set[int] = field(default_factory=set)
    ends: dict[int, int] = field(default_factory=lambda: {1: 1 << SHIFT, 2: 2 << SHIFT})
    sent: list[Delivery] = field(default_factory=list)

    def commit(self, endpoints: Sequence[int], lane: int, *, again: bool = False) -> Commit:
        """Commit an event with a delivery to each of a project's endpoints."""
        project = ENDPOINTS[endpoints[0]]
        before, made = self.head(project), list[Delivery]()
        for endpoint in endpoints:
            self.ends[project] += 1
            position = self.ends[project]
            event = StoredEvent(position, f"evt_{position}", "message.created", project, lane, 1, b"{}")
            made.append(
                Delivery(position, f"dlv_{position}", endpoint, event, lane, 0, 0, 0, 0, redelivery=again)
            )
            self.rows[position] = made[-1]
            self.pending.add(position)
        return Commit((), made, frozenset(), advances=(Advance(before, self.head(project)),))

    def send(self, delivery: Delivery) -> None:
        self.sent.append(delivery)
        self.pending.discard(delivery.position)

    def head(self, project: int) -> ProjectHead:
        return ProjectHead(project, project << SHIFT, self.ends[project])

    def heads(self, projects: Sequence[int]) -> Sequence[ProjectHead]:
        return [self.head(project) for project in projects]

    def is_replaced(self, project: int, position: int, event_id: str) -> bool:
        return False

    def erasures(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        return [LogSegment(project, project << SHIFT, (), frozenset()) for project, _ in after]

    def waiting(self, endpoint: int, after: int, limit: int, *, again: bool) -> list[Delivery]:
        found = [self.rows[position] for position in sorted(self.pending) if position > after]
        return [row for row in found if (row.endpoint, row.redelivery) == (endpoint, again)][:limit]


class Workers:
    """The dispatcher's interface for deliveries, with real outboxes and no network."""

    def __init__(self, post: Post, rng: Random, memory: int) -> None:
        self.post = post
        self.rng = rng
        self.memory = memory
        self.outboxes: dict[int, Outbox] = {}

    def serve(self, endpoint: int) -> None:
        backlog = Backlog(1_000.0, 8, self.memory)
        self.outboxes[endpoint] = Outbox(self.memory, 4, Retries(self.memory, 1_000), backlog)

    @property
    def projects(self) -> set[int]:
        return {ENDPOINTS[endpoint] for endpoint in self.outboxes}

    def delivers_to(self, endpoint: int) -> bool:
        return endpoint in self.outboxes

    def note_rows(self, project: int, upto: int, *, again: bool = False) -> None:
        for endpoint, outbox in self.outboxes.items():
            if ENDPOINTS[endpoint] == project:
                outbox.note_rows(upto)
                if again:
                    outbox.backlog.note_redelivery()

    def note_redeliveries(self, endpoint: int) -> None:
        if endpoint in self.outboxes:
            self.outboxes[endpoint].backlog.note_redelivery()

    def restart_workers(self, project: int) -> None:
        for endpoint in [each for each in self.outboxes if ENDPOINTS[each] == project]:
            self.serve(endpoint)

    def forget(self, conversations: frozenset[int]) -> None:
        raise NotImplementedError

    def rewrite(self, events: object) -> None:
        raise NotImplementedError

    def commit_nowait(self, deliveries: Sequence[Delivery], erased: object, rewritten: object) -> None:
        for delivery in deliveries:
            if delivery.endpoint in self.outboxes:
                self.outboxes[delivery.endpoint].offer(delivery)

    async def work(self) -> None:
        """Read rows and send, as an endpoint's worker does; rows arrive a little later."""
        while True:
            for endpoint, outbox in [*self.outboxes.items()]:
                now = int(trio.current_time() * 1_000)
                if (batch := outbox.wants_batch(now)) is not None:
                    again = batch.part == "redeliveries"
                    rows = self.post.waiting(endpoint, batch.after, batch.limit, again=again)
                    await trio.sleep(self.rng.choice([0, 0.001, 0.05]))
                    outbox.end_batch(batch, rows, now, more=len(rows) == batch.limit)
                while self.outboxes.get(endpoint) is outbox:
                    delivery = outbox.take_next(now, trio.current_time())
                    if delivery is None:
                        break
                    self.post.send(delivery)
                    outbox.end(delivery)
            await trio.sleep(0.01)


@dataclass
class PostBus:
    """A bus whose messages the test delivers or loses."""

    listening: bool
    sent: list[tuple[str, bytes]] = field(default_factory=list)
    receivers: dict[str, Callable[[bytes], None]] = field(default_factory=dict)

    def send(self, kind: str, payload: bytes) -> None:
        self.sent.append((kind, payload))

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        self.receivers[kind] = receiver

    def connected(self, receiver: Callable[[], None]) -> None:
        pass


class Node:
    """A node: its workers and its follower."""

    def __init__(self, post: Post, rng: Random, memory: int, *, listening: bool) -> None:
        self.post = post
        self.failures = 0
        self.bus = PostBus(listening)
        self.workers = Workers(post, rng, memory)
        dispatcher: Any = self.workers
        store: Any = self
        self.deliveries = DeliveryFollower(dispatcher, self.bus)
        self.log = SharedLog(store, ring_events=10, ring_bytes=1_000)
        self.follower = Follower(store, self.log, self.bus, self.deliveries)
        self.unheard: list[Commit] = []

    async def read(self, query: Callable[[Any], T]) -> T:
        await trio.lowlevel.checkpoint()
        if self.failures:
            self.failures -= 1
            raise Unavailable("The database is gone.")
        found = query(cast(Any, self.post))
        await trio.sleep(0.001)
        return found

    def hear(self, commit: Commit) -> None:
        self.follower.commit_nowait(commit)
        self.deliveries.commit_nowait(commit)


async def live(rng: Random, nursery: trio.Nursery, *, moves: bool) -> None:
    post = Post()
    memory, listening = rng.choice([2, 8, 100]), rng.random() < 0.7
    nodes = [Node(post, rng, memory, listening=listening) for _ in range(2)]
    for node in nodes:
        nursery.start_soon(node.follower.run)
        nursery.start_soon(node.workers.work)
    for endpoint in ENDPOINTS:
        rng.choice(nodes).workers.serve(endpoint)
    for _ in range(150):
        match rng.choices(["commit", "hear", "carry", "move", "fail"], [12, 12, 6, int(moves), 1])[0]:
            case "commit":
                to = rng.choice([[1], [2, 3], [1, 2, 3], [3], [4]])
                rng.choice(nodes).unheard.append(post.commit(to, rng.randint(1, 3), again=rng.random() < 0.1))
            case "hear":
                node = rng.choice(nodes)
                if node.unheard:
                    node.hear(node.unheard.pop(rng.choice([0, 0, -1])))
            case "carry":
                to_, sender = rng.sample(nodes, 2)
                sent, sender.bus.sent = sender.bus.sent, []
                for kind, payload in rng.choice([sent, sent, [], [*sent, *reversed(sent)], sent[-1:]]):
                    to_.bus.receivers[kind](payload)
            case "move":
                old, new = rng.sample(nodes, 2)
                if old.workers.outboxes:
                    endpoint = rng.choice([*old.workers.outboxes])
                    del old.workers.outboxes[endpoint]
                    await trio.sleep(0.1)
                    new.workers.serve(endpoint)
            case "fail":
                rng.choice(nodes).failures = 3
        await trio.sleep(rng.choice([0, 0, 0.002, 0.05, 0.3]))
        if rng.random() < 0.02:
            await trio.sleep(6)
    for node in nodes:
        for commit in node.unheard:
            node.hear(commit)
    await trio.sleep(12)
    assert not post.pending, "all were sent, without a hint"
    positions = [delivery.position for delivery in post.sent]
    assert moves or len(positions) == len(set(positions)), "each once"
    first = {position: at for at, position in reversed([*enumerate(positions)])}
    for endpoint in ENDPOINTS:
        for lane in (1, 2, 3):
            mine = [
                row.position
                for row in post.rows.values()
                if (row.endpoint, row.ordering_key, row.redelivery) == (endpoint, lane, False)
            ]
            assert sorted(mine, key=first.__getitem__) == sorted(mine), "in the order of their conversation"


@given(st.integers(0, 1 << 30), st.booleans())
@settings(max_examples=40)
def test_deliveries_of_all_nodes_are_sent_once_and_in_order(seed: int, moves: bool) -> None:
    async def play() -> None:
        async with trio.open_nursery() as nursery:
            await live(Random(seed), nursery, moves=moves)
            nursery.cancel_scope.cancel()

    with capture_logs(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)
        patch.setattr("trio._core._run._r", Random(seed))
        trio.run(play, clock=MockClock(autojump_threshold=0))


async def test_a_redelivery_of_another_node_is_announced_at_once(autojump_clock: MockClock) -> None:
    post, rng = Post(), Random(1)
    here, there = (Node(post, rng, 100, listening=True) for _ in range(2))
    here.workers.serve(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.workers.work)
        await trio.sleep(1)
        there.hear(post.commit([1], 1, again=True))
        assert [(kind, orjson.loads(payload)) for kind, payload in there.bus.sent] == [("redeliveries", [1])]
        for kind, payload in there.bus.sent:
            here.bus.receivers[kind](payload)
        await trio.sleep(0.1)
        assert len(post.sent) == 1
        nursery.cancel_scope.cancel()


async def test_workers_restart_when_the_database_has_lost_deliveries(autojump_clock: MockClock) -> None:
    post, rng = Post(), Random(1)
    node = Node(post, rng, 100, listening=True)
    node.workers.serve(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.follower.run)
        nursery.start_soon(node.workers.work)
        for _ in range(3):
            node.hear(post.commit([1], 1))
        await trio.sleep(1)
        assert len(post.sent) == 3
        post.ends[1] -= 2
        with capture_logs():
            await trio.sleep(5)
        node.hear(post.commit([1], 2))
        await trio.sleep(1)
        assert post.sent[-1].ordering_key == 2
        nursery.cancel_scope.cancel()
