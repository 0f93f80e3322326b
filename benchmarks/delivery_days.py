"""The end of a day of `deliveries` on PostgreSQL by deletion and by dropped partitions, and the cost of partitions for a delivery.

Retention's own code removes the same days of two databases in turn. Then the same messages are posted and delivered beside one
table, 13 and 43 partitions in turn: each is stored with its delivery, and results are recorded as the workers do.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import trio
from tests.support.postgres import PostgresServer

from benchmarks.day_partitions import (
    BATCH_MAX,
    DAYS,
    IN_FLIGHT,
    DayEnd,
    Read,
    add_days,
    costs_of_partitions,
    ends_of_day,
    query_us,
    server_for_days,
    today,
)
from benchmarks.filling import post
from benchmarks.report import Section
from benchmarks.scale import Scale
from benchmarks.sharing import actors_of, begun_in, found_projects, server_s
from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import DAY_MS, new_id
from deskwire.engine.core.store import InlineJob
from deskwire.engine.ports import Commit, Transaction
from deskwire.engine.privacy.retention import BATCH_SIZE
from deskwire.engine.webhooks.delivery import Attempt, Delivery, DeliveryFilter
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from deskwire.storage.postgres.schema.days import ATTEMPTS, DELIVERIES
from deskwire.storage.postgres.store import PostgresStore, open_postgres

_TABLES: Final = (DELIVERIES, ATTEMPTS)
_PAST_ROWS: Final = 60_000
"""Deliveries of another project on the past days, so that PostgreSQL plans for partitions with rows."""

_SPLIT: Final = "m0032_deliveries_by_day"
_AS_BEFORE: Final = (
    "ALTER TABLE deliveries ADD COLUMN day integer NOT NULL DEFAULT 0",
    "ALTER TABLE attempts ADD COLUMN day integer NOT NULL DEFAULT 0",
    "ALTER TABLE attempts DROP CONSTRAINT attempts_pkey",
    "ALTER TABLE attempts ADD PRIMARY KEY (delivery, number, day)",
)
"""The tables from before the split, as far as this program's statements need them changed."""

_ANSWER: Final = b'{"received":true}'
_FILL: Final = """
INSERT INTO deliveries (position, id, endpoint, event, lane, previous, status, attempts, due_at, created_at, ended_at,
    event_id, type, sequence, day)
SELECT (%(project)s :: bigint << 40) + n, concat('dlv_', lpad(n::text, 26, '0')), %(project)s, n, n / 10, NULL, 'delivered', 1, 0,
    %(first)s + (n - 1) / %(rows)s * 86400000 :: bigint, 1, concat('evt_', lpad(n::text, 26, '0')), 'message.created', n %% 10,
    CASE WHEN %(dated)s THEN (%(first)s / 86400000)::int + (n - 1)::int / %(rows)s ELSE 0 END
FROM generate_series(%(begin)s :: bigint, %(end)s :: bigint) AS n
"""
_ATTEMPTS: Final = """
INSERT INTO attempts (delivery, number, at, latency_ms, status, error, answer, day)
SELECT d.position, 1, d.created_at, 20, 200, NULL, %s, d.day FROM deliveries d
"""
_TOGETHER: Final = 32
"""Results that are recorded together, as by the worker of an endpoint."""

_READS: Final = 200
_TURN_S: Final = 0.001


def measure(scale: Scale, _directory: Path) -> list[Section]:
    """Measure a day's end both ways, then deliveries and queries beside partitions; each way on a database of its own."""
    kind = DayEnd(_TABLES, partial(_fill, scale.day_rows), _prune)
    name, title = "delivery-day-end", "The end of a day of deliveries"
    filled = f"{scale.day_rows:,} deliveries with an attempt each"
    with server_for_days() as server:
        return [ends_of_day(server, kind, scale.rounds, name, title, filled), _costs(server, scale)]


def _fill(rows: int, connection: psycopg.Connection, first: int, dated: bool) -> None:
    values = {"project": 1, "first": first * DAY_MS, "rows": rows, "dated": dated}
    connection.execute(_FILL, {**values, "begin": 1, "end": DAYS * rows})
    connection.execute(_ATTEMPTS, (_ANSWER,))


def _prune(tx: Transaction, older_than: int) -> int:
    return tx.prune_deliveries(older_than, BATCH_SIZE)


def _costs(server: PostgresServer, scale: Scale) -> Section:
    rows = costs_of_partitions(server, scale, "benchmarks.delivery_days", _beside)
    columns = (
        "deliveries in",
        "node µs",
        "PostgreSQL µs",
        *(f"{name} µs" for name in _reads(0, 0, "", 0)),
        "of one table's µs",
    )
    note = (
        f"{IN_FLIGHT} conversations post, one endpoint; µs: processor time of a message with its delivery and the result of that, of "
        "the node and of PostgreSQL. Then PostgreSQL's for each query."
    )
    return Section("delivery-day-costs", "The cost of partitions for a delivery", columns, rows, note)


def _beside(url: str, past: int) -> None:
    migrate(url, MIGRATIONS if past else [each for each in MIGRATIONS if each.name != _SPLIT])
    with psycopg.connect(url, autocommit=True) as connection:
        now = today(connection)
        add_days(connection, _TABLES, range(now - past, now))
        for statement in () if past else _AS_BEFORE:
            connection.execute(statement.encode())
        each = _PAST_ROWS // (past or 1)
        values = {"first": (now - past) * DAY_MS, "rows": each, "dated": past > 0}
        connection.execute(_FILL, {**values, "project": 2, "begin": 1, "end": _PAST_ROWS // each * each})
        connection.execute("VACUUM (ANALYZE)")


class _Life:
    """A store with an endpoint, conversations that post, and a task that records the results of their deliveries."""

    def __init__(self, store: PostgresStore, made: deque[Delivery]) -> None:
        self.store = store
        self._made = made
        self.project: Project
        self.endpoint = 0
        self.newest = ""
        self.position = 0
        self._actors: ActorRegistry
        self._begun: list[tuple[Project, str]] = []

    async def begin(self, stack: AsyncExitStack) -> None:
        """Make the project, the endpoint and the conversations."""
        await found_projects(self.store, 1)
        [self.project] = await self.store.read(lambda reader: reader.projects(None, None, 1 << 60, 1))
        now = wall_clock()
        url = "https://example.org/hook"
        made = Endpoint(
            0, new_id("whk", now), self.project.rowid, url, frozenset(), b"s", "s", now, now, "enabled"
        )
        self.endpoint = (await self.store.write(lambda tx: tx.insert_endpoint(made))).rowid
        self._actors = await stack.enter_async_context(actors_of(self.store))
        self._begun = await begun_in(self._actors, [self.project], IN_FLIGHT)

    async def post(self, for_s: float) -> int:
        """Post for a time, and record the results of all deliveries; return the number of messages."""
        posted, end = 0, time.perf_counter() + for_s
        done = trio.Event()

        async def keep_on(project: Project, conversation: str) -> None:
            nonlocal posted
            while time.perf_counter() < end:
                await self._actors.ask(project, conversation, post())
                posted += 1

        async with trio.open_nursery() as recording:
            recording.start_soon(self._record, done)
            async with trio.open_nursery() as nursery:
                for each in self._begun:
                    nursery.start_soon(keep_on, *each)
            done.set()
        return posted

    async def _record(self, done: trio.Event) -> None:
        while self._made or not done.is_set():
            part = [self._made.popleft() for _ in range(min(_TOGETHER, len(self._made)))]
            if part:
                await self.store.write(InlineJob(partial(_end_all, self.endpoint, part)))
                self.newest, self.position = part[-1].id, part[-1].position
            else:
                await trio.sleep(_TURN_S)


def _end_all(endpoint: int, deliveries: Sequence[Delivery], tx: Transaction) -> None:
    now = wall_clock()
    tx.prefetch_results(endpoint, deliveries)
    for each in deliveries:
        assert tx.record_end(each, Attempt(1, now, 20, 200, None, _ANSWER), "delivered", None)


async def _measured(asked: dict[str, Any]) -> dict[str, list[tuple[float, ...]]]:
    taken: dict[str, list[tuple[float, ...]]] = {past: [] for past in asked["urls"]}
    async with AsyncExitStack() as stack:
        lives: dict[str, _Life] = {}
        for past, url in asked["urls"].items():
            made: deque[Delivery] = deque()

            def gather(commit: Commit, made: deque[Delivery] = made) -> None:
                made.extend(commit.deliveries)

            opening = open_postgres(url, node="poster", batch=BATCH_MAX, readers=1, on_commit=gather)
            life = lives[past] = _Life(await stack.enter_async_context(opening), made)
            await life.begin(stack)
            await life.post(asked["load_s"])
        for _ in range(asked["rounds"]):
            for past, life in lives.items():
                cpu, server = time.process_time(), server_s(asked["server"])
                posted = await life.post(asked["load_s"])
                node_us = (time.process_time() - cpu) * 1e6 / posted
                server_us = (server_s(asked["server"]) - server) * 1e6 / posted
                reads = _reads(life.project.rowid, life.endpoint, life.newest, life.position)
                costs = [await query_us(life.store, read, asked["server"], _READS) for read in reads.values()]
                taken[past].append((node_us, server_us, *costs))
    return taken


def _reads(project: int, endpoint: int, newest: str, position: int) -> dict[str, Read]:
    now = wall_clock()
    return {
        "a delivery by id": lambda reader: reader.delivery_record(project, newest),
        "a page of 50": lambda reader: reader.delivery_records(project, endpoint, DeliveryFilter(), None, 50),
        "pending deliveries": lambda reader: reader.pending_deliveries(endpoint, position - 4, 100),
        "a day's figures": lambda reader: reader.delivery_figures(
            project, endpoint, [now - hour * 3_600_000 for hour in range(24, 0, -1)], None
        ),
    }


if __name__ == "__main__":
    print(json.dumps(trio.run(_measured, json.loads(sys.stdin.readline()))), flush=True)
