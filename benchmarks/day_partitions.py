"""Measurements of tables with partitions by day, shared by the benchmarks of events and of deliveries.

The end of a day is measured on two databases in turn: in one all rows are in the undated partition, and retention deletes them; in
the other it drops the day's partition. The cost is measured for one table and several numbers of partitions in turn.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import psycopg
import trio
from msgspec import Struct
from tests.support.postgres import PostgresServer, own_server

from benchmarks import processes
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from benchmarks.sharing import found_projects, opened, server_s
from deskwire.engine.core.ids import DAY_MS
from deskwire.engine.ports import SharedReader, Transaction
from deskwire.engine.privacy.retention import BATCH_SIZE
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.schema.days import TODAY, DayTable, add_day
from deskwire.storage.postgres.store import PostgresStore

DAYS: Final = 30
BATCH_MAX: Final = 64
"""Maximum number of commands in a commit."""

IN_FLIGHT: Final = 16
"""Conversations that post concurrently."""

_KEPT: Final = (0, 7, 37)
"""Past days with a partition; there are four of today and to come, and two of no day."""

_WAL: Final = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"

Read = Callable[[SharedReader], object]


class DayEnd(Struct, frozen=True):
    """A kind of rows that retention removes by day.

    Args:
        tables: the tables with these rows.
        fill: stores rows from day `first` on, with their days if `dated`: takes a connection, `first` and `dated`.
        prune: one commit of retention: takes the transaction and the time (ms) before which rows are too old.
    """

    tables: Sequence[DayTable]
    fill: Callable[[psycopg.Connection, int, bool], None]
    prune: Callable[[Transaction, int], int]


@contextmanager
def server_for_days() -> Iterator[PostgresServer]:
    """Run a server of its own, without autovacuum."""
    with (
        tempfile.TemporaryDirectory(prefix="deskwire-pg-", ignore_cleanup_errors=True) as place,
        own_server(Path(place), {"shared_buffers": "256MB", "autovacuum": "off"}) as server,
    ):
        yield server


def ends_of_day(
    server: PostgresServer, kind: DayEnd, rounds: int, name: str, title: str, filled: str
) -> Section:
    """Measure the end of a day both ways; return the section with this name and title, whose note says what was `filled`."""
    ((version,),) = server.run("SHOW server_version")
    urls = {way: _filled(server, way, kind) for way in ("deleted", "dropped")}
    taken = trio.run(_both_ways, urls, kind, server.pid, rounds)
    columns = ("a day is", "ms", "PostgreSQL ms", "log KB", "MB given back", "of deleting's PostgreSQL ms")
    note = (
        f"{DAYS} days of {filled}, PostgreSQL {version}, synced, autovacuum off: "
        "deleting includes the VACUUM that makes the room usable again. PostgreSQL ms: its processor time."
    )
    return Section(name, title, columns, list(_compared(taken, "deleted", str)), note)


def costs_of_partitions(
    server: PostgresServer, scale: Scale, module: str, beside: Callable[[str, int], None]
) -> list[tuple[Cell, ...]]:
    """Measure messages and queries beside one table and partitions in turn; return the rows of the table.

    Args:
        module: the module that is run in a process of its own, and answers with figures for each database.
        beside: migrates the database of this URL, with partitions for this number of past days.
    """
    urls = {past: server.url(f"beside_{past}") for past in _KEPT}
    for past, url in urls.items():
        server.run(f"CREATE DATABASE beside_{past}")
        beside(url, past)
    question = {"urls": urls, "server": server.pid, "rounds": scale.rounds, "load_s": scale.load_s}
    taken = json.loads(processes.answer(module, json.dumps(question), core=processes.SERVER))
    return list(
        _compared(taken, "0", lambda past: "one table" if past == "0" else f"{int(past) + 6} partitions")
    )


def _compared(
    taken: Mapping[str, Sequence[Sequence[float]]], plain: str, label: Callable[[str], str]
) -> Iterator[tuple[Cell, ...]]:
    """Yield a row of medians for each database, ending with the share of PostgreSQL's time that `plain` takes."""
    of = median([each[1] for each in taken[plain]])
    for name, rounds in taken.items():
        figures = [median(column) for column in zip(*rounds, strict=True)]
        yield label(name), *figures, figures[1] / of if of else None


def _filled(server: PostgresServer, name: str, kind: DayEnd) -> str:
    server.run(f"CREATE DATABASE {name}")
    url = server.url(name)
    migrate(url)
    trio.run(_found, url)
    with psycopg.connect(url, autocommit=True) as connection:
        first, dated = today(connection) - DAYS, name == "dropped"
        if dated:
            add_days(connection, kind.tables, range(first, first + DAYS))
        kind.fill(connection, first, dated)
        connection.execute(f"VACUUM (ANALYZE) {', '.join(table.name for table in kind.tables)}".encode())
    return url


async def _found(url: str) -> None:
    async with opened(url, "founder", 1) as store:
        await found_projects(store, 1)


async def _both_ways(
    urls: Mapping[str, str], kind: DayEnd, server: int, rounds: int
) -> dict[str, list[tuple[float, ...]]]:
    taken: dict[str, list[tuple[float, ...]]] = {way: [] for way in urls}
    async with AsyncExitStack() as stack:
        stores = {
            way: await stack.enter_async_context(opened(url, way, BATCH_MAX)) for way, url in urls.items()
        }
        with psycopg.connect(urls["deleted"], autocommit=True) as connection:
            first = today(connection) - DAYS
        for number in range(1, rounds + 1):
            for way, url in urls.items():
                with psycopg.connect(url, autocommit=True) as connection:
                    end = (first + number) * DAY_MS
                    taken[way].append(await _end_of_day(stores[way], connection, kind, server, end))
    return taken


async def _end_of_day(
    store: PostgresStore, connection: psycopg.Connection, kind: DayEnd, server: int, older_than: int
) -> tuple[float, ...]:
    size, wal = _size(connection, kind.tables), _number(connection, _WAL)
    began, cpu = time.perf_counter(), server_s(server)
    while await store.write(partial(_prune, kind, older_than)) >= BATCH_SIZE:
        pass
    connection.execute(f"VACUUM {', '.join(table.undated for table in kind.tables)}".encode())
    elapsed, used = time.perf_counter() - began, server_s(server) - cpu
    back = size - _size(connection, kind.tables)
    return elapsed * 1e3, used * 1e3, (_number(connection, _WAL) - wal) / 1e3, back / 1e6


def _prune(kind: DayEnd, older_than: int, tx: Transaction) -> int:
    return kind.prune(tx, older_than)


async def query_us(store: PostgresStore, read: Read, server: int, times: int) -> float:
    """Return PostgreSQL's processor time of a query, the mean of this many, in µs."""
    for _ in range(times // 20):
        await store.read(partial(read))
    cpu = server_s(server)
    for _ in range(times):
        await store.read(partial(read))
    return (server_s(server) - cpu) * 1e6 / times


def add_days(connection: psycopg.Connection, tables: Sequence[DayTable], wanted: Sequence[int]) -> None:
    """Add partitions of these days to each table."""
    for day in wanted:
        for table in tables:
            add_day(connection, table, day)


def today(connection: psycopg.Connection) -> int:
    """Return today on the server: days since 1970-01-01 in UTC."""
    return int(_number(connection, TODAY))


def _size(connection: psycopg.Connection, tables: Sequence[DayTable]) -> float:
    """Return the bytes of all partitions with their indexes."""
    parents = ", ".join(f"'{table.name}'::regclass" for table in tables)
    return _number(
        connection,
        f"SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent IN ({parents})",
    )


def _number(connection: psycopg.Connection, sql: str) -> float:
    return float(connection.execute(sql.encode()).fetchall()[0][0])
