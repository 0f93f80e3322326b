"""The limit of one PostgreSQL: recorded exchanges of nodes, replayed by bare libpq as fast as the server takes them.

Each lane has the batches that one node sends for its own project, one after the other. It is recorded from the engine on one
copy of a database, and replayed on identical copies, without the engine and without building rows, by a process that uses a
tenth of the server's processor time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any, Final

import psycopg
import trio
from psycopg import pq

from benchmarks import processes
from benchmarks.filling import create, post
from benchmarks.report import Cell, Section, median
from benchmarks.sharing import actors_of, found_projects, opened, server_s
from deskwire.engine.accounts.people import Project
from deskwire.storage.postgres.commit.batch_statements import COMMIT
from deskwire.storage.postgres.driver.pipeline import PipelineConnection, Statement
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.migrations.apply import migrate

LANES: Final = 6
_MESSAGES: Final = 3_200
"""Messages of each lane for large batches; fewer for small ones."""
_COMMITS: Final = 200
_CORES: Final = (4, 16)

Exchanges = list[list[Statement]]


def measure(asked: dict[str, Any], batches: Sequence[int], rounds: int) -> Section:
    """Measure batches of each size; `asked` names the server's URL and its process."""
    question = json.dumps({**asked, "batches": list(batches), "rounds": rounds})
    taken = json.loads(processes.answer("benchmarks.primary", question, core=processes.LOAD))
    rows = [_row(int(batch), *map(median, zip(*each, strict=True))) for batch, each in taken.items()]
    columns = (
        *(
            "messages in a commit",
            "commits/s",
            "messages/s",
            "PostgreSQL µs",
            "its cores",
            "driver µs",
            "log KB",
        ),
        *(f"at {cores} cores" for cores in _CORES),
    )
    note = (
        f"{LANES} lanes, each with a project of its own; synced. µs: processor time of a message. Its cores: how many of "
        "the machine's two the server kept busy. Log: bytes that a standby or an archive gets for a message. At more cores: messages/s by "
        "processor time alone, if nothing else is the limit before."
    )
    return Section("primary", "The limit of a primary", columns, rows, note)


def _row(
    batch: int, rate: float, server_us: float, cores: float, driver_us: float, log_kb: float
) -> tuple[Cell, ...]:
    at_more = [cores_ * 1e6 / server_us for cores_ in _CORES]
    return batch, rate / batch, rate, server_us, cores, driver_us, log_kb, *at_more


async def _measured(asked: dict[str, Any]) -> dict[int, list[tuple[float, ...]]]:
    taken: dict[int, list[tuple[float, ...]]] = {}
    with _fresh(asked["url"], "primary_begun", None) as begun:
        migrate(begun)
        async with opened(begun, "founder") as store:
            await found_projects(store, LANES)
        for batch in asked["batches"]:
            with _fresh(asked["url"], "primary_recorded", "primary_begun") as recorded:
                lanes = [await _recorded(recorded, number, batch) for number in range(LANES)]
            for _ in range(asked["rounds"]):
                with _fresh(asked["url"], "primary_replayed", "primary_begun") as replayed:
                    taken.setdefault(batch, []).append(
                        await _replayed(replayed, asked["server"], lanes, batch)
                    )
    return taken


@contextmanager
def _fresh(url: str, name: str, template: str | None) -> Iterator[str]:
    """Yield the URL of a database that exists for the block."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template0'}".encode())
        try:
            yield f"{url.rpartition('/')[0]}/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


async def _recorded(url: str, number: int, batch: int) -> tuple[Exchanges, Exchanges]:
    """Let the engine write as one node; return its exchanges for new conversations, and for messages in them."""
    with _recording() as exchanges:
        async with opened(url, f"lane-{number}", batch) as store, actors_of(store) as actors:
            known = await store.read(lambda reader: reader.projects(None, None, 1 << 60, LANES))
            project = known[number]
            commands = [create(project, at, f"lane-{number}-") for at in range(batch)]
            for command in commands:
                await actors.create(project, command)
            begun = len(exchanges)
            each = max(1, min(_COMMITS, _MESSAGES // batch))

            async def keep_posting(project: Project, conversation: str) -> None:
                for _ in range(each):
                    await actors.ask(project, conversation, post())

            async with trio.open_nursery() as nursery:
                for command in commands:
                    nursery.start_soon(keep_posting, project, command.conversation_id)
    return exchanges[:begun], exchanges[begun:]


@contextmanager
def _recording() -> Iterator[Exchanges]:
    """Record the batches that are sent within the block."""
    exchanges: Exchanges = []
    plain = PipelineConnection.exchange

    async def exchange(
        wire: PipelineConnection, statements: Sequence[Statement], patience_s: float = inf
    ) -> list[pq.abc.PGresult]:
        if wire.role == "batch":
            exchanges.append(list(statements))
        return await plain(wire, statements, patience_s)

    PipelineConnection.exchange = exchange  # type: ignore[method-assign,assignment]  # for the block
    try:
        yield exchanges
    finally:
        PipelineConnection.exchange = plain  # type: ignore[method-assign]


async def _replayed(
    url: str, server: int, lanes: Sequence[tuple[Exchanges, Exchanges]], batch: int
) -> tuple[float, ...]:
    """Send all lanes' exchanges at once; return rate, server's µs, its cores, the driver's µs and the log's KB."""
    wires = [PipelineConnection(Database(url, f"lane-{number}"), "batch") for number in range(len(lanes))]
    try:
        for wire, (beginning, _) in zip(wires, lanes, strict=True):
            await _send(wire, beginning)
        before = _log_bytes(url)
        began, cpu, database = time.perf_counter(), time.process_time(), server_s(server)
        async with trio.open_nursery() as nursery:
            for wire, (_, rest) in zip(wires, lanes, strict=True):
                nursery.start_soon(_send, wire, rest)
        elapsed, own = time.perf_counter() - began, time.process_time() - cpu
        spent = server_s(server) - database
        log_kb = (_log_bytes(url) - before) / 1000
    finally:
        for wire in wires:
            wire.close()
    commits = sum(COMMIT in exchange for _, rest in lanes for exchange in rest)
    messages = _stored(url) - len(lanes) * batch
    assert messages == batch * len(lanes) * max(1, min(_COMMITS, _MESSAGES // batch)), "not all was stored"
    assert messages == batch * commits, "the batches are not of the size that is told"
    return (
        messages / elapsed,
        spent * 1e6 / messages,
        spent / elapsed,
        own * 1e6 / messages,
        log_kb / messages,
    )


async def _send(wire: PipelineConnection, exchanges: Exchanges) -> None:
    for statements in exchanges:
        await wire.exchange(statements)


def _log_bytes(url: str) -> int:
    return _one(url, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")


def _stored(url: str) -> int:
    return _one(url, "SELECT count(*) FROM messages")


def _one(url: str, query: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    print(json.dumps(trio.run(_measured, given)), flush=True)
