"""The cost of an Idempotency-Key: the same messages with a new key each, and without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.job import SENT
from benchmarks.report import Cell, Section
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from benchmarks.taking import in_turn, middle, ratio, take

_SPREAD: Final = 64
_WITHOUT: Final = "without"
_WITH: Final = "with a new key each"


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure both in turn, with one server."""
    with deskwire(directory / "idempotency") as server:
        ids = server.create(_SPREAD)
        rows = [row for connections in scale.connections for row in _rows(scale, server, ids, connections)]
    columns = (
        "Idempotency-Key",
        "connections",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "worst ms",
        "server's µs",
        "of those without",
    )
    note = "The answer is stored under its key in the message's own commit."
    return [Section("idempotency", "POST a message with an Idempotency-Key", columns, rows, note)]


def _rows(scale: Scale, server: Server, ids: list[str], connections: int) -> Iterator[tuple[Cell, ...]]:
    bare = server.posts(ids, **scale.load(connections))
    keyed = replace(bare, headers={"Idempotency-Key": SENT})
    taken = in_turn(
        scale.rounds, [(_WITHOUT, partial(take, server, bare)), (_WITH, partial(take, server, keyed))]
    )
    for label, found in taken.items():
        of_all = middle(found)
        share = ratio(taken, label, _WITHOUT)
        yield label, connections, of_all.rate, of_all.p50, of_all.p99, of_all.worst, of_all.us, share
