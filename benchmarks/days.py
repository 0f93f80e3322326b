"""The end of a day of `events` on PostgreSQL by deletion and by a dropped partition, and the cost of partitions.

Retention's own code removes the same days of two databases in turn. In one of them all rows are in the undated partition,
which is the table of before the split. Then the same load is posted to one table, 13 and 43 partitions in turn.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import trio
from tests.support.postgres import PostgresServer, own_server

from benchmarks import processes
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from benchmarks.sharing import actors_of, begun_in, found_projects, keep_posting, opened, server_s
from deskwire.engine.core.ids import DAY_MS
from deskwire.engine.ports import SharedReader, Transaction
from deskwire.engine.privacy.retention import BATCH
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from deskwire.storage.postgres.schema.days import EVENTS, TODAY, add_day
from deskwire.storage.postgres.store import PostgresStore

_DAYS: Final = 30
_BODY: Final = 1_000
_KEPT: Final = (0, 7, 37)
"""Past days with a partition; there are four of today and to come, and two of no day."""

_SPLIT: Final = "m0027_events_by_day"
_FILL: Final = """
INSERT INTO events (position, id, project, conversation, sequence, type, created_at, body, day)
SELECT (1 :: bigint << 40) + n, concat('evt_', lpad(n::text, 26, '0')), 1, n / 10, n %% 10, 'message.created',
    %(first)s + (n - 1) / %(rows)s * 86400000 :: bigint, decode(repeat(md5(n::text), %(body)s / 16), 'hex'),
    CASE WHEN %(dated)s THEN (%(first)s / 86400000)::int + (n - 1)::int / %(rows)s ELSE 0 END
FROM generate_series(%(begin)s :: bigint, %(end)s :: bigint) AS n
"""
_HEAD: Final = "UPDATE project_heads SET position = (1 :: bigint << 40) + %s WHERE project = 1"
_WAL: Final = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
_SIZE: Final = (
    "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'events'::regclass"
)
_BATCH: Final = 64
_IN_FLIGHT: Final = 16
_READS: Final = 400

Read = Callable[[SharedReader], object]


def measure(scale: Scale, _directory: Path) -> list[Section]:
    """Measure a day's end both ways, then posts and reads beside partitions; each way on a database of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="deskwire-pg-", ignore_cleanup_errors=True) as place,
        own_server(Path(place), {"shared_buffers": "256MB", "autovacuum": "off"}) as server,
    ):
        ((version,),) = server.run("SHOW server_version")
        return [_ends(server, scale, version), _costs(server, scale)]


def _ends(server: PostgresServer, scale: Scale, version: str) -> Section:
    urls = {way: _filled(server, way, scale.day_rows) for way in ("deleted", "dropped")}
    taken = trio.run(_both_ways, urls, server.pid, scale.rounds)
    rows: list[tuple[Cell, ...]] = []
    for way, each in taken.items():
        figures = [median(column) for column in zip(*each, strict=True)]
        plain = median([one[1] for one in taken["deleted"]])
        rows.append((way, *figures, figures[1] / plain if plain else None))
    columns = ("a day is", "ms", "PostgreSQL ms", "log KB", "MB given back", "of deleting's PostgreSQL ms")
    note = (
        f"{_DAYS} days of {scale.day_rows:,} events with a body of {_BODY} bytes, PostgreSQL {version}, synced, autovacuum off: "
        "deleting includes the VACUUM that makes the room usable again. PostgreSQL ms: its processor time."
    )
    return Section("day-end", "The end of a day of events", columns, rows, note)


def _filled(server: PostgresServer, name: str, rows: int) -> str:
    server.run(f"CREATE DATABASE {name}")
    url = server.url(name)
    migrate(url)
    trio.run(_found, url)
    with psycopg.connect(url, autocommit=True) as connection:
        first = _today(connection) - _DAYS
        for day in range(first, first + _DAYS) if name == "dropped" else ():
            add_day(connection, EVENTS, day)
        values = {"first": first * DAY_MS, "rows": rows, "body": _BODY, "dated": name == "dropped"}
        for day in range(_DAYS):
            connection.execute(_FILL, {**values, "begin": day * rows + 1, "end": (day + 1) * rows})
        connection.execute(_HEAD, (_DAYS * rows,))
        connection.execute("VACUUM (ANALYZE) events")
    return url


async def _found(url: str) -> None:
    async with opened(url, "founder") as store:
        await found_projects(store, 1)


async def _both_ways(urls: dict[str, str], server: int, rounds: int) -> dict[str, list[tuple[float, ...]]]:
    taken: dict[str, list[tuple[float, ...]]] = {way: [] for way in urls}
    async with AsyncExitStack() as stack:
        stores = {way: await stack.enter_async_context(opened(url, way)) for way, url in urls.items()}
        with psycopg.connect(urls["deleted"], autocommit=True) as connection:
            first = _today(connection) - _DAYS
        for number in range(1, rounds + 1):
            for way, url in urls.items():
                with psycopg.connect(url, autocommit=True) as connection:
                    taken[way].append(
                        await _end_of_day(stores[way], connection, server, (first + number) * DAY_MS)
                    )
    return taken


async def _end_of_day(
    store: PostgresStore, connection: psycopg.Connection, server: int, older_than: int
) -> tuple[float, ...]:
    size, wal = (_number(connection, sql) for sql in (_SIZE, _WAL))
    began, cpu = time.perf_counter(), server_s(server)

    def prune(tx: Transaction) -> int:
        return tx.prune_events(older_than, BATCH, older_than)

    while await store.write(prune) >= BATCH:
        pass
    connection.execute(f"VACUUM {EVENTS.undated}")
    elapsed, used = time.perf_counter() - began, server_s(server) - cpu
    back = size - _number(connection, _SIZE)
    return elapsed * 1e3, used * 1e3, (_number(connection, _WAL) - wal) / 1e3, back / 1e6


def _costs(server: PostgresServer, scale: Scale) -> Section:
    urls = {past: _beside(server, past) for past in _KEPT}
    question = json.dumps(
        {"urls": urls, "server": server.pid, "rounds": scale.rounds, "load_s": scale.load_s}
    )
    taken = json.loads(processes.answer("benchmarks.days", question, core=processes.SERVER))
    rows: list[tuple[Cell, ...]] = []
    for past, each in taken.items():
        figures = [median(column) for column in zip(*each, strict=True)]
        plain = [median(column) for column in zip(*taken["0"], strict=True)]
        label = "one table" if past == "0" else f"{int(past) + 6} partitions"
        rows.append((label, *figures, figures[1] / plain[1] if plain[1] else None))
    columns = (
        "events in",
        "node µs",
        "PostgreSQL µs",
        *(f"{name} µs" for name in _reads(0, "", 0)),
        "of one table's µs",
    )
    note = (
        f"{_IN_FLIGHT} conversations post; µs: processor time of a message, of the node and of PostgreSQL. Then PostgreSQL's for "
        "each query of a follower for new events, of an event by its id, and of a conversation's events."
    )
    return Section("day-costs", "The cost of partitions for a message and a query", columns, rows, note)


def _beside(server: PostgresServer, past: int) -> str:
    server.run(f"CREATE DATABASE beside_{past}")
    url = server.url(f"beside_{past}")
    if past:
        migrate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            today = _today(connection)
            for day in range(today - past, today):
                add_day(connection, EVENTS, day)
    else:
        migrate(url, [each for each in MIGRATIONS if each.name != _SPLIT])
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE events ADD COLUMN day integer NOT NULL DEFAULT 0")
    return url


async def _measured(asked: dict[str, Any]) -> dict[str, list[tuple[float, ...]]]:
    taken: dict[str, list[tuple[float, ...]]] = {past: [] for past in asked["urls"]}
    async with AsyncExitStack() as stack:
        lives = {}
        for past, url in asked["urls"].items():
            store = await stack.enter_async_context(opened(url, "poster", _BATCH))
            await found_projects(store, 1)
            [project] = await store.read(lambda reader: reader.projects(None, None, 1 << 60, 1))
            actors = await stack.enter_async_context(actors_of(store))
            lives[past] = store, project, actors, await begun_in(actors, [project], _IN_FLIGHT)
            await keep_posting([actors], lives[past][3], asked["load_s"], asked["server"])
        for _ in range(asked["rounds"]):
            for past, (store, project, actors, begun) in lives.items():
                posted = await keep_posting([actors], begun, asked["load_s"], asked["server"])
                position, event_id = await store.read(partial(_newest, project.rowid))
                reads = _reads(project.rowid, event_id, position)
                costs = [await _cost(store, read, asked["server"]) for read in reads.values()]
                taken[past].append((posted.node_us, posted.server_us, *costs))
    return taken


def _newest(project: int, reader: SharedReader) -> tuple[int, str]:
    newest = reader.newest_event(project)
    assert newest is not None
    return newest


def _reads(project: int, event_id: str, position: int) -> dict[str, Read]:
    return {
        "new events": lambda reader: reader.stretches([(project, position - 4)], 100),
        "an event by id": lambda reader: reader.event(project, event_id),
        "a conversation": lambda reader: reader.conversation_events(1, 0, 50),
    }


async def _cost(store: PostgresStore, read: Read, server: int) -> float:
    for _ in range(20):
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
