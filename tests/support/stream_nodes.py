"""Several nodes over one store, in virtual time: leases that expire, nodes that stop, a bus that is unreliable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import pytest
import trio

from deskwire.engine.cluster.cluster import Node
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.ports import StreamConsumer
from tests.support.seeing import seen
from tests.support.streaming import CHANNEL, JumpStore, Stage, found_project, trio_ms

T = TypeVar("T")
LEASE_S = 5.0
BEAT_S = 1.0
MARGIN_S = 0.5


@dataclass(eq=False)
class Leases:
    """The leases of all nodes in the database, by its own clock, which is Trio's here.

    `given` has the end of each incarnation's lease; one that was found expired is `buried`.
    """

    given: dict[int, float] = field(default_factory=dict)
    buried: set[int] = field(default_factory=set)

    def is_live(self, incarnation: int) -> bool:
        if self.given.get(incarnation, 0.0) <= trio.current_time():
            self.buried.add(incarnation)
        return incarnation not in self.buried

    def join(self) -> int:
        incarnation = len(self.given) + 1
        self.given[incarnation] = trio.current_time() + LEASE_S
        return incarnation

    def renew(self, incarnation: int) -> bool:
        if not self.is_live(incarnation):
            return False
        self.given[incarnation] = trio.current_time() + LEASE_S
        return True


class NodeCluster:
    """One node's lease. While `stopped` it does nothing, and its clock goes on."""

    def __init__(self, leases: Leases, name: str) -> None:
        self._leases = leases
        self._running = trio.Event()
        self._running.set()
        self.node = Node(name, leases.join())
        self.size = 1
        self.live: Sequence[Node] = (self.node,)
        self.valid_until = trio.current_time() + LEASE_S - MARGIN_S

    async def running(self) -> None:
        """Return while the node is not stopped."""
        await self._running.wait()

    def stop(self) -> None:
        if self._running.is_set():
            self._running = trio.Event()

    def go_on(self) -> None:
        self._running.set()

    async def run(self) -> None:
        while True:
            await self.running()
            sent = trio.current_time()
            if not self._leases.renew(self.node.incarnation):
                self.node = Node(self.node.name, self._leases.join())
            self.valid_until = sent + LEASE_S - MARGIN_S
            await trio.sleep(BEAT_S)  # virtual time: the mock clock jumps

    async def until_valid(self) -> None:
        while trio.current_time() >= self.valid_until:  # noqa: ASYNC110  # virtual time: the mock clock jumps
            await trio.sleep(BEAT_S)  # virtual time: the mock clock jumps

    async def while_leader(self, work: Callable[[], Awaitable[object]]) -> None:
        await work()

    async def wait_for_all_nodes(self) -> None:
        return None


class NodeStore:
    """The store for one node: unreachable while the node is stopped."""

    def __init__(self, store: JumpStore, cluster: NodeCluster, nursery: trio.Nursery) -> None:
        self._store = store
        self._cluster = cluster
        self._nursery = nursery

    async def write(self, job: Callable[[Transaction], T]) -> T:
        await self._cluster.running()
        result = await self._store.write(job)
        await self._cluster.running()
        return result

    async def read(self, query: Callable[[Reader], T]) -> T:
        await self._cluster.running()
        result = await self._store.read(query)
        await self._cluster.running()
        return result

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        async def carry_out() -> None:
            try:
                outcome: T | Exception = await self.write(job)
            except Unavailable as error:
                outcome = error
            ended(outcome)

        self._nursery.start_soon(carry_out)


class PoorBus:
    """A bus that randomly loses, delays and duplicates messages."""

    def __init__(
        self, nursery: trio.Nursery, dice: Random, *, lost: float = 0.0, late_s: float = 0.0
    ) -> None:
        self._nursery = nursery
        self._dice = dice
        self._lost = lost
        self._late_s = late_s
        self._ends: list[BusEnd] = []

    def end(self, cluster: NodeCluster) -> BusEnd:
        self._ends.append(BusEnd(self, cluster))
        return self._ends[-1]

    def carry(self, sender: BusEnd, kind: str, payload: bytes) -> None:
        for receiver in self._ends:
            if receiver is not sender:
                for _ in range(self._dice.choice((1, 1, 1, 2))):
                    if self._dice.random() >= self._lost:
                        late_s = self._dice.random() * self._late_s
                        self._nursery.start_soon(receiver.take, kind, payload, late_s)


class BusEnd:
    """One node's end of the bus."""

    def __init__(self, bus: PoorBus, cluster: NodeCluster) -> None:
        self._bus = bus
        self._cluster = cluster
        self._receivers: dict[str, list[Callable[[bytes], None]]] = {}
        self.listening = True

    def connected(self, receiver: Callable[[], None]) -> None:
        """See `Bus.connected`; this one never reconnects."""

    def send(self, kind: str, payload: bytes) -> None:
        assert len(payload) <= 4_000
        self._bus.carry(self, kind, payload)

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        self._receivers.setdefault(kind, []).append(receiver)

    async def take(self, kind: str, payload: bytes, late_s: float) -> None:
        await trio.sleep(late_s)  # virtual time: the mock clock jumps
        await self._cluster.running()
        for receiver in self._receivers.get(kind, ()):
            receiver(payload)


@dataclass(eq=False)
class NodeStage(Stage):
    """A node: its hub over the shared store."""

    cluster: NodeCluster = field(kw_only=True)


async def node_stages(
    store: JumpStore,
    nursery: trio.Nursery,
    names: Sequence[str] = ("a", "b"),
    *,
    dice: Random | None = None,
    lost: float = 0.0,
    late_s: float = 0.0,
    **settings: Any,
) -> list[NodeStage]:
    """Return nodes over one store, whose hubs run in the nursery; each follows all commits immediately."""
    project = await store.write(found_project)
    leases, bus = Leases(), PoorBus(nursery, dice or Random(1), lost=lost, late_s=late_s)
    store.is_live = leases.is_live
    stages, logs = [], list[EventLog]()
    start = seen(store, lambda r: r.last_event_position())
    for name in names:
        cluster = NodeCluster(leases, name)
        own: Any = NodeStore(store, cluster, nursery)
        log = EventLog(own, start, ring_events=100, ring_bytes=10**6)
        hub = Hub(own, log, trio_ms, nodes=(cluster, bus.end(cluster)), **settings)
        nursery.start_soon(cluster.run)
        await nursery.start(hub.run)
        stages.append(NodeStage(own, log, hub, project, trio_ms, cluster=cluster))
        logs.append(log)

    def publish(events: list[StoredEvent]) -> None:
        for log in logs:
            log.publish(events)

    store.publish = publish
    return stages


@asynccontextmanager
async def nodes(store: JumpStore, names: str = "ab", **settings: Any) -> AsyncIterator[list[NodeStage]]:
    """Yield the stages of `node_stages`, which run until the block ends."""
    async with trio.open_nursery() as nursery:
        yield await node_stages(store, nursery, names, **settings)
        nursery.cancel_scope.cancel()


def row_of(store: JumpStore, stage: NodeStage, channel: str = CHANNEL) -> StreamConsumer:
    """Return the stored row of a channel, which must have one."""
    row = seen(store, lambda reader: reader.stream_consumer(stage.project.rowid, channel))
    assert row is not None
    return row


async def hold_unheard(store: JumpStore, stage: NodeStage, consumer_id: str) -> None:
    """Take the channel in a commit that succeeds, but whose outcome never arrives."""
    write = store.write

    async def unheard(job: object) -> None:
        await write(job)  # type: ignore[arg-type]
        raise Unavailable("The outcome is unknown.", code="outcome_unknown")

    store.write = unheard  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(Unavailable):
            await stage.hold(consumer_id)
    finally:
        store.write = write  # type: ignore[method-assign]
