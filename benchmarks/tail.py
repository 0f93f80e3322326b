"""The slowest responses beside the usual ones, from the opening of all connections at once.

New connections have to be read although older ones keep the server busy, so the connecting belongs to the measured time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.generator import carried_out, load
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from benchmarks.taking import Taken, in_turn, middle, take

_CONVERSATIONS: Final = 64
_MESSAGES: Final = 20
"""Messages of each conversation, and of each page that is read."""
_READS: Final = 3
"""Reads for each append of the mix."""


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Read, append, and do both, in turn, with each number of connections."""
    with deskwire(directory / "tail") as server:
        ids = server.create(_CONVERSATIONS)
        carried_out(server.posts(ids, connections=16, count=len(ids) * _MESSAGES))
        rows = [row for connections in scale.tail_by for row in _rows(scale, server, ids, connections)]
    columns = (
        *("what", "connections", "responses/s"),
        *("p50 ms", "p99 ms", "worst ms", "p99 of p50", "server's µs"),
    )
    note = (
        f"All connections are opened at the beginning, within the measured {scale.tail_s:g} s. The mix has {_READS} reads of "
        f"{_MESSAGES} messages for each message that is posted."
    )
    return [Section("tail", "The slowest responses", columns, rows, note)]


def _rows(scale: Scale, server: Server, ids: list[str], connections: int) -> list[tuple[Cell, ...]]:
    counting, for_s = partial(load, own=True), scale.tail_s  # wrk counts a long wait several times
    posts = server.posts(ids, connections=connections, for_s=for_s)
    paths = [f"/v3/s2s/conversations/{each}/messages?limit={_MESSAGES}" for each in ids]
    reads = server.gets(paths, connections=connections, for_s=for_s)
    pairs = zip(reads.each(), posts.each(), strict=True)
    mix = replace(posts, calls=[call for read, post in pairs for call in (*[read] * _READS, post)])
    jobs = {"reads": reads, "appends": posts, "both": mix}
    taken = in_turn(
        scale.rounds, [(what, partial(take, server, job, counting)) for what, job in jobs.items()]
    )
    return [_row(what, connections, found) for what, found in taken.items()]


def _row(what: str, connections: int, found: list[Taken]) -> tuple[Cell, ...]:
    it = middle(found)
    share = median(each.p99 / each.p50 for each in found)
    return what, connections, it.rate, it.p50, it.p99, it.worst, share, it.us
