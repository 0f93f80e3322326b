"""The cost, to a node, of following what another one commits, and the time until its readers hear of it.

    python -m benchmarks.following

Needs the PostgreSQL of the tests. Two nodes' stores, logs and followers are in this process, on a server of their own with
`fsync` off, over loopback. Processor time is that of this process alone.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from functools import partial
from statistics import median, quantiles
from typing import Final

import trio
from tests.support.postgres import fresh_database

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.shared import SharedLog
from deskwire.engine.events.types import Draft
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.postgres.bus import PostgresBus
from deskwire.storage.postgres.store import PostgresStore, open_postgres

_PROJECTS: Final = 64
_EVENTS: Final = 4_096
_ROUNDS: Final = 5
_HINTS: Final = 300
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


async def main() -> None:
    """Measure and print."""
    with fresh_database() as url:
        async with AsyncExitStack() as stack:
            nursery = await stack.enter_async_context(trio.open_nursery())
            here, there = [await _node(stack, nursery, url, name) for name in ("here", "there")]
            projects = await there.store.write(_found)
            for project in projects:
                await here.log.open(project.rowid)
            for label, spread in (("one project", 1), (f"{_PROJECTS} projects", _PROJECTS)):
                costs = [await _followed(here, there, projects[:spread]) for _ in range(_ROUNDS)]
                print(
                    f"an event of {label}, in a hurry: {median(costs):.1f} µs ({min(costs):.1f} to {max(costs):.1f})"
                )
            waits = sorted([await _hinted(here, there, projects[0]) for _ in range(_HINTS)])
            ninety_nine = quantiles(waits, n=100)[98]
            print(
                f"from the answer there to the reader's wake here: p50 {median(waits):.2f} ms, p99 {ninety_nine:.2f} ms"
            )
            began = time.process_time()
            for _ in range(20):
                await here.follower.catch_up()
            print(f"a look at {_PROJECTS} heads: {(time.process_time() - began) / 20 * 1e6:.0f} µs")
            nursery.cancel_scope.cancel()


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
            projects[number % len(projects)], Draft("contact.updated", None, {"x": _BODY}), None, _NOW
        )


async def _followed(here: Node, there: Node, projects: list[Project]) -> float:
    """Commit events while nobody here hears of it, and return what an event costs to follow."""
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


if __name__ == "__main__":
    trio.run(main)
