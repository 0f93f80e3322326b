"""Nodes that share a PostgreSQL, compared with one on SQLite: the engine without HTTP, by processor time, because all share a machine.

The two stores take turns in one process. Then one, two and three processes post at the same time: each to conversations of its own
in many projects, or all to one project, whose log takes one commit after the other.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle, starmap
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from benchmarks import processes
from benchmarks.filling import create, found, post
from benchmarks.report import TIMES, Cell, Section, median, times
from benchmarks.scale import Scale
from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import Store
from deskwire.engine.ports import Reader, Transaction
from deskwire.storage.postgres.store import PostgresStore, open_postgres
from deskwire.storage.sqlite.store import open_store

_BATCH: Final = 256
_PROJECTS: Final = 16
_EACH: Final = 32
"""Commands in flight at each node."""
_LONGER: Final = 3
"""Factor by which several nodes post longer than one store, because the server's time is measured in hundredths of a second."""
_LINGER_S: Final = 1.0
"""How long their sessions stay, so that others can still read the processor time that those have used."""
_LEAD_S: Final = 3.0
"""The time for nodes to start before they begin together."""


_NOTE: Final = (
    "A command is a posted message. µs: processor time of each, of the node and of the database's processes."
)
_SQLITE, _POSTGRES = "SQLite", "PostgreSQL"


class Posted(NamedTuple):
    """Measure the cost of posting: messages a second, their times, and the processor time of nodes and PostgreSQL for each."""

    rate: float
    p50_ms: float
    p99_ms: float
    worst_ms: float
    node_us: float
    server_us: float


def measure(asked: dict[str, Any], directory: Path) -> list[Section]:
    """Measure both stores in turn, then one to three nodes; `asked` names the server's URL, its process, and the scale."""
    for folder in (_SQLITE, _POSTGRES):
        (directory / folder).mkdir()
    one = json.dumps({**asked, "directory": str(directory)})
    stores = json.loads(processes.answer("benchmarks.sharing", one, core=processes.SERVER))
    rows = [
        _store_row(name, count, stores)
        for count in asked["scale"]["in_flight"]
        for name in (_SQLITE, _POSTGRES)
    ]
    columns = (
        "store",
        "in flight",
        "per second",
        *TIMES,
        "node µs",
        "PostgreSQL µs",
        "of SQLite's µs",
    )
    title = "The engine on each store, taking turns, without HTTP"
    nodes = [row for hot in (False, True) for row in _rows_of_nodes(asked, hot=hot)]
    together = (
        "nodes",
        "per second together",
        "node µs",
        "PostgreSQL µs",
        "longest pause ms",
        "of one node's µs",
    )

    return [
        Section("stores", title, columns, rows, _NOTE),
        Section("nodes", f"Nodes on one PostgreSQL, {_EACH} commands in flight each", together, nodes, _NOTE),
    ]


def _store_row(name: str, count: int, stores: dict[str, list[list[float]]]) -> tuple[Cell, ...]:
    mine, plain = (list(starmap(Posted, stores[f"{each} {count}"])) for each in (name, _SQLITE))
    ratio = median(its.node_us / others.node_us for its, others in zip(mine, plain, strict=True))
    taken = Posted(*map(median, zip(*mine, strict=True)))
    database = None if name == _SQLITE else taken.server_us
    return name, count, *taken[:4], taken.node_us, database, ratio


def _rows_of_nodes(asked: dict[str, Any], *, hot: bool) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of one, two and three nodes."""
    alone = 0.0
    for count in (1, 2, 3):
        rate, node_us, server_us, pause = _nodes(asked, count, hot=hot)
        alone = alone or node_us
        label = f"{count}, {'one project' if hot else f'{_PROJECTS} projects'}"
        yield label, rate, node_us, server_us, pause, node_us / alone


def _nodes(asked: dict[str, Any], count: int, *, hot: bool) -> tuple[float, float, float, float]:
    """Have `count` nodes post at the same time; return the total rate, the processor time of node and database, and the longest pause."""
    begin = time.time() + _LEAD_S
    running = [processes.start("benchmarks.sharing", core=processes.SERVER + at % 2) for at in range(count)]
    for number, process in enumerate(running):
        processes.tell(process, json.dumps({**asked, "node": number, "begin": begin, "hot": hot}))
    answers = [json.loads(processes.line(process)) for process in running]
    for process in running:
        processes.stop(process)
    posted = sum(answer["posted"] for answer in answers)
    node_us = sum(answer["cpu_s"] for answer in answers) * 1e6 / posted
    server_us = median([answer["server_s"] for answer in answers]) * 1e6 / posted
    return posted / answers[0]["for_s"], node_us, server_us, max(answer["pause_ms"] for answer in answers)


async def _both(asked: dict[str, Any], scale: Scale) -> dict[str, list[Posted]]:
    """Measure the stores round by round."""
    figures: dict[str, list[Posted]] = {}
    directory = Path(asked["directory"])
    async with AsyncExitStack() as stack:
        sqlite = open_store(directory, batch=_BATCH, readers=1, on_commit=lambda _: None)
        kept: dict[str, Store[Reader, Transaction]] = {
            _SQLITE: await stack.enter_async_context(sqlite),
            _POSTGRES: await stack.enter_async_context(opened(asked["url"], "alone")),
        }
        lives = {}
        for name, store in kept.items():
            project = await found(store, directory / name)
            actors = await stack.enter_async_context(actors_of(store))
            lives[name] = actors, await begun_in(actors, [project], max(scale.in_flight))
        await kept[_POSTGRES].write(_found_others)
        for _ in range(scale.rounds):
            for count in scale.in_flight:
                for name, (actors, begun) in lives.items():
                    taken = await keep_posting([actors], begun[:count], scale.load_s, asked["server"])
                    figures.setdefault(f"{name} {count}", []).append(taken)
    return figures


async def found_projects(store: Store[Reader, Transaction], count: int) -> None:
    """Create an organisation with projects."""

    def make(tx: Transaction) -> None:
        organisation = tx.insert_organisation(new_id("org", wall_clock()), "Shop", wall_clock())
        for number in range(count):
            key = new_id("prj", wall_clock())
            tx.insert_project(key, organisation, f"Project {number}", key, wall_clock())

    await store.write(make)


def _found_others(tx: Transaction) -> None:
    """Create more projects in the organisation of the first one."""
    (project,) = tx.projects(None, None, 1 << 60, 1)
    for number in range(1, _PROJECTS):
        key = new_id("prj", wall_clock())
        tx.insert_project(key, project.organisation, f"Project {number}", key, wall_clock())


async def _node(asked: dict[str, Any], scale: Scale) -> dict[str, float]:
    """Post as one of several nodes, from their common start time on."""
    async with opened(asked["url"], f"node-{asked['node']}") as store, actors_of(store) as actors:
        known = await store.read(lambda reader: reader.projects(None, None, 1 << 60, _PROJECTS))
        projects = known[:1] if asked["hot"] else known
        begun = await begun_in(actors, projects, _EACH, f"{asked['node']}-{asked['begin']}-")
        await trio.sleep(max(0.0, asked["begin"] - time.time()))
        cpu, server, moments = time.process_time(), server_s(asked["server"]), list[float]()
        await keep_posting([actors], begun, _LONGER * scale.load_s, asked["server"], moments)
        pauses = [
            later - earlier for earlier, later in zip(sorted(moments), sorted(moments)[1:], strict=False)
        ]
        taken = {
            "posted": len(moments),
            "cpu_s": time.process_time() - cpu,
            "server_s": server_s(asked["server"]) - server,
            "for_s": _LONGER * scale.load_s,
            "pause_ms": max(pauses) * 1000,
        }
        await trio.sleep(_LINGER_S)
        return taken


@asynccontextmanager
async def opened(url: str, node: str, batch: int = _BATCH) -> AsyncIterator[PostgresStore]:
    """Open the store of a node."""
    async with open_postgres(url, node=node, batch=batch, readers=1, on_commit=lambda _: None) as store:
        yield store


@asynccontextmanager
async def actors_of(store: Store[Reader, Transaction]) -> AsyncIterator[ActorRegistry]:
    """Run the conversations of a store."""
    async with trio.open_nursery() as nursery:
        yield ActorRegistry(nursery, store, wall_clock, mailbox=256, idle_s=3600, live=20_000)
        nursery.cancel_scope.cancel()


async def begun_in(
    actors: ActorRegistry, projects: Sequence[Project], count: int, who: str = ""
) -> list[tuple[Project, str]]:
    """Create conversations in the projects in turn."""
    begun = []
    for number in range(count):
        project = projects[number % len(projects)]
        command = create(project, number, who)
        await actors.create(project, command)
        begun.append((project, command.conversation_id))
    return begun


async def keep_posting(
    nodes: Sequence[ActorRegistry],
    conversations: Sequence[tuple[Project, str]],
    for_s: float,
    server: int,
    moments: list[float] | None = None,
) -> Posted:
    """Run a task for each conversation, which posts again as soon as it has a result, to the nodes in turn."""
    taken: list[float] = []
    began, cpu, database = time.perf_counter(), time.process_time(), server_s(server)

    async def keep_on(project: Project, conversation: str) -> None:
        now = began
        for actors in cycle(nodes):
            if now >= began + for_s:
                return
            await actors.ask(project, conversation, post())
            now, last = time.perf_counter(), now
            taken.append((now - last) * 1000)
            if moments is not None:
                moments.append(now)

    async with trio.open_nursery() as nursery:
        for each in conversations:
            nursery.start_soon(keep_on, *each)
    count, elapsed = len(taken), time.perf_counter() - began
    taken.sort()
    costs = (time.process_time() - cpu) * 1e6 / count, (server_s(server) - database) * 1e6 / count
    return Posted(count / elapsed, *times(taken), *costs)


def server_s(postmaster: int) -> float:
    """Return the processor time of a PostgreSQL server: of all its processes, including those that have ended."""
    ticks = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(entry) == postmaster:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == postmaster:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    sizes = Scale(**given["scale"])
    print(json.dumps(trio.run(_node if "node" in given else _both, given, sizes)), flush=True)
