"""The cost for a node of following the commits of another node, and the delay until its readers are notified.

Two nodes' stores, logs and followers are in this process, over loopback. Processor time is that of this process alone.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import trio

from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from deskwire.engine.accounts.people import Project
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.shared_log import SharedLog
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.postgres.bus import PostgresBus
from deskwire.storage.postgres.store import PostgresStore, open_postgres

_PROJECTS: Final = 64
_EVENTS: Final = 4_096
_HINTS: Final = 200
_LOOKS: Final = 20
_BODY: Final = "x" * 1_700  # 1.9 KB with the envelope
_NOW: Final = 1_800_000_000_000


class Node:
    """A store with its log, its follower and its bus."""

    def __init__(self, store: PostgresStore, commits: Subscribers[Commit]) -> None:
        self.store = store
        self.log = SharedLog(store, ring_events=100_000, ring_bytes=1 << 30)
        self.bus = PostgresBus(store.database)
        self.follower = Follower(store, self.log, self.bus)
        self.follower.follow(commits)


def measure(scale: Scale, url: str) -> Section:
    """Measure on a migrated database."""
    rows = trio.run(_measured, scale.rounds, url)
    columns = ("what", "unit", "median", "least", "most")
    note = "Two nodes in one process; µs are its processor time, without the database's."
    return Section("following", "Following what another node commits", columns, rows, note)


async def _measured(rounds: int, url: str) -> list[tuple[Cell, ...]]:
    async with AsyncExitStack() as stack:
        nursery = await stack.enter_async_context(trio.open_nursery())
        here, there = [await _node(stack, nursery, url, name) for name in ("here", "there")]
        projects = await there.store.write(_found)
        for project in projects:
            await here.log.open(project.rowid)
        rows = []
        for label, spread in (("one project", 1), (f"{_PROJECTS} projects", _PROJECTS)):
            costs = [await _followed(here, there, projects[:spread]) for _ in range(rounds)]
            rows.append(_row(f"an event of {label}, many at once", "µs", costs))
        waits = [await _hinted(here, there, projects[0]) for _ in range(_HINTS)]
        rows.append(_row("from the answer there to the reader's wake here", "ms", waits))
        rows.append(_row(f"a look at {_PROJECTS} heads", "µs", [await _looked(here) for _ in range(rounds)]))
        nursery.cancel_scope.cancel()
    return rows


def _row(label: str, unit: str, taken: list[float]) -> tuple[Cell, ...]:
    return label, unit, median(taken), min(taken), max(taken)


async def _looked(here: Node) -> float:
    """Return the cost of a check for new events."""
    began = time.process_time()
    for _ in range(_LOOKS):
        await here.follower.catch_up()
    return (time.process_time() - began) / _LOOKS * 1e6


async def _node(stack: AsyncExitStack, nursery: trio.Nursery, url: str, name: str) -> Node:
    commits = Subscribers[Commit]()
    opening = open_postgres(url, node=name, batch=256, readers=2, on_commit=commits.tell)
    node = Node(await stack.enter_async_context(opening), commits)
    connected = trio.Event()
    node.bus.connected(connected.set)
    nursery.start_soon(node.follower.run)
    nursery.start_soon(node.bus.run)
    await connected.wait()
    return node


def _found(tx: Transaction) -> list[Project]:
    organisation = tx.insert_organisation(new_id("org", _NOW), "Shop", _NOW)
    return [
        tx.insert_project(new_id("prj", _NOW), organisation, f"Shop {number}", f"key-{number}", _NOW)
        for number in range(_PROJECTS)
    ]


def _append(projects: list[Project], count: int, tx: Transaction) -> None:
    for number in range(count):
        tx.append_event(
            projects[number % len(projects)], EventDraft("contact.updated", None, {"x": _BODY}), None, _NOW
        )


async def _followed(here: Node, there: Node, projects: list[Project]) -> float:
    """Commit events without a hint to this node, and return the cost of following an event."""
    await there.store.write(partial(_append, projects, _EVENTS))
    began, read = time.process_time(), here.follower.counters.read
    await here.follower.catch_up()
    spent = time.process_time() - began
    followed = here.follower.counters.read - read
    return spent / max(1, followed) * 1e6


async def _hinted(here: Node, there: Node, project: Project) -> float:
    """Return the milliseconds from the commit's answer on one node to the wake of a reader on the other."""
    position, woken = here.log.position(project.rowid), 0.0

    async def wait() -> None:
        nonlocal woken
        await here.log.wait(project.rowid, position)
        woken = time.perf_counter()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(0.01)
        await there.store.write(partial(_append, [project], 1))
        answered = time.perf_counter()
    return (woken - answered) * 1_000
