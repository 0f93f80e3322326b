"""The rate of messages over HTTP, the time until each response, and the cost of a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import references
from benchmarks.references import ASGI, FASTAPI, FASTAPIS, NATS, QUART
from benchmarks.report import Cell, Section
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from benchmarks.taking import Taken, in_turn, middle, ratio, take

_COLUMNS: Final = (
    "server",
    "connections",
    "requests/s",
    "p50 ms",
    "p99 ms",
    "worst ms",
    "server's µs",
    "load's core",
)
_RATIOS: Final = ("of ASGI", "of FastAPI", "of NATS")
_Target = tuple[str, Server, Sequence[str]]


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure all servers in turn, round by round, so that a disturbance affects all of them."""
    with ExitStack() as stack:
        ours = stack.enter_context(deskwire(directory / "posting"))
        ids = ours.create(max(scale.conversations))
        others = _references(stack, directory, ours.envelope(ids[0]))
        targets = [(label, server, ids[:1]) for label, server in others.items()]
        targets += [(_label(count), ours, ids[:count]) for count in scale.conversations]
        posted = [row for connections in scale.connections for row in _posted(scale, targets, connections)]
        apps = {ASGI: others[ASGI], "Deskwire": ours}
        apps.update((FASTAPI, server) for label, server in others.items() if FASTAPIS.get(label) == "async")
        empty = [row for connections in scale.connections for row in _empty(scale, apps, connections)]
    note = (
        "Deskwire answers once the message and its event are on disk. FastAPI inserts one row into SQLite, synced, and "
        "`of FastAPI` is of the faster of its two ways; NATS "
        "acknowledges the envelope that Deskwire makes of the message, synced. The empty apps read the body and store nothing."
    )
    return [
        Section("route", "An empty route, GET", (*_COLUMNS, "of ASGI", "of FastAPI"), empty),
        Section("post", "POST a message", (*_COLUMNS, *_RATIOS), posted, note),
    ]


def _references(stack: ExitStack, directory: Path, envelope: str) -> dict[str, Server]:
    servers = {
        ASGI: stack.enter_context(references.hypercorn("asgi")),
        QUART: stack.enter_context(references.hypercorn("quart")),
    }
    for label, kind in FASTAPIS.items() if references.has_fastapi() else ():
        servers[label] = stack.enter_context(references.fastapi(directory / f"posting-fastapi-{kind}", kind))
    if references.nats_server():
        servers[NATS] = stack.enter_context(references.nats(directory / "posting-nats", envelope))
    return servers


def _label(count: int) -> str:
    return f"Deskwire, {count:,} conversation{'s' if count > 1 else ''}"


def _posted(scale: Scale, targets: Sequence[_Target], connections: int) -> Iterator[tuple[Cell, ...]]:
    figures = [
        (label, partial(take, server, server.posts(list(ids), **scale.load(connections))))
        for label, server, ids in targets
    ]
    return _rows(in_turn(scale.rounds, figures), connections, (ASGI, *FASTAPIS, NATS))


def _empty(scale: Scale, apps: Mapping[str, Server], connections: int) -> Iterator[tuple[Cell, ...]]:
    figures = [
        (label, partial(take, server, server.gets(["/healthz"], **scale.load(connections))))
        for label, server in apps.items()
    ]
    return _rows(in_turn(scale.rounds, figures), connections, (ASGI, FASTAPI))


def _rows(
    taken: Mapping[str, Sequence[Taken]], connections: int, bases: Sequence[str]
) -> Iterator[tuple[Cell, ...]]:
    """Yield each server's figures and their ratio to the bases; FastAPI's is the faster of the two."""
    ways = [each for each in FASTAPIS if each in bases and each in taken]
    fastest = max(ways, key=lambda each: middle(taken[each]).rate, default="")
    shown = [each for each in bases if each not in FASTAPIS or each == (fastest or next(iter(FASTAPIS)))]
    for label, found in taken.items():
        yield *_figures(label, connections, found), *(ratio(taken, label, base) for base in shown)


def _figures(label: str, connections: int, found: Sequence[Taken]) -> tuple[Cell, ...]:
    of_all = middle(found)
    return label, connections, of_all.rate, of_all.p50, of_all.p99, of_all.worst, of_all.us, of_all.busy
