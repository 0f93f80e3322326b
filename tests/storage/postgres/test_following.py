"""Events of both nodes on one PostgreSQL, as the readers of each node receive them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import psycopg
import pytest
import trio

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Delete
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.shared_log import SharedLog
from deskwire.engine.events.types import ERASURE, AgentsSource, StoredEvent, Topic
from deskwire.engine.ports import Commit
from deskwire.storage.postgres.bus import PostgresBus
from deskwire.storage.postgres.store import PostgresStore, open_postgres
from tests.support.builders import OTHER_PROJECT, PROJECT, HandClock, create, found_projects, post
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import fresh_database

P = PROJECT.rowid
SHIFT = 40


@dataclass
class Node:
    """A node's store and followers of events."""

    store: PostgresStore
    log: SharedLog
    follower: Follower
    bus: PostgresBus
    actors: ActorRegistry
    commits: list[Commit] = field(default_factory=list)


@asynccontextmanager
async def node_on(url: str, name: str, *, bus: bool = True, ring_events: int = 1_000) -> AsyncIterator[Node]:
    commits = Subscribers[Commit]()
    async with (
        open_postgres(url, node=name, batch=64, readers=2, on_commit=commits.tell) as store,
        trio.open_nursery() as nursery,
    ):
        log = SharedLog(store, ring_events=ring_events, ring_bytes=1 << 24)
        line = PostgresBus(store.database)
        follower = Follower(
            store, log, line, poll_interval_s=5.0 if bus else 0.1, poll_interval_without_bus_s=0.1
        )
        follower.follow(commits)
        actors = ActorRegistry(nursery, store, HandClock(), mailbox=256, idle_s=60, live=100)
        node = Node(store, log, follower, line, actors)
        commits.subscribe(node.commits.append)
        nursery.start_soon(follower.run)
        if bus:
            began = trio.Event()
            line.connected(began.set)
            nursery.start_soon(line.run)
            with trio.fail_after(HANG_TIMEOUT_S):
                await began.wait()
        yield node
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def nodes(count: int, *, bus: bool = True, ring_events: int = 1_000) -> AsyncIterator[list[Node]]:
    with fresh_database() as url:
        async with AsyncExitStack() as stack:
            made = [
                await stack.enter_async_context(
                    node_on(url, f"node{number}", bus=bus, ring_events=ring_events)
                )
                for number in range(count)
            ]
            await made[0].store.write(found_projects)
            yield made


async def shown(node: Node, source: int | Topic | AgentsSource, after: int, count: int) -> list[StoredEvent]:
    """Return the events that a reader receives, until there are that many."""
    found: list[StoredEvent] = []
    with trio.fail_after(HANG_TIMEOUT_S):
        while len(found) < count:
            chunk = node.log.recent(source, after, 100)
            if chunk is None:
                chunk = await node.log.stored(source, after, 100)
            found += chunk.events
            after = chunk.upto
            if not chunk.events:
                await node.log.wait(source, after)
    return found


async def stored_of(node: Node, project: int) -> Sequence[StoredEvent]:
    return await node.store.read(lambda reader: reader.agents_events(project, 0, 100_000))


def types(events: Sequence[StoredEvent]) -> list[str]:
    return [event.type for event in events]


async def test_reader_receives_events_of_another_node_with_their_topics() -> None:
    async with nodes(2) as (a, b):
        command = create(message=post())
        lane = Topic(P, "conversation", command.conversation_id)
        for source in (P, lane, AgentsSource(P)):
            await b.log.open(source)
        start = b.log.position(P)
        assert start == P << SHIFT
        await a.actors.create(PROJECT, command)
        await a.actors.ask(PROJECT, command.conversation_id, post("agent", "a note", internal=True))
        expected = await stored_of(a, P)
        assert types(expected) == ["conversation.created", "message.created", "note.created"]
        assert await shown(b, AgentsSource(P), start, 3) == list(expected)
        assert await shown(b, lane, start, 2) == list(expected[:2])
        assert await shown(b, P, start, 2) == list(expected[:2])
        assert b.log.memory_size[0] == 3


async def test_own_commits_are_published_directly_with_the_heads() -> None:
    async with nodes(1) as (a,):
        await a.log.open(P)
        for number in range(5):
            await a.actors.create(PROJECT, create(f"user-{number}", message=post()))
        assert (a.follower.counters.own, a.follower.counters.read) == (len(a.commits) - 1, 0) == (5, 0)
        advances = [commit.advances for commit in a.commits[1:]]
        ends = [(before.events, after.events) for ((before, after),) in advances]
        assert ends == [((P << SHIFT) + 2 * n, (P << SHIFT) + 2 * n + 2) for n in range(5)]


async def test_log_that_ends_with_an_internal_event_is_recognized() -> None:
    async with nodes(2) as (a, b):
        command = create(message=post())
        await a.actors.create(PROJECT, command)
        await a.actors.ask(PROJECT, command.conversation_id, post("agent", "a note", internal=True))
        await b.log.open(P)
        replaced: list[int] = []
        b.follower.on_log_replaced(replaced.append)
        b.follower._connected()  # it then checks whether this is still the same log
        await b.follower.catch_up()
        assert replaced == []


async def test_an_erasure_reaches_the_memory_of_other_nodes() -> None:
    async with nodes(2) as (a, b):
        gone, stays = create("user-1", message=post()), create("user-2", message=post())
        await b.log.open(P)
        for command in (gone, stays):
            await a.actors.create(PROJECT, command)
        assert len(await shown(b, P, 0, 4)) == 4
        receipt = await a.actors.ask(PROJECT, gone.conversation_id, Delete("manual"))
        assert receipt is not None
        await b.follower.catch_up()
        held = b.log.recent(P, P << SHIFT, 100)
        assert held is not None
        assert list(held.events) == list(await stored_of(a, P))
        assert types(held.events) == ["conversation.created", "message.created", "conversation.deleted"]
        head = (await b.store.read(lambda reader: reader.heads([P])))[0]
        assert b.log.position(P) == head.events == (P << SHIFT) + 6, "the erasure has a place, too"
        (erasure,) = await b.store.read(lambda reader: reader.erasures([(P, 0)], 10))
        assert len(erasure.erased) == 1
        assert not erasure.events
        assert ERASURE not in types(await stored_of(a, P))


@pytest.mark.parametrize("bus", [True, False])
async def test_all_readers_of_three_nodes_have_the_same_events_in_one_order(bus: bool) -> None:
    rng = Random(1)
    async with nodes(3, bus=bus, ring_events=40) as all_nodes:
        found: dict[tuple[int, int | AgentsSource], list[int]] = {}

        async def follow(
            number: int,
            source: int | AgentsSource,
            task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
        ) -> None:
            node = all_nodes[number]
            await node.log.open(source)
            upto = node.log.position(source if isinstance(source, int) else source.project)
            mine = found[number, source] = []
            task_status.started()
            while True:
                chunk = node.log.recent(source, upto, 7) or await node.log.stored(source, upto, 7)
                mine += [event.position for event in chunk.events]
                upto = chunk.upto
                if not chunk.events:
                    await node.log.wait(source, upto)

        async def write(node: Node, project: int) -> None:
            own = PROJECT if project == P else OTHER_PROJECT
            commands = [create(f"user-{rng.random()}", project=own) for _ in range(3)]
            for command in commands:
                await node.actors.create(own, command)
            for _ in range(25):
                command = rng.choice(commands)
                text = post("agent", "a note", internal=True) if rng.random() < 0.3 else post()
                await rng.choice(all_nodes).actors.ask(own, command.conversation_id, text)

        async with trio.open_nursery() as readers:
            for number in range(3):
                for source in (P, OTHER_PROJECT.rowid, AgentsSource(P)):
                    await readers.start(follow, number, source)
            async with trio.open_nursery() as writers:
                for node in all_nodes:
                    for project in (P, OTHER_PROJECT.rowid):
                        writers.start_soon(write, node, project)
            agents = [event.position for event in await stored_of(all_nodes[0], P)]
            everybody = [event.position for event in await stored_of(all_nodes[0], P) if not event.internal]
            others = [
                event.position
                for event in await stored_of(all_nodes[0], OTHER_PROJECT.rowid)
                if not event.internal
            ]
            wanted = {P: everybody, OTHER_PROJECT.rowid: others, AgentsSource(P): agents}
            deadline = trio.current_time() + 30
            for (_, source), mine in found.items():
                while len(mine) < len(wanted[source]) and trio.current_time() < deadline:  # noqa: ASYNC110  # polls all readers
                    await trio.sleep(0.05)  # poll: there is no notification
            readers.cancel_scope.cancel()
        assert {len(each) > 40 for each in wanted.values()} == {True}
        for (number, source), mine in found.items():
            assert mine == wanted[source], f"node {number} of {source}"
        assert agents == [*range(agents[0], agents[0] + len(agents))], "no hole"


async def test_follower_continues_when_the_database_is_back() -> None:
    async with nodes(2) as (a, b):
        await b.log.open(P)
        with psycopg.connect(b.store.database.url, autocommit=True) as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'deskwire/%/node1'"
            ).fetchall()
        assert len(ended) >= 2
        await a.actors.create(PROJECT, create(message=post()))
        assert len(await shown(b, P, P << SHIFT, 2)) == 2
