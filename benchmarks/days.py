"""The end of a day of `events` on PostgreSQL by deletion and by a dropped partition, and the cost of partitions.

Retention's own code removes the same days of two databases in turn. In one of them all rows are in the undated partition,
which is the table from before the split. Then the same load is posted to one table, 13 and 43 partitions in turn.
"""

from __future__ import annotations

import json
import sys
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
from benchmarks.report import Section
from benchmarks.scale import Scale
from benchmarks.sharing import actors_of, begun_in, found_projects, keep_posting, opened
from deskwire.engine.core.ids import DAY_MS
from deskwire.engine.ports import SharedReader, Transaction
from deskwire.engine.privacy.retention import BATCH_SIZE
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from deskwire.storage.postgres.schema.days import EVENTS

_BODY: Final = 1_000
_SPLIT: Final = "m0027_events_by_day"
_FILL: Final = """
INSERT INTO events (position, id, project, conversation, sequence, type, created_at, body, day)
SELECT (1 :: bigint << 40) + n, concat('evt_', lpad(n::text, 26, '0')), 1, n / 10, n %% 10, 'message.created',
    %(first)s + (n - 1) / %(rows)s * 86400000 :: bigint, decode(repeat(md5(n::text), %(body)s / 16), 'hex'),
    CASE WHEN %(dated)s THEN (%(first)s / 86400000)::int + (n - 1)::int / %(rows)s ELSE 0 END
FROM generate_series(%(begin)s :: bigint, %(end)s :: bigint) AS n
"""
_HEAD: Final = "UPDATE project_heads SET position = (1 :: bigint << 40) + %s WHERE project = 1"
_READS: Final = 400


def measure(scale: Scale, _directory: Path) -> list[Section]:
    """Measure a day's end both ways, then posts and reads beside partitions; each way on a database of its own."""
    kind = DayEnd([EVENTS], partial(_fill, scale.day_rows), _prune)
    filled = f"{scale.day_rows:,} events with a body of {_BODY} bytes"
    with server_for_days() as server:
        ends = ends_of_day(server, kind, scale.rounds, "day-end", "The end of a day of events", filled)
        return [ends, _costs(server, scale)]


def _fill(rows: int, connection: psycopg.Connection, first: int, dated: bool) -> None:
    values = {"first": first * DAY_MS, "rows": rows, "body": _BODY, "dated": dated}
    for day in range(DAYS):
        connection.execute(_FILL, {**values, "begin": day * rows + 1, "end": (day + 1) * rows})
    connection.execute(_HEAD, (DAYS * rows,))


def _prune(tx: Transaction, older_than: int) -> int:
    return tx.prune_events(older_than, BATCH_SIZE, older_than)


def _costs(server: PostgresServer, scale: Scale) -> Section:
    rows = costs_of_partitions(server, scale, "benchmarks.days", _beside)
    columns = (
        "events in",
        "node µs",
        "PostgreSQL µs",
        *(f"{name} µs" for name in _reads(0, "", 0)),
        "of one table's µs",
    )
    note = (
        f"{IN_FLIGHT} conversations post; µs: processor time of a message, of the node and of PostgreSQL. Then PostgreSQL's for "
        "each query of a follower for new events, of an event by its id, and of a conversation's events."
    )
    return Section("day-costs", "The cost of partitions for a message and a query", columns, rows, note)


def _beside(url: str, past: int) -> None:
    migrate(url, MIGRATIONS if past else [each for each in MIGRATIONS if each.name != _SPLIT])
    with psycopg.connect(url, autocommit=True) as connection:
        now = today(connection)
        add_days(connection, [EVENTS] if past else [], range(now - past, now))
        if not past:
            connection.execute("ALTER TABLE events ADD COLUMN day integer NOT NULL DEFAULT 0")


async def _measured(asked: dict[str, Any]) -> dict[str, list[tuple[float, ...]]]:
    taken: dict[str, list[tuple[float, ...]]] = {past: [] for past in asked["urls"]}
    async with AsyncExitStack() as stack:
        lives = {}
        for past, url in asked["urls"].items():
            store = await stack.enter_async_context(opened(url, "poster", BATCH_MAX))
            await found_projects(store, 1)
            [project] = await store.read(lambda reader: reader.projects(None, None, 1 << 60, 1))
            actors = await stack.enter_async_context(actors_of(store))
            lives[past] = store, project, actors, await begun_in(actors, [project], IN_FLIGHT)
            await keep_posting([actors], lives[past][3], asked["load_s"], asked["server"])
        for _ in range(asked["rounds"]):
            for past, (store, project, actors, begun) in lives.items():
                posted = await keep_posting([actors], begun, asked["load_s"], asked["server"])
                position, event_id = await store.read(partial(_newest, project.rowid))
                reads = _reads(project.rowid, event_id, position)
                costs = [await query_us(store, read, asked["server"], _READS) for read in reads.values()]
                taken[past].append((posted.node_us, posted.server_us, *costs))
    return taken


def _newest(project: int, reader: SharedReader) -> tuple[int, str]:
    newest = reader.newest_event(project)
    assert newest is not None
    return newest


def _reads(project: int, event_id: str, position: int) -> dict[str, Read]:
    return {
        "new events": lambda reader: reader.segments([(project, position - 4)], 100),
        "an event by id": lambda reader: reader.event(project, event_id),
        "a conversation": lambda reader: reader.conversation_events(1, 0, 50),
    }


if __name__ == "__main__":
    print(json.dumps(trio.run(_measured, json.loads(sys.stdin.readline()))), flush=True)
