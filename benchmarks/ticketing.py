"""The latency of a page of tickets, of a search, and of a bulk change."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import trio

from benchmarks import processes
from benchmarks.filling import found
from benchmarks.generator import load
from benchmarks.job import Job, Outcome
from benchmarks.report import TIMES, Cell, Section, median, median_times, times
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from deskwire.engine.accounts.people import Project
from deskwire.engine.core.actor import SYSTEM
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction
from deskwire.engine.tickets.change import create_ticket
from deskwire.storage.sqlite.store import open_store

_AT_ONCE: Final = 1_000
"""Tickets stored in one commit, and the maximum of one bulk change."""
_WORDS: Final = (
    "order",
    "invoice",
    "delivery",
    "carrier",
    "address",
    "payment",
    "label",
    "return",
    "support",
    "late",
)
_PAGE: Final = "/v3/tickets"
_LISTS: Final = (
    ("newest first", ""),
    ("status", "?status=OPEN"),
    ("status, by update", "?status=IN_PROGRESS&sort=updatedAt"),
    ("by priority", "?sort=priority"),
    ("by activity, oldest first", "?sort=lastActivity&order=asc"),
    ("status, priority, awake, by update", "?status=OPEN&priority=URGENT&snoozed=false&sort=updatedAt"),
    ("assignee none, by priority", "?assignee=none&sort=priority"),
    ("a tag that 1 in 50 has, by update", "?tag=vip&sort=updatedAt"),
    ("snoozed", "?snoozed=true&sort=updatedAt"),
    ("page of 200", "?limit=200"),
    ("search: a word of every second", "?q=parcel"),
    ("search: the same, by priority", "?q=parcel&sort=priority"),
    ("search: two beginnings, status", "?q=par+ref&status=OPEN"),
    ("search: a word of one ticket", "?q=a-4711"),
)


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Request each list with one request in flight, and with four."""
    where = directory / "tickets"
    where.mkdir()
    wanted = json.dumps([str(where), scale.tickets])
    ids: list[str] = json.loads(processes.answer("benchmarks.ticketing", wanted, core=processes.SERVER))
    with deskwire(where) as server:
        lists = (*_middles(server), *_LISTS)[: scale.lists]
        rows = [_row(scale, server, name, query) for name, query in lists]
        bulk = _bulk(scale, server, ids)
    columns = ("list", "answers/s", *TIMES, *(f"4 at once: {each}" for each in TIMES))
    title = f"Lists of {scale.tickets:,} tickets, 50 a page"
    note = "One request under way, and four; the server, its database threads included, has one core."
    changed = Section("bulk", "Change tickets in one call", ("tickets", "calls", *TIMES), [bulk])
    return [Section("tickets", title, columns, rows, note), changed]


async def _fill(folder: str, count: int) -> None:
    """Store this many tickets in a fresh directory, and print their ids."""
    directory = Path(folder)
    async with open_store(directory, batch=256, readers=1, on_commit=lambda _: None) as store:
        project = await found(store, directory)
        ids = [new_id("tkt", wall_clock() + number) for number in range(count)]
        for first in range(0, count, _AT_ONCE):
            await store.write(partial(_create, project, ids, range(first, min(first + _AT_ONCE, count))))
        print(json.dumps(ids))


def _create(project: Project, ids: list[str], numbers: range, tx: Transaction) -> None:
    for number in numbers:
        create_ticket(tx, project, ids[number], _values(number), SYSTEM, wall_clock() + number)


def _values(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    about = "parcel" if number % 2 else "refund"
    return {
        "title": f"The {about} of order A-{number}",
        "description": " ".join(chance.choices((*_WORDS, *(f"word{n}" for n in range(2_000))), k=60)),
        "status": chance.choice(("OPEN", "IN_PROGRESS", "DONE", "DONE")),
        "priority": chance.choice(("LOW", "MEDIUM", "MEDIUM", "HIGH", "URGENT")),
        "tags": ("vip",) if number % 50 == 0 else ("shop",),
        "snoozed_until": wall_clock() + 10**9 if number % 20 == 0 else None,
    }


def _middles(server: Server) -> Iterator[tuple[str, str]]:
    """Return the page in the middle of a list, by its cursor."""
    headers = {"Authorization": f"Bearer {server.token}", "project": server.project}
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=headers) as api:
        for sort in ("createdAt", "priority"):
            cursor = ""
            for _ in range(10):
                page = api.get(f"{_PAGE}?limit=200&sort={sort}{cursor}").raise_for_status().json()
                if page["nextCursor"]:
                    cursor = f"&cursor={page['nextCursor']}"
            yield f"from the middle, {sort}", f"?sort={sort}{cursor}"


def _row(scale: Scale, server: Server, name: str, query: str) -> tuple[Cell, ...]:
    def taken(connections: int, rounds: int) -> list[Outcome]:
        job = Job(
            server.port,
            [f"{_PAGE}{query}"],
            method="GET",
            key=server.token,
            project=server.project,
            connections=connections,
            warm_s=scale.warm_s,
            for_s=scale.list_s,
        )
        return [load(job) for _ in range(rounds)]

    alone, together = taken(1, scale.rounds), taken(4, 1)
    return (
        name,
        median(each.rate for each in alone),
        *median_times(each.latencies for each in alone),
        *median_times(each.latencies for each in together),
    )


def _bulk(scale: Scale, server: Server, ids: list[str]) -> tuple[Cell, ...]:
    """Measure bulk changes; each call sets a new snooze, so that every ticket changes."""
    chosen = ids[:_AT_ONCE]
    body = json.dumps({"selection": {"ids": chosen}, "payload": {"duration": 3_600}})
    job = Job(
        server.port,
        [f"{_PAGE}/bulk"],
        method="PUT",
        key=server.token,
        project=server.project,
        body=body,
        count=scale.bulk_calls,
    )
    outcome = load(job)
    return len(chosen), scale.bulk_calls, *times(outcome.latencies)


if __name__ == "__main__":
    trio.run(_fill, *json.loads(sys.stdin.read()))
