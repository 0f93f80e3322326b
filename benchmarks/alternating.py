"""The cost of alternating a conversation between nodes: two stores in one process, without HTTP.

A node that has not decided the last message finds at its commit that its state is stale, and decides again there.
"""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from itertools import starmap
from typing import Any

import trio

from benchmarks import processes
from benchmarks.report import TIMES, Cell, Section, median
from benchmarks.scale import Scale
from benchmarks.sharing import Posted, actors_of, begun_in, found_projects, keep_posting, opened

_ONE, _BOTH = "one node", "two nodes in turn"
_Taken = dict[str, list[Posted]]


def measure(asked: dict[str, Any]) -> Section:
    """Measure both ways in turn; `asked` names the server's URL, its process, and the scale."""
    answer = processes.answer("benchmarks.alternating", json.dumps(asked), core=processes.SERVER)
    taken = {name: list(starmap(Posted, rounds)) for name, rounds in json.loads(answer).items()}
    columns = (
        "messages go to",
        "conversations",
        "per second",
        *TIMES,
        "nodes' µs",
        "PostgreSQL µs",
        "of one node's µs",
        "of its p50",
    )
    rows = [_row(how, count, taken) for count in asked["scale"]["in_flight"] for how in (_ONE, _BOTH)]
    note = "Each conversation has a message under way; µs: processor time of each, of both nodes together and of the database's processes."
    return Section(
        "alternating", "A conversation's messages to one node, or to two in turn", columns, rows, note
    )


def _row(how: str, count: int, taken: _Taken) -> tuple[Cell, ...]:
    mine, plain = taken[f"{how} {count}"], taken[f"{_ONE} {count}"]
    pairs = list(zip(mine, plain, strict=True))
    ratios = (
        median(its.node_us / others.node_us for its, others in pairs),
        median(its.p50_ms / others.p50_ms for its, others in pairs),
    )
    it = Posted(*map(median, zip(*mine, strict=True)))
    return how, count, *it, *ratios


async def _measured(asked: dict[str, Any], scale: Scale) -> _Taken:
    taken: _Taken = {}
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(opened(asked["url"], name)) for name in ("one", "other")]
        await found_projects(stores[0], 1)
        (project,) = await stores[0].read(lambda reader: reader.projects(None, None, 1 << 60, 1))
        nodes = [await stack.enter_async_context(actors_of(store)) for store in stores]
        begun = await begun_in(nodes[0], [project], max(scale.in_flight))
        for _ in range(scale.rounds):
            for count in scale.in_flight:
                for how, used in ((_ONE, nodes[:1]), (_BOTH, nodes)):
                    await keep_posting(used, begun[:count], scale.warm_s, asked["server"])
                    figures = await keep_posting(used, begun[:count], scale.load_s, asked["server"])
                    taken.setdefault(f"{how} {count}", []).append(figures)
    return taken


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    print(json.dumps(trio.run(_measured, given, Scale(**given["scale"]))), flush=True)
