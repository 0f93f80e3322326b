"""How many messages a second are taken in over HTTP, and how long each waits for its answer."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from benchmarks import processes
from benchmarks.load import Outcome
from benchmarks.report import Section, median, percentile
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire, reference

_Target = tuple[str, Server, list[str]]
_ASGI = "empty ASGI app"
_QUART = "empty Quart-Trio route"


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Post to all servers in turn, round by round, so that a disturbance meets all of them."""
    with ExitStack() as stack:
        ours = stack.enter_context(deskwire(directory / "posting"))
        asgi = stack.enter_context(reference("asgi"))
        quart = stack.enter_context(reference("quart"))
        ids = ours.create(max(scale.conversations))
        targets: list[_Target] = [(_ASGI, asgi, ids[:1]), (_QUART, quart, ids[:1])]
        targets += [(_label(count), ours, ids[:count]) for count in scale.conversations]
        rows = [row for connections in scale.connections for row in _compare(scale, targets, connections)]
    columns = (
        "server",
        "connections",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "of ASGI",
        "of Quart",
        "load's core",
    )
    note = "Deskwire answers once the message and its event are on disk. Server and load have a core each."
    return [Section("post", "POST a message", columns, rows, note)]


def _label(count: int) -> str:
    return f"Deskwire, {count:,} conversation{'s' if count > 1 else ''}"


def _compare(
    scale: Scale, targets: list[_Target], connections: int
) -> list[tuple[str, int, float, float, float, float, float, float]]:
    taken: dict[str, list[Outcome]] = {label: [] for label, _, _ in targets}
    for _ in range(scale.rounds):
        for label, server, ids in targets:
            job = server.posts(ids, connections=connections, warm_s=scale.warm_s, for_s=scale.load_s)
            taken[label].append(processes.load(job))
    return [
        (
            label,
            connections,
            median(each.rate for each in outcomes),
            median(percentile(each.latencies, 0.5) for each in outcomes),
            median(percentile(each.latencies, 0.99) for each in outcomes),
            _ratio(outcomes, taken[_ASGI]),
            _ratio(outcomes, taken[_QUART]),
            median(each.busy for each in outcomes),
        )
        for label, outcomes in taken.items()
    ]


def _ratio(these: list[Outcome], those: list[Outcome]) -> float:
    """The median of the rounds' ratios: both sides of each were taken within seconds."""
    return median(this.rate / that.rate for this, that in zip(these, those, strict=True))
