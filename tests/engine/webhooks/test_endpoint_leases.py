"""Which of several nodes delivers to an endpoint, when nodes come, go or stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from deskwire.engine.cluster.cluster import Node
from deskwire.engine.cluster.membership import LEASE_DURATION_S, ClusterMembership
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.endpoint_leases import EndpointLeases, preferred_node
from deskwire.engine.webhooks.http.address import AddressPolicy, IPAddress
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitRule
from deskwire.engine.webhooks.signature import new_secret
from tests.support.builders import PROJECT, InlineStore
from tests.support.nodes import ANode, Wires, advance_epoch, database_clock, with_clock
from tests.support.sockets.receivers import SECRET, Receiver, Receivers, answering, resolving

WORKING = answering("204 No Content")


class Watched:
    """A node's view of its lease; it fails when another node's attempt starts."""

    def __init__(self, membership: ClusterMembership, store: InlineStore) -> None:
        self._membership = membership
        self._store = store
        self.begun = 0
        self.superseded = 0

    @property
    def valid_until(self) -> float:
        until = self._membership.valid_until
        if trio.current_time() < until:
            self.begun += 1
            holders = self._store.connection.execute("SELECT incarnation FROM couriers").fetchall()
            self.superseded += all(each != (self.node.incarnation,) for each in holders)
        return until

    @property
    def node(self) -> Node:
        return self._membership.node

    @property
    def size(self) -> int:
        return self._membership.size

    @property
    def live(self) -> Sequence[Node]:
        return self._membership.live

    async def until_valid(self) -> None:
        await self._membership.until_valid()

    async def while_leader(self, work: Callable[[], Awaitable[object]]) -> None:
        await self._membership.while_leader(work)

    async def wait_for_all_nodes(self) -> None:
        await self._membership.wait_for_all_nodes()


class Deliverer(ANode):
    """A node that delivers."""

    def __init__(self, name: str, store: InlineStore, wires: Wires) -> None:
        super().__init__(name, store, wires)
        self.taking = trio.CancelScope()
        self.lookup_s = 0.0
        self.watched = Watched(self.membership, store)
        self.dispatcher = Dispatcher(
            self.way,
            database_clock,
            Encryption(Secrets(SECRET)),
            AddressPolicy(allow_private=True),
            resolver=self._look_up,
            retry_delays_s=(1.0, 2.0, 4.0),
            rule=CircuitRule(20, 3.0),
            cluster=self.watched,
        )
        self.leases = EndpointLeases(
            self.way, self.way, self.dispatcher, self.membership, self.bus, database_clock
        )
        self.membership.on_lease_lost(self.leases.stop_all)
        self.membership.on_nodes_changed(self.leases.wake)
        self.membership.on_invalidate(self.leases.reconcile)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as leases:
            await leases.start(self.membership.run)
            async with trio.open_nursery() as nursery:
                await nursery.start(self.dispatcher.run)
                nursery.start_soon(self._take_and_let_go)
                task_status.started()
                await trio.sleep_forever()

    async def _look_up(self, host: str, port: int) -> Sequence[IPAddress]:
        await trio.sleep(self.lookup_s)  # virtual time: the mock clock jumps
        return await resolving()(host, port)

    async def _take_and_let_go(self) -> None:
        with self.taking:
            await self.leases.run()


class Nodes:
    """Nodes with one store, and their commits."""

    def __init__(self, store: InlineStore, nursery: trio.Nursery) -> None:
        self.store = with_clock(store)
        self.wires = Wires()
        self.all: list[Deliverer] = []
        self._nursery = nursery

    async def start(self, *names: str) -> list[Deliverer]:
        for name in names:
            node = Deliverer(name, self.store, self.wires)
            await self._nursery.start(node.run)
            self.all.append(node)
        return self.all

    async def endpoint(self, receiver: Receiver, number: int = 1) -> Endpoint:
        sealed, at = Encryption(Secrets(SECRET)).seal(new_secret()), database_clock()
        new = Endpoint(0, f"whk_{number}", PROJECT.rowid, receiver.url, frozenset(), sealed, "tail", at, at)
        stored = await self.store.write(lambda tx: tx.insert_endpoint(new))
        self.all[0].leases.change(stored)
        return stored

    async def send(self, number: int) -> Sequence[Delivery]:
        """Commit an event of a new conversation; all running nodes are notified."""

        def job(tx: Transaction) -> Sequence[Delivery]:
            event = tx.append_event(
                PROJECT, EventDraft("message.created", number, {}), 100 + number, database_clock()
            )
            return [
                tx.insert_delivery(each.rowid, event, 100 + number, None, database_clock())
                for each in tx.routed_endpoints(PROJECT.rowid)
                if each.status == "enabled"
            ]

        made = await self.store.write(job)
        for node in self.all:
            if not node.bus.cut:
                node.dispatcher.commit_nowait(made)
        return made

    async def releasing(self, receiver: Receiver) -> tuple[Deliverer, Deliverer, Sequence[Endpoint]]:
        """Start a node with 12 endpoints, then another one.

        Returns while the first slowly releases its share.
        """
        (a,) = await self.start("a")
        endpoints = [await self.endpoint(receiver, number) for number in range(12)]
        await trio.sleep(2)
        a.way.delay_s = 0.3
        _, b = await self.start("b")
        while all(a.dispatcher.delivers_to(each.rowid) for each in endpoints):  # noqa: ASYNC110  # virtual time
            await trio.sleep(0.1)
        return a, b, endpoints

    def holder(self, endpoint: Endpoint) -> Deliverer:
        (found,) = [node for node in self.all if node.dispatcher.delivers_to(endpoint.rowid)]
        return found

    def other(self, endpoint: Endpoint) -> Deliverer:
        holder = self.holder(endpoint)
        return next(node for node in self.all if node is not holder)

    def statuses(self) -> list[str]:
        rows = self.store.connection.execute("SELECT status FROM deliveries ORDER BY position")
        return [row[0] for row in rows]

    @property
    def superseded(self) -> int:
        return sum(node.watched.superseded for node in self.all)


@pytest.fixture
def nodes(inline_store: InlineStore, nursery: trio.Nursery) -> Nodes:
    return Nodes(inline_store, nursery)


async def test_each_endpoint_is_delivered_to_by_one_node_and_all_have_some(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    await nodes.start("a", "b", "c")
    receiver = await receivers(WORKING)
    endpoints = [await nodes.endpoint(receiver, number) for number in range(12)]
    await trio.sleep(3)
    assert all(nodes.holder(each) for each in endpoints)
    assert all(node.leases.held >= 1 for node in nodes.all)
    await nodes.send(1)
    await receiver.wait(12)
    await trio.sleep(1)
    assert nodes.statuses() == ["delivered"] * 12


async def test_a_new_node_acquires_its_share_from_the_others(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    await nodes.start("a")
    receiver = await receivers(WORKING)
    endpoints = [await nodes.endpoint(receiver, number) for number in range(12)]
    await trio.sleep(2)
    assert nodes.all[0].leases.held == 12
    await nodes.start("b")
    await trio.sleep(3)
    assert sum(node.leases.held for node in nodes.all) == 12
    assert nodes.all[1].leases.held >= 2
    for endpoint in endpoints:
        wished = preferred_node(endpoint.rowid, nodes.all[0].membership.live)
        assert nodes.holder(endpoint).membership.node == wished
    await nodes.send(1)
    await receiver.wait(12)


async def test_another_node_takes_over_within_a_lease_from_a_silent_stopped_one(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    await nodes.start("a", "b")
    receiver = await receivers(WORKING)
    endpoint = await nodes.endpoint(receiver)
    await trio.sleep(6)
    stopped = nodes.holder(endpoint)
    await nodes.send(1)
    await receiver.wait(1)
    await trio.sleep(0.5)
    stopped.stop()
    began = trio.current_time()
    await nodes.send(2)
    await receiver.wait(2)
    assert trio.current_time() - began <= LEASE_DURATION_S + 1.2
    for number in range(3, 8):
        await nodes.send(number)
    await receiver.wait(7)
    stopped.go_on()
    await trio.sleep(10)
    assert nodes.holder(endpoint) is stopped, "it is taken back with another generation"
    await nodes.send(8)
    await receiver.wait(8)
    await trio.sleep(1)
    assert set(nodes.statuses()) == {"delivered"}
    assert len(receiver.requests) == 8
    assert nodes.superseded == 0
    (generation,) = nodes.store.connection.execute("SELECT generation FROM couriers").fetchone()
    assert generation == 3


async def test_node_without_its_database_begins_no_attempt_after_its_lease(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    failing = answering("500 Internal Server Error")
    await nodes.start("a", "b")
    receiver = await receivers(failing)
    endpoint = await nodes.endpoint(receiver)
    await trio.sleep(6)
    holder = nodes.holder(endpoint)
    await nodes.send(1)
    await receiver.wait(1)
    await trio.sleep(0.2)  # the retry is due in a second, from memory
    holder.stop()
    begun = holder.watched.begun
    await trio.sleep(LEASE_DURATION_S - 0.4)
    last = holder.watched.begun
    await trio.sleep(20)
    assert holder.watched.begun == last <= begun + 2, "asked before it connects, and when it has"
    assert nodes.superseded == 0


async def test_node_whose_lease_ends_while_it_connects_sends_nothing(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    await nodes.start("a", "b")
    receiver = await receivers(WORKING)
    endpoint = await nodes.endpoint(receiver)
    await trio.sleep(6)
    holder = nodes.holder(endpoint)
    holder.lookup_s = LEASE_DURATION_S - 0.2
    holder.stop()
    holder.bus.cut = False  # so that it is notified of the commit
    await nodes.send(1)
    await trio.sleep(LEASE_DURATION_S + 3)
    assert len(receiver.requests) == 1
    assert nodes.statuses() == ["delivered"], "by the other node"
    holder.go_on()
    await trio.sleep(5)
    assert len(receiver.requests) == 1


async def test_a_result_of_a_superseded_courier_is_not_stored(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    answer = trio.Event()

    async def slow(stream: trio.abc.Stream, request: object) -> None:
        await answer.wait()
        await stream.send_all(b"HTTP/1.1 204 No Content\r\n\r\n")

    await nodes.start("a")
    receiver = await receivers(slow)
    endpoint = await nodes.endpoint(receiver)
    await trio.sleep(2)
    await nodes.send(1)
    await receiver.wait(1)
    await nodes.store.write(
        lambda tx: tx.conn.execute("UPDATE couriers SET generation = generation + 1")  # type: ignore[attr-defined]
    )
    answer.set()
    await trio.sleep(0.3)
    assert nodes.statuses() == ["pending"]
    await trio.sleep(3)
    assert nodes.holder(endpoint)
    assert nodes.statuses() == ["delivered"], "by the courier with the new generation"


@pytest.mark.parametrize("again", range(12))  # the order of tasks is random
async def test_a_superseded_worker_ends_without_a_failure(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock, again: int
) -> None:
    answer = trio.Event()

    async def slow(stream: trio.abc.Stream, request: object) -> None:
        await answer.wait()
        await stream.send_all(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def keep_sending() -> None:
        for number in range(2, 2_000):
            await nodes.send(number)
            await trio.lowlevel.checkpoint()

    await nodes.start("a")
    receiver = await receivers(slow)
    await nodes.endpoint(receiver)
    await trio.sleep(2)
    await nodes.send(1)
    await receiver.wait(1)
    await nodes.store.write(
        lambda tx: tx.conn.execute("UPDATE couriers SET generation = generation + 1")  # type: ignore[attr-defined]
    )
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_sending)
            answer.set()
            while not logs:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert [each["event"] for each in logs] == ["delivery.superseded"]


async def test_change_at_any_node_reaches_the_courier_with_or_without_a_hint(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    await nodes.start("a", "b")
    old, new = await receivers(WORKING), await receivers(WORKING)
    endpoint = await nodes.endpoint(old)
    await trio.sleep(6)
    moved = replace(endpoint, url=new.url, updated_at=database_clock())
    await nodes.store.write(lambda tx: tx.save_endpoint(moved))
    nodes.other(endpoint).leases.change(moved)
    await trio.sleep(0.1)
    await nodes.send(1)
    await new.wait(1)
    nodes.wires.lost = True
    back = replace(endpoint, updated_at=database_clock() + 1)
    await nodes.store.write(lambda tx: tx.save_endpoint(back))
    nodes.other(endpoint).leases.change(back)
    await trio.sleep(1.5)
    await nodes.send(2)
    await old.wait(1)
    assert (len(old.requests), len(new.requests)) == (1, 1)


async def test_a_removed_endpoint_gets_nothing_after_the_barrier(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    await nodes.start("a", "b")
    receiver = await receivers(answering("500 Internal Server Error"))
    endpoint = await nodes.endpoint(receiver)
    await trio.sleep(6)
    await nodes.send(1)
    await receiver.wait(1)
    nodes.wires.lost = True
    other = nodes.other(endpoint)

    def remove(tx: Transaction) -> None:
        tx.save_endpoint(replace(endpoint, status="removed"))
        advance_epoch(tx)

    await nodes.store.write(remove)
    other.leases.remove(endpoint.rowid)
    await other.membership.wait_for_all_nodes()
    sent = len(receiver.requests)
    assert not any(node.dispatcher.delivers_to(endpoint.rowid) for node in nodes.all)
    await trio.sleep(30)
    assert len(receiver.requests) == sent
    assert nodes.statuses() == []


async def test_a_first_result_is_known_at_a_node_that_does_not_deliver(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    await nodes.start("a", "b")
    receiver = await receivers(WORKING)
    endpoint = await nodes.endpoint(receiver)
    await trio.sleep(6)
    (made,) = await nodes.send(1)
    with trio.fail_after(1):
        await nodes.other(endpoint).leases.first_result(made, 10)
    assert nodes.statuses() == ["delivered"]


async def test_an_open_circuit_moves_with_the_endpoint_and_any_node_can_probe(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    await nodes.start("a", "b")
    receiver = await receivers(answering("500 Internal Server Error"))
    endpoint = await nodes.endpoint(receiver)
    await trio.sleep(6)
    for number in range(1, 40):
        await nodes.send(number)
    await trio.sleep(20)
    holder = nodes.holder(endpoint)
    assert holder.dispatcher.circuits()["open"] == 1
    nodes.other(endpoint).leases.probe(endpoint.rowid, None)
    sent = len(receiver.requests)
    await trio.sleep(0.5)
    assert len(receiver.requests) == sent + 1
    holder.stop()
    await trio.sleep(LEASE_DURATION_S + 3)
    taken_over = next(node for node in nodes.all if node is not holder)
    assert taken_over.dispatcher.circuits()["open"] == 1
    assert nodes.superseded == 0


async def test_a_removal_during_a_release_affects_no_other_endpoint(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(WORKING)
    a, _, endpoints = await nodes.releasing(receiver)
    a.leases.remove(next(each.rowid for each in endpoints if not a.dispatcher.delivers_to(each.rowid)))
    a.leases.stop_all()
    await trio.sleep(3)
    for endpoint in endpoints:
        assert nodes.holder(endpoint).membership.node == preferred_node(endpoint.rowid, a.membership.live)


async def test_reconciliation_between_two_runs_succeeds_and_leaves_every_endpoint_a_holder(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(WORKING)
    a, _, endpoints = await nodes.releasing(receiver)
    a.taking.cancel()
    await trio.sleep(0.1)
    await a.leases.reconcile()
    assert all(nodes.holder(each) for each in endpoints), "who is to have it is seen to by the next run"
    a.taking = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a.leases.run)
        await trio.sleep(3)
        nursery.cancel_scope.cancel()
    for endpoint in endpoints:
        assert nodes.holder(endpoint).membership.node == preferred_node(endpoint.rowid, a.membership.live)


async def test_change_of_an_endpoint_that_is_being_released_starts_no_second_courier(
    nodes: Nodes, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(WORKING)
    a, b, endpoints = await nodes.releasing(receiver)
    leaving = [each for each in endpoints if not a.dispatcher.delivers_to(each.rowid)]
    for endpoint in leaving:
        a.leases.change(endpoint)
    await trio.sleep(5)
    assert all(nodes.holder(each) is b for each in leaving)
    assert not any(a.dispatcher.delivers_to(each.rowid) for each in leaving)
    await nodes.send(1)
    await receiver.wait(12)
    await trio.sleep(3)
    assert len(receiver.requests) == 12


def test_most_endpoints_keep_their_node_when_another_leaves() -> None:
    nodes = [Node(name, number) for number, name in enumerate("abcd")]
    before = {endpoint: preferred_node(endpoint, nodes) for endpoint in range(400)}
    after = {endpoint: preferred_node(endpoint, nodes[:3]) for endpoint in range(400)}
    assert all(after[each] == before[each] for each in before if before[each] != nodes[3])
    for node in nodes:
        assert 60 < sum(each == node for each in before.values()) < 140
