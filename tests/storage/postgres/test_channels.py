"""Stream channels of nodes on one PostgreSQL; the nodes lack only their API (ADR 60)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import pytest
import trio

from deskwire.engine.cluster.membership import LEASE_DURATION_S, ClusterMembership
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.shared_log import SharedLog
from deskwire.engine.ports import Commit
from deskwire.engine.stream.hub import ConsumerSuperseded, Hub
from deskwire.engine.stream.subscription import Subscription
from deskwire.storage.postgres.bus import PostgresBus
from deskwire.storage.postgres.heartbeats import HeartbeatStore
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.store import open_postgres
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import USER, PostgresServer
from tests.support.postgres_nodes import line_to, rows
from tests.support.streaming import CHANNEL, Stage, found_project, next_batch, number


@asynccontextmanager
async def node(url: str, name: str) -> AsyncIterator[tuple[Stage, trio.CancelScope]]:
    """Run a node with its lease; cancel the scope to stop its heartbeat, as if it had died."""
    commits = Subscribers[Commit]()
    async with (
        open_postgres(url, node=name, batch=64, readers=2, on_commit=commits.tell) as store,
        trio.open_nursery() as nursery,
    ):
        bus = PostgresBus(store.database)
        nursery.start_soon(bus.run)
        beats = HeartbeatStore(store.database, nursery)
        cluster = ClusterMembership(beats, bus, name, "test", wall_clock)
        project = await store.write(found_project)
        log = SharedLog(store, ring_events=1_000, ring_bytes=10**6)
        follower = Follower(store, log, bus)
        follower.follow(commits)
        nursery.start_soon(follower.run)
        lease = await nursery.start(_leased, cluster)
        hub = Hub(store, log, wall_clock, save_s=0.05, nodes=(cluster, bus))
        follower.on_log_replaced(hub.log_replaced)
        await nursery.start(hub.run)
        yield Stage(store, log, hub, project, wall_clock), lease
        nursery.cancel_scope.cancel()


async def _leased(cluster: ClusterMembership, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(cluster.run)
            task_status.started(scope)


@asynccontextmanager
async def two_nodes(url: str) -> AsyncIterator[tuple[Stage, Stage]]:
    async with AsyncExitStack() as stack:
        a, _ = await stack.enter_async_context(node(url, "a"))
        b, _ = await stack.enter_async_context(node(url, "b"))
        yield a, b


async def test_channel_moves_between_nodes_with_its_confirmed_position(postgres_url: str) -> None:
    told = list[str]()
    async with two_nodes(postgres_url) as (a, b):
        first = await a.hold("c1", lost=told.append)
        events = await a.emit(5)
        batch = await next_batch(first)
        assert [number(event) for event in batch.events] == [0, 1, 2, 3, 4]
        a.hub.confirm(first, events[2].position)
        second = await b.hold("c2")
        assert (told, first.current, second.current) == (["superseded"], False, True)
        assert second.start.resumed_after == events[2].id
        assert [number(event) for event in (await next_batch(second)).events] == [3, 4]
        with pytest.raises(ConsumerSuperseded):
            await a.hold("c1")
        (status,) = await a.hub.consumers(a.project)
        assert (status.consumer_id, status.connected, status.lag) == ("c2", True, 2)
        b.hub.leave(second, for_good=True)
        await a.hub.until_unfenced(a.channel, "c1")
        assert (await a.hold("c1")).current


async def test_many_takeovers_at_once_leave_one_holder(postgres_url: str) -> None:
    async with two_nodes(postgres_url) as (a, b):
        holds = list[object]()

        async def take(stage: Stage, consumer_id: str) -> None:
            holds.append(await stage.hold(consumer_id))

        async with trio.open_nursery() as nursery:
            for n in range(4):
                nursery.start_soon(take, a, f"a{n}")
                nursery.start_soon(take, b, f"b{n}")
        assert sum(held.current for held in holds) == 1  # type: ignore[attr-defined]


async def test_end_of_a_channel_reaches_the_node_that_holds_it(postgres_url: str) -> None:
    told = list[str]()
    async with two_nodes(postgres_url) as (a, b):
        held = await a.hold("c1", lost=told.append)
        assert await b.hub.end(b.project, "c1") == [CHANNEL]
        assert (held.current, told) == (False, ["ended"])
        with pytest.raises(ConsumerSuperseded):
            await b.hold("c1")


async def test_channel_of_a_dead_node_is_free_after_its_lease(postgres_url: str) -> None:
    """The node dies without releasing anything."""
    async with node(postgres_url, "b") as (b, _), node(postgres_url, "a") as (a, lease):
        old = await a.hold("c1")
        await b.emit(1)
        shared = a.hub._shared
        assert shared is not None
        shared.releaser._requests = _no_wishes  # type: ignore[method-assign]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ClusterMembership, "_leave", _nothing)
            lease.cancel()
            start = trio.current_time()
            new = await b.hold("c2")
            assert (old.current, new.current) == (False, True)
            assert trio.current_time() - start < LEASE_DURATION_S + 5


@pytest.mark.parametrize("passed_over", [False, True])
async def test_consumers_are_notified_of_events_lost_in_an_asynchronous_failover(
    *, passed_over: bool
) -> None:
    """The standby lacks the newest events.

    With `passed_over` other nodes assign their positions before the node is back.
    """
    primary, standby = PostgresServer(), PostgresServer()
    try:
        primary.create()
        primary.start()
        migrate(primary.url())
        standby.create_standby(primary)
        standby.start()
        with line_to(primary.url()) as old, line_to(standby.url()) as new:
            ports = [urlsplit(line.url).port for line in (old, new)]
            url = f"postgresql://{USER}@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/postgres"
            async with node(url, "a") as (a, _):
                told, over = list[str](), trio.Event()

                def lost(loss: str) -> None:
                    told.append(loss)
                    over.set()

                await a.emit(2)
                first = await a.hold("c1", lost=lost)
                kept = await a.emit(1)
                await trio.to_thread.run_sync(caught_up, primary, standby)
                await trio.to_thread.run_sync(standby.stop)
                gone = await a.emit(3)
                batch = await next_batch(first)
                while batch.upto < gone[-1].position:
                    batch = await next_batch(first)
                a.hub.confirm(first, gone[-1].position)
                await trio.to_thread.run_sync(saved, primary, gone[-1].position)
                new.refuse = True
                await trio.to_thread.run_sync(primary.kill)
                await trio.to_thread.run_sync(standby.start)
                await trio.to_thread.run_sync(standby.promote)
                if passed_over:
                    async with open_postgres(
                        standby.url(), node="b", batch=1, readers=1, on_commit=lambda _: None
                    ) as store:
                        other = Stage(store, a.log, a.hub, a.project, wall_clock, numbers=100)
                        await other.emit(5)
                new.refuse = False
                with trio.fail_after(HANG_TIMEOUT_S):
                    await over.wait()
                assert (told, first.current) == (["lapsed"], False)
                with trio.fail_after(HANG_TIMEOUT_S):
                    second = await _held_again(a)
                assert second.start.gap
                assert second.start.resumed_after is None
                after = await a.emit(1)
                assert [event.id for event in (await next_batch(second)).events] == [after[0].id]
                assert after[0].position <= gone[-1].position + 6
                assert kept[0].position < after[0].position
    finally:
        for server in (primary, standby):
            server.close()


async def _held_again(stage: Stage) -> Subscription:
    while True:
        try:
            return await stage.hold("c1")
        except Unavailable:
            await trio.sleep(0.1)  # poll: there is no notification


def saved(server: PostgresServer, position: int) -> None:
    while rows(server.url(), "SELECT position FROM consumers") != [(position,)]:
        time.sleep(0.02)  # poll: there is no notification


def caught_up(primary: PostgresServer, standby: PostgresServer) -> None:
    [(end,)] = primary.run("SELECT pg_current_wal_lsn()")
    while standby.run(f"SELECT pg_last_wal_replay_lsn() >= '{end}'") != [(True,)]:
        time.sleep(0.02)  # poll: there is no notification


async def _no_wishes() -> tuple[()]:
    return ()


async def _nothing(_: ClusterMembership) -> None:
    return None
