"""The end of a day of `deliveries` on PostgreSQL by deletion and by dropped partitions, and the cost of partitions for a delivery.

Retention's own code removes the same days of two databases in turn. Then the same messages are posted and delivered beside one
table, 13 and 43 partitions in turn: each is stored with its delivery, and results are recorded as the workers do.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import trio
from tests.support.postgres import PostgresServer, own_server

from benchmarks import processes
from benchmarks.filling import post
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from benchmarks.sharing import actors_of, begun_in, found_projects, server_s
from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import DAY_MS, new_id
from deskwire.engine.core.store import Brief
from deskwire.engine.ports import Commit, SharedReader, Transaction
from deskwire.engine.privacy.retention import BATCH
from deskwire.engine.webhooks.delivery import Attempt, Delivery, DeliveryFilter
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from deskwire.storage.postgres.schema.days import ATTEMPTS, DELIVERIES, TODAY, add_day
from deskwire.storage.postgres.store import PostgresStore, open_postgres

_DAYS: Final = 30
_KEPT: Final = (0, 7, 37)
"""Past days with a partition; there are four of today and to come, and two of no day."""

_PAST_ROWS: Final = 60_000
"""Deliveries of another project on the past days, so that PostgreSQL plans for partitions with rows."""

_SPLIT: Final = "m0032_deliveries_by_day"
_AS_BEFORE: Final = (
    "ALTER TABLE deliveries ADD COLUMN day integer NOT NULL DEFAULT 0",
    "ALTER TABLE attempts ADD COLUMN day integer NOT NULL DEFAULT 0",
    "ALTER TABLE attempts DROP CONSTRAINT attempts_pkey",
    "ALTER TABLE attempts ADD PRIMARY KEY (delivery, number, day)",
)
"""The tables of before the split, as far as this program's statements need them otherwise."""

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
_WAL: Final = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
_SIZE: Final = (
    "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits "
    "WHERE inhparent IN ('deliveries'::regclass, 'attempts'::regclass)"
)
_BATCH: Final = 64
_IN_FLIGHT: Final = 16
_TOGETHER: Final = 32
"""Results that are recorded together, as by the worker of an endpoint."""

_READS: Final = 200
_TURN_S: Final = 0.001

Read = Callable[[SharedReader], object]


def measure(scale: Scale, _directory: Path) -> list[Section]:
    """Measure a day's end both ways, then deliveries and queries beside partitions; each way on a database of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="deskwire-pg-", ignore_cleanup_errors=True) as place,
        own_server(Path(place), {"shared_buffers": "256MB", "autovacuum": "off"}) as server,
    ):
        ((version,),) = server.run("SHOW server_version")
        return [_ends(server, scale, version), _costs(server, scale)]


def _ends(server: PostgresServer, scale: Scale, version: str) -> Section:
    urls = {way: _filled(server, way, scale.day_rows) for way in ("deleted", "dropped")}
    taken = trio.run(_both_ways, urls, server.pid, scale.rounds)
    plain = median([one[1] for one in taken["deleted"]])
    rows: list[tuple[Cell, ...]] = []
    for way, each in taken.items():
        figures = [median(column) for column in zip(*each, strict=True)]
        rows.append((way, *figures, figures[1] / plain if plain else None))
    columns = ("a day is", "ms", "PostgreSQL ms", "log KB", "MB given back", "of deleting's PostgreSQL ms")
    note = (
        f"{_DAYS} days of {scale.day_rows:,} deliveries with an attempt each, PostgreSQL {version}, synced, autovacuum off: "
        "deleting includes the VACUUM that makes the room usable again. PostgreSQL ms: its processor time."
    )
    return Section("delivery-day-end", "The end of a day of deliveries", columns, rows, note)


def _filled(server: PostgresServer, name: str, rows: int) -> str:
    server.run(f"CREATE DATABASE {name}")
    url = server.url(name)
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connection:
        first = _today(connection) - _DAYS
        for day in range(first, first + _DAYS) if name == "dropped" else ():
            for table in (DELIVERIES, ATTEMPTS):
                add_day(connection, table, day)
        values = {"project": 1, "first": first * DAY_MS, "rows": rows, "dated": name == "dropped"}
        connection.execute(_FILL, {**values, "begin": 1, "end": _DAYS * rows})
        connection.execute(_ATTEMPTS, (_ANSWER,))
        connection.execute("VACUUM (ANALYZE) deliveries, attempts")
    trio.run(_found, url)
    return url


async def _found(url: str) -> None:
    async with open_postgres(url, node="founder", batch=1, readers=1, on_commit=lambda _: None) as store:
        await found_projects(store, 1)


async def _both_ways(urls: dict[str, str], server: int, rounds: int) -> dict[str, list[tuple[float, ...]]]:
    taken: dict[str, list[tuple[float, ...]]] = {way: [] for way in urls}
    async with AsyncExitStack() as stack:
        stores = {
            way: await stack.enter_async_context(
                open_postgres(url, node=way, batch=_BATCH, readers=1, on_commit=lambda _: None)
            )
            for way, url in urls.items()
        }
        with psycopg.connect(urls["deleted"], autocommit=True) as connection:
            first = _today(connection) - _DAYS
        for number in range(1, rounds + 1):
            for way, url in urls.items():
                with psycopg.connect(url, autocommit=True) as connection:
                    end = (first + number) * DAY_MS
                    taken[way].append(await _end_of_day(stores[way], connection, server, end))
    return taken


async def _end_of_day(
    store: PostgresStore, connection: psycopg.Connection, server: int, older_than: int
) -> tuple[float, ...]:
    size, wal = (_number(connection, sql) for sql in (_SIZE, _WAL))
    began, cpu = time.perf_counter(), server_s(server)

    def prune(tx: Transaction) -> int:
        return tx.prune_deliveries(older_than, BATCH)

    while await store.write(prune) >= BATCH:
        pass
    connection.execute(f"VACUUM {DELIVERIES.undated}, {ATTEMPTS.undated}")
    elapsed, used = time.perf_counter() - began, server_s(server) - cpu
    back = size - _number(connection, _SIZE)
    return elapsed * 1e3, used * 1e3, (_number(connection, _WAL) - wal) / 1e3, back / 1e6


def _costs(server: PostgresServer, scale: Scale) -> Section:
    urls = {past: _beside(server, past) for past in _KEPT}
    question = json.dumps(
        {"urls": urls, "server": server.pid, "rounds": scale.rounds, "load_s": scale.load_s}
    )
    taken = json.loads(processes.answer("benchmarks.delivery_days", question, core=processes.SERVER))
    plain = [median(column) for column in zip(*taken["0"], strict=True)]
    rows: list[tuple[Cell, ...]] = []
    for past, each in taken.items():
        figures = [median(column) for column in zip(*each, strict=True)]
        label = "one table" if past == "0" else f"{int(past) + 6} partitions"
        rows.append((label, *figures, figures[1] / plain[1] if plain[1] else None))
    columns = (
        "deliveries in",
        "node µs",
        "PostgreSQL µs",
        *(f"{name} µs" for name in _reads(0, 0, "", 0)),
        "of one table's µs",
    )
    note = (
        f"{_IN_FLIGHT} conversations post, one endpoint; µs: processor time of a message with its delivery and the result of that, of "
        "the node and of PostgreSQL. Then PostgreSQL's for each query."
    )
    return Section("delivery-day-costs", "The cost of partitions for a delivery", columns, rows, note)


def _beside(server: PostgresServer, past: int) -> str:
    server.run(f"CREATE DATABASE beside_{past}")
    url = server.url(f"beside_{past}")
    migrate(url, MIGRATIONS if past else [each for each in MIGRATIONS if each.name != _SPLIT])
    with psycopg.connect(url, autocommit=True) as connection:
        today = _today(connection)
        for day in range(today - past, today):
            for table in (DELIVERIES, ATTEMPTS):
                add_day(connection, table, day)
        for statement in () if past else _AS_BEFORE:
            connection.execute(statement.encode())
        each = _PAST_ROWS // (past or 1)
        values = {"first": (today - past) * DAY_MS, "rows": each, "dated": past > 0}
        connection.execute(_FILL, {**values, "project": 2, "begin": 1, "end": _PAST_ROWS // each * each})
        connection.execute("VACUUM (ANALYZE)")
    return url


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
        self._begun = await begun_in(self._actors, [self.project], _IN_FLIGHT)

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
                await self.store.write(Brief(partial(_end_all, part)))
                self.newest, self.position = part[-1].id, part[-1].position
            else:
                await trio.sleep(_TURN_S)


def _end_all(deliveries: Sequence[Delivery], tx: Transaction) -> None:
    now = wall_clock()
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

            opening = open_postgres(url, node="poster", batch=_BATCH, readers=1, on_commit=gather)
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
                costs = [await _cost(life.store, read, asked["server"]) for read in reads.values()]
                taken[past].append((node_us, server_us, *costs))
    return taken


def _reads(project: int, endpoint: int, newest: str, position: int) -> dict[str, Read]:
    now = wall_clock()
    return {
        "a delivery by id": lambda reader: reader.delivery_record(project, newest),
        "a page of 50": lambda reader: reader.delivery_records(project, endpoint, DeliveryFilter(), None, 50),
        "what is pending": lambda reader: reader.pending_deliveries(endpoint, position - 4, 100),
        "a day's figures": lambda reader: reader.delivery_figures(
            project, endpoint, [now - hour * 3_600_000 for hour in range(24, 0, -1)], None
        ),
    }


async def _cost(store: PostgresStore, read: Read, server: int) -> float:
    for _ in range(10):
        await store.read(partial(read))
    cpu = server_s(server)
    for _ in range(_READS):
        await store.read(partial(read))
    return (server_s(server) - cpu) * 1e6 / _READS


def _today(connection: psycopg.Connection) -> int:
    return int(_number(connection, TODAY))


def _number(connection: psycopg.Connection, sql: str) -> float:
    return float(connection.execute(sql.encode()).fetchall()[0][0])


if __name__ == "__main__":
    print(json.dumps(trio.run(_measured, json.loads(sys.stdin.readline()))), flush=True)
