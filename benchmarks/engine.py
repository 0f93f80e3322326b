"""The engine without HTTP: commands through actors to disk, compared with commits of SQLite alone; JSON in, JSON out."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import trio

from benchmarks import processes
from benchmarks.filling import create, found, post
from benchmarks.report import TIMES, Cell, Section, median, times
from benchmarks.scale import Scale
from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.core.clock import wall_clock
from deskwire.storage.sqlite.database import connect_writer
from deskwire.storage.sqlite.store import open_store

_ROW: Final = bytes(1_000)
_BATCH: Final = 64
_Round = tuple[float, float, float, float, float]
_Figures = dict[str, list[_Round]]


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure commands a second in a separate process, on the servers' core."""
    wanted = json.dumps({"directory": str(directory / "engine"), "scale": asdict(scale)})
    figures: _Figures = json.loads(processes.answer("benchmarks.engine", wanted, core=processes.SERVER))
    rows: list[tuple[Cell, ...]] = [
        (label, *(median(column) for column in zip(*taken, strict=True))) for label, taken in figures.items()
    ]
    note = "A command is a posted message: conversation, message and event rows in one commit. µs: processor time of each."
    columns = ("what", "per second", *TIMES, "µs")
    return [Section("engine", "Engine and SQLite without HTTP", columns, rows, note)]


async def main(directory: Path, in_flight: list[int], rounds: int, for_s: float) -> _Figures:
    """Measure round by round, and return rate, p50, p99, worst and processor time of each."""
    figures: _Figures = {}
    async with open_store(directory, batch=256, readers=1, on_commit=lambda _: None) as store:
        project = await found(store, directory)
        with closing(_bare(directory / "bare.sqlite3")) as bare:
            async with trio.open_nursery() as actors:
                live = ActorRegistry(actors, store, wall_clock, mailbox=256, idle_s=3600, live=20_000)
                ids = await _conversations(live, project, max(in_flight))
                for _ in range(rounds):
                    for count in in_flight:
                        label = f"commands, {count} in flight"
                        figures.setdefault(label, []).append(
                            await _commands(live, project, ids[:count], for_s)
                        )
                    for size in (1, _BATCH):
                        label = f"bare SQLite, rows of 1 KB, {size} a commit"
                        figures.setdefault(label, []).append(_commits(bare, size, for_s))
                actors.cancel_scope.cancel()
    return figures


async def _conversations(live: ActorRegistry, project: Project, count: int) -> list[str]:
    commands = [create(project, number) for number in range(count)]
    for command in commands:
        await live.create(project, command)
    return [command.conversation_id for command in commands]


async def _commands(live: ActorRegistry, project: Project, ids: list[str], for_s: float) -> _Round:
    """Run a task for each conversation that posts again as soon as it has a result."""
    taken: list[float] = []
    began, cpu = time.perf_counter(), time.process_time()

    async def keep_posting(conversation_id: str) -> None:
        now = began
        while now < began + for_s:
            await live.ask(project, conversation_id, post())
            now, last = time.perf_counter(), now
            taken.append((now - last) * 1000)

    async with trio.open_nursery() as nursery:
        for each in ids:
            nursery.start_soon(keep_posting, each)
    return _figures(taken, len(taken), time.perf_counter() - began, time.process_time() - cpu)


def _bare(path: Path) -> sqlite3.Connection:
    connection = connect_writer(path)  # the same settings of SQLite
    connection.execute("CREATE TABLE rows (position INTEGER PRIMARY KEY, body BLOB)")
    return connection


def _commits(connection: sqlite3.Connection, size: int, for_s: float) -> _Round:
    """Return rows a second, and the milliseconds of each commit."""
    taken: list[float] = []
    now, cpu = time.perf_counter(), time.process_time()
    began = now
    while now < began + for_s:
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(size):
            connection.execute("INSERT INTO rows (body) VALUES (?)", (_ROW,))
        connection.execute("COMMIT")
        now, last = time.perf_counter(), now
        taken.append((now - last) * 1000)
    return _figures(taken, len(taken) * size, now - began, time.process_time() - cpu)


def _figures(taken: list[float], count: int, elapsed: float, cpu: float) -> _Round:
    taken.sort()
    return count / elapsed, *times(taken), cpu * 1e6 / count


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.stdin.read())
    sizes = Scale(**given["scale"])
    figures = trio.run(main, Path(given["directory"]), list(sizes.in_flight), sizes.rounds, sizes.load_s)
    print(json.dumps(figures))
