"""Many stored conversations, of which a few are live, compared with a database that has only the live ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks import processes
from benchmarks.filling import fill_directory
from benchmarks.report import Cell, Section
from benchmarks.scale import Scale
from benchmarks.service import deskwire
from benchmarks.taking import in_turn, middle, ratio, take


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Post to as many conversations of each, in turn."""
    alive, stored = scale.live[0], scale.conversations_stored
    with ExitStack() as stack:
        servers, targets = {}, []
        for count in (alive, stored):
            where = directory / f"crowded-{count}"
            ids = fill_directory(where, count, count)
            chosen = ids[:: max(1, count // alive)][:alive]
            label = f"{count:,}"
            servers[label] = stack.enter_context(deskwire(where, actor_idle_s="3600"))
            servers[label].wake(chosen)
            job = servers[label].posts(chosen, **scale.load(64))
            targets.append((label, partial(take, servers[label], job)))
        taken = in_turn(scale.rounds, targets)
        memory = {label: processes.resident_mb(server.process) for label, server in servers.items()}

    def rows() -> Iterator[tuple[Cell, ...]]:
        for label, found in taken.items():
            of_all = middle(found)
            share = ratio(taken, label, f"{alive:,}")
            yield label, of_all.rate, of_all.p50, of_all.p99, of_all.worst, of_all.us, share, memory[label]

    columns = ("conversations stored", "POST/s", "p50 ms", "p99 ms", "worst ms", "server's µs", "share", "MB")
    title = f"POST to {alive:,} conversations, 64 connections"
    note = "One message for each stored conversation before; MB: resident memory of the server afterwards."
    return [Section("crowded", title, columns, list(rows()), note)]
