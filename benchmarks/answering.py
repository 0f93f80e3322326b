"""The time that PostgreSQL adds to an answer: a POST of a message to the real process, on each store in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import processes
from benchmarks.generator import load
from benchmarks.report import TIMES, Cell, Section, median, times
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire

_CONVERSATIONS: Final = 64
_SECRET: Final = "the secret of an installation with several nodes"
_Taken = list[tuple[float, float, float, float, float]]
"""Figures of a round: rate, p50, p99, worst and the node's µs."""


def measure(scale: Scale, directory: Path, url: str) -> Section:
    """Post to a node on SQLite and to one on the database, round by round."""
    shared = {"database_url": url, "secret": _SECRET, "node": "alone"}
    taken: dict[tuple[str, int], _Taken] = {}
    with (
        deskwire(directory / "SQLite") as alone,
        deskwire(directory / "PostgreSQL", **shared) as node,
    ):
        servers = {"SQLite": alone, "PostgreSQL": node}
        ids = {name: server.create(_CONVERSATIONS) for name, server in servers.items()}
        for _ in range(scale.rounds):
            for connections in scale.connections:
                for name, server in servers.items():
                    figures = _posted(scale, server, ids[name], connections)
                    taken.setdefault((name, connections), []).append(figures)
    rows = [_row(name, connections, taken) for connections in scale.connections for name in servers]
    columns = (
        "store",
        "in flight",
        "requests/s",
        *TIMES,
        "node µs",
        "added p50 ms",
        "added p99 ms",
        "of SQLite's p50",
        "of its p99",
    )
    note = f"{_CONVERSATIONS} conversations, over HTTP. Added: the median of the rounds' differences to SQLite. Without a network: of round trips to a database elsewhere a POST waits for two, of many at once for three."
    return Section("added", "POST a message on each store", columns, rows, note)


def _posted(
    scale: Scale, server: Server, ids: list[str], connections: int
) -> tuple[float, float, float, float, float]:
    before = processes.cpu_s(server.process)
    outcome = load(server.posts(ids, **scale.load(connections)))
    after = processes.cpu_s(server.process)
    spent = float("nan") if before is None or after is None else (after - before) * 1e6 / outcome.answers
    return outcome.rate, *times(outcome.latencies), spent


def _row(name: str, connections: int, taken: dict[tuple[str, int], _Taken]) -> tuple[Cell, ...]:
    mine, plain = taken[name, connections], taken["SQLite", connections]
    figures = map(median, zip(*mine, strict=True))
    if name == "SQLite":
        return name, connections, *figures, None, None, None, None
    pairs = list(zip(mine, plain, strict=True))
    added = [median(its[at] - others[at] for its, others in pairs) for at in (1, 2)]
    ratios = [median(its[at] / others[at] for its, others in pairs) for at in (1, 2)]
    return name, connections, *figures, *added, *ratios
