"""The cost of each operation with few and with many stored messages, which should be the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import processes
from benchmarks.job import Job
from benchmarks.reading import first_event, paths
from benchmarks.report import TIMES, Cell, Section
from benchmarks.scale import Scale
from benchmarks.searching import leave_out
from benchmarks.service import Server, deskwire
from benchmarks.stored import Stored, stored
from benchmarks.taking import Taken, in_turn, median_or_none, middle, take

_CONNECTIONS: Final = 16
_POST: Final = "POST"
_KB: Final = 1_000


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Post and read on databases of all sizes in turn."""
    databases = [stored(directory, messages, "growing") for messages in scale.stored]
    for each in databases:
        leave_out(each.directory)
    with ExitStack() as stack:
        servers = [stack.enter_context(deskwire(each.directory)) for each in databases]
        targets = [
            (f"{what} {database.messages}", partial(take, server, job))
            for server, database in zip(servers, databases, strict=True)
            for what, job in _jobs(scale, server, database).items()
        ]
        taken = in_turn(scale.rounds, targets)
        memory = [processes.resident_mb(server.process) for server in servers]
    rows = [_row(database, taken, mb) for database, mb in zip(databases, memory, strict=True)]
    kinds = ("POST", "a conversation", "50 messages", "50 events")
    columns = (
        "messages stored",
        "POST/s",
        *(f"POST {each}" for each in TIMES),
        *(f"{kind} µs" for kind in kinds),
        "MB",
        "KB a message",
    )
    note = (
        f"{_CONNECTIONS} connections. µs: the server's processor time for each. MB: resident memory of the server afterwards. "
        "KB a message: the disk space of a message with its event."
    )
    return [Section("growth", "With few messages stored, and with many", columns, rows, note)]


def _jobs(scale: Scale, server: Server, database: Stored) -> dict[str, Job]:
    how = scale.load(_CONNECTIONS)
    # From the middle: neither the newest nor the oldest rows.
    middle = database.ids[len(database.ids) // 2 :][:64]
    jobs = {_POST: server.posts(middle, **how)}
    for what, some in paths(middle, first_event(server, middle[0])).items():
        jobs[what] = server.gets(some, **how)
    return jobs


def _row(database: Stored, taken: dict[str, list[Taken]], mb: float) -> tuple[Cell, ...]:
    def costs() -> Iterator[float | None]:
        for label, found in taken.items():
            if label.endswith(f" {database.messages}"):
                yield median_or_none(each.us for each in found)

    posts = taken[f"{_POST} {database.messages}"]
    found = middle(posts)
    return (
        database.messages,
        found.rate,
        found.p50,
        found.p99,
        found.worst,
        *costs(),
        mb,
        database.size_mb * _KB / database.messages,
    )
