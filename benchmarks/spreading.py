"""The cost of a message over HTTP at one, two and three nodes: with the same load, with more of it, and to one conversation.

The nodes are real processes that share one PostgreSQL, one project and all cores of the machine. Each has a load generator of
its own, and all generators run at the same time, so the connections are divided among the nodes as a balancer does.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from benchmarks import generator, processes
from benchmarks.delivering import receiving
from benchmarks.job import Outcome
from benchmarks.report import TIMES, Cell, Section, median, times
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire_node
from benchmarks.sharing import server_s

_NODES: Final = 3
_CONVERSATIONS: Final = 960
_LONGER: Final = 4
"""Factor by which a load lasts longer than in other measurements, because PostgreSQL's processor time has a unit of 10 ms."""
_SECRET: Final = "the secret of an installation with several nodes"
_DRAIN_S: Final = 60.0
_QUIET_S: Final = 2.0
"""Time without a delivery after which the endpoint counts as drained."""
_LOOK_S: Final = 0.1
_JOBS: Final = re.compile(r"^deskwire_commit_jobs_(sum|count)(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)


class Spread(NamedTuple):
    """One measured load, over all nodes; the processor times are of one message."""

    rate: float
    p50_ms: float
    p99_ms: float
    worst_ms: float
    node_us: float
    server_us: float
    in_a_commit: float


def measure(scale: Scale, directory: Path, url: str, postmaster: int) -> list[Section]:
    """Load one, two and three nodes in turn, round by round; `postmaster` is PostgreSQL's first process."""
    taken: dict[tuple[int, int, bool], list[Spread]] = {}
    loads = [(count, False) for count in scale.spread] + [(scale.spread[0], True)]
    with running(directory, url) as nodes:
        conversations = nodes[0].create(_CONVERSATIONS)
        for _ in range(scale.rounds):
            for connections, hot in loads:
                for count in range(1, _NODES + 1):
                    paths = conversations[:1] if hot else conversations
                    spread = loaded(nodes[:count], paths, connections, scale, postmaster)
                    taken.setdefault((connections, count, hot), []).append(spread)
        drained = _drained(nodes, conversations, scale, postmaster)
    rows = {key: Spread(*map(median, zip(*rounds, strict=True))) for key, rounds in taken.items()}
    note = (
        f"{_CONVERSATIONS} conversations of one project, over HTTP, without a webhook. Connections: of all nodes together. "
        "µs: processor time of a message, of all nodes together and of the database's processes. "
        "Nodes, PostgreSQL and the load generators share the cores, so only processor times and their ratios compare."
    )
    hot_note = "As above, but all messages at all nodes go to one conversation."
    return [
        _section("spread", "A message at one, two and three nodes, over HTTP", rows, note, hot=False),
        _section("hot", "One conversation at one, two and three nodes, over HTTP", rows, hot_note, hot=True),
        drained,
    ]


@contextmanager
def running(directory: Path, url: str) -> Iterator[Sequence[Server]]:
    """Run the nodes; each has the first one's project and key."""
    with ExitStack() as stack:
        nodes = list[Server]()
        for number in range(_NODES):
            settings = {
                "database_url": url,
                "secret": _SECRET,
                "node": f"node-{number}",
                "allow_private_webhooks": "true",
            }
            place = directory / f"node-{number}"
            first = nodes[0] if nodes else None
            nodes.append(stack.enter_context(deskwire_node(place, first, settings)))
        yield nodes


def loaded(
    nodes: Sequence[Server], conversations: list[str], connections: int, scale: Scale, postmaster: int
) -> Spread:
    """Post to all nodes at the same time. Raises RuntimeError if any request fails."""
    how = {"warm_s": scale.warm_s, "for_s": _LONGER * scale.load_s}
    jobs = [
        node.posts(_from(conversations, number / len(nodes)), connections=share, **how)
        for number, (node, share) in enumerate(zip(nodes, _shares(connections, len(nodes)), strict=True))
    ]
    node_s, database_s, commits = _node_s(nodes), server_s(postmaster), _commits(nodes)
    with ThreadPoolExecutor(len(jobs)) as threads:
        outcomes: list[Outcome] = list(threads.map(generator.carried_out, jobs))
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    if failures:
        raise RuntimeError(f"{len(failures)} requests failed, the first with:\n{failures[0]}")
    posted = sum(outcome.answers for outcome in outcomes)
    jobs_done, commits_done = (after - before for after, before in zip(_commits(nodes), commits, strict=True))
    latencies = sorted(each for outcome in outcomes for each in outcome.latencies)
    return Spread(
        sum(outcome.rate for outcome in outcomes),
        *times(latencies),
        (_node_s(nodes) - node_s) * 1e6 / posted,
        (server_s(postmaster) - database_s) * 1e6 / posted,
        jobs_done / commits_done,
    )


def _from(conversations: list[str], share: float) -> list[str]:
    """Return the conversations from another one on, so that nodes seldom post to the same one at once."""
    first = int(share * len(conversations))
    return conversations[first:] + conversations[:first]


def _drained(nodes: Sequence[Server], conversations: list[str], scale: Scale, postmaster: int) -> Section:
    """Post to all nodes faster than the one that has the endpoint delivers, and measure how the rest goes out."""
    with receiving(nodes[0]) as receiver:
        began = time.monotonic()
        posted = loaded(nodes, conversations, scale.spread[-1], scale, postmaster).rate
        delivered = _came(receiver) / (time.monotonic() - began)
        before, database_s, began = (
            [_node_s([node]) for node in nodes],
            server_s(postmaster),
            time.monotonic(),
        )
        left, last = 0, began
        while time.monotonic() < min(began + _DRAIN_S, last + _QUIET_S):
            time.sleep(_LOOK_S)  # polls: the receiver is asked for its count
            if more := _came(receiver):
                left, last = left + more, time.monotonic()
        spent = max(_node_s([node]) - earlier for node, earlier in zip(nodes, before, strict=True))
        database_s = server_s(postmaster) - database_s
    costs = (left / (last - began), spent * 1e6 / left, database_s * 1e6 / left) if left else (None,) * 3
    columns = (
        "posted/s",
        "delivered/s while posting",
        "left",
        "delivered/s after that",
        "the node's µs",
        "PostgreSQL µs",
    )
    note = "Left: deliveries that were pending when the posts ended. µs: processor time of a delivery from then on, without its message."
    rows = [(posted, delivered, left, *costs)]
    return Section("endpoint", "One endpoint, to which one of three nodes delivers", columns, rows, note)


def _came(receiver: subprocess.Popen[str]) -> int:
    return len(json.loads(processes.ask(receiver, "take"))["ages"])


def _shares(connections: int, nodes: int) -> list[int]:
    """Divide connections among nodes; the first ones have one more if they can't be equal."""
    return [connections // nodes + (number < connections % nodes) for number in range(nodes)]


def _node_s(nodes: Sequence[Server]) -> float:
    return sum(processes.cpu_s(node.process) or 0.0 for node in nodes)


def _commits(nodes: Sequence[Server]) -> tuple[float, float]:
    """Return the number of jobs that the nodes have committed, and of their commits."""
    sums = {"sum": 0.0, "count": 0.0}
    for node in nodes:
        page = httpx.get(f"http://127.0.0.1:{node.port}/metrics", timeout=30).raise_for_status().text
        for name, value in _JOBS.findall(page):
            sums[name] += float(value)
    return sums["sum"], sums["count"]


def _section(
    name: str, title: str, rows: dict[tuple[int, int, bool], Spread], note: str, *, hot: bool
) -> Section:
    columns = (
        "connections",
        "nodes",
        "per second together",
        *TIMES,
        "nodes' µs",
        "PostgreSQL µs",
        "messages in a commit",
        "of one node's µs",
        "of its PostgreSQL µs",
    )
    return Section(name, title, columns, [_row(key, rows) for key in rows if key[2] is hot], note)


def _row(key: tuple[int, int, bool], rows: dict[tuple[int, int, bool], Spread]) -> tuple[Cell, ...]:
    connections, nodes, hot = key
    mine, one = rows[key], rows[connections, 1, hot]
    ratios = mine.node_us / one.node_us, mine.server_us / one.server_us
    return connections, nodes, *mine, *ratios
