"""The effect of four other endpoints on a healthy one: the age of messages when they arrive, through the whole service."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import processes
from benchmarks.generator import load
from benchmarks.report import TIMES, Cell, Section, median, percentile, times
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire

_WELL: Final = ("prompt",) * 4
_SICK: Final = ("dead", "dripping", "refusing", "slow")
_PHASES: Final[Mapping[str, Sequence[str]]] = {
    "no other endpoint": (),
    "four well endpoints": _WELL,
    "a dead, a dripping, a refusing and a slow one": _SICK,
}
_SPREAD: Final = 64
_CONNECTIONS: Final = 16
_SHARE_OF_RATE: Final = 0.5
"""Low enough for five deliveries of each message: the benchmark measures the effect of neighbours, not load."""
_PAUSE_S: Final = 0.3


@dataclass(frozen=True, slots=True)
class _Ages:
    """The number of messages in a round, their ages in ms as `TIMES`, and the 95th percentile, which varies less than p99."""

    count: int
    times: tuple[float, float, float]
    p95: float


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Phase after phase with one server, and again in each round."""
    taken: dict[str, list[_Ages]] = {label: [] for label in _PHASES}
    rate = max(1, round(scale.rate * _SHARE_OF_RATE))
    with (
        _receivers() as (receiver, ports),
        deskwire(directory / "isolation", allow_private_webhooks="true") as server,
    ):
        ids = server.create(_SPREAD)
        _register(server, ports[:1])
        for _ in range(scale.rounds):
            for label, kinds in _PHASES.items():
                others = _register(server, _ports_of(ports, kinds))
                taken[label].append(_ages(scale, server, ids, receiver, rate))
                _remove(server, others)
    alone = [each.p95 for each in taken["no other endpoint"]]
    rows = [_row(label, phases, alone) for label, phases in taken.items()]
    columns = ("besides", "messages", *TIMES, "of p95 alone", "least", "most")
    note = (
        "Each message goes to all endpoints. A well one answers at once, a slow one after 4.9 s. Least and most are of "
        "the rounds' ratios: where they lie far apart, the machine was too busy to tell."
    )
    title = f"POST until a well webhook endpoint has it, at {rate} messages/s"
    return [Section("isolation", title, columns, rows, note)]


def _row(label: str, phases: Sequence[_Ages], alone: Sequence[float]) -> tuple[Cell, ...]:
    """Return the fewest messages, medians, and the ratio of each round's p95 to that of the endpoint alone."""
    ratios = [each.p95 / before for each, before in zip(phases, alone, strict=True)]
    found = map(median, zip(*(each.times for each in phases), strict=True))
    return label, min(each.count for each in phases), *found, median(ratios), min(ratios), max(ratios)


@contextmanager
def _receivers() -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Run the receivers; yield the process and its ports: the measured one, healthy ones, faulty ones."""
    process = processes.start("benchmarks.receiver", "measured", *_WELL, *_SICK, core=processes.LOAD)
    try:
        ports: list[int] = json.loads(processes.line(process))
        yield process, ports
    finally:
        processes.stop(process)


def _ports_of(ports: list[int], kinds: Sequence[str]) -> list[int]:
    """Return the ports of these kinds."""
    return {(): [], _WELL: ports[1 : 1 + len(_WELL)], _SICK: ports[1 + len(_WELL) :]}[tuple(kinds)]


def _register(server: Server, ports: list[int]) -> list[str]:
    with server.api() as api:
        responses = [
            api.post("/s2s/webhooks", json={"url": f"http://127.0.0.1:{port}/hook"}) for port in ports
        ]
    return [response.raise_for_status().json()["id"] for response in responses]


def _remove(server: Server, ids: list[str]) -> None:
    with server.api() as api:
        for each in ids:
            api.delete(f"/s2s/webhooks/{each}").raise_for_status()


def _ages(scale: Scale, server: Server, ids: list[str], receiver: subprocess.Popen[str], rate: int) -> _Ages:
    """Return the ages at the measured endpoint."""
    load(
        server.posts(ids, connections=_CONNECTIONS, for_s=scale.rate_s / 2, rate=rate)
    )  # first let the faulty endpoints fail
    _drain(receiver)
    load(server.posts(ids, connections=_CONNECTIONS, for_s=scale.rate_s, rate=rate))
    ages = sorted(_drain(receiver))
    return _Ages(len(ages), times(ages), percentile(ages, 0.95))


def _drain(receiver: subprocess.Popen[str]) -> list[float]:
    """Wait until no more messages arrive at the measured endpoint; return the ages of all."""
    ages: list[float] = []
    while True:
        time.sleep(_PAUSE_S)
        attempts: dict[str, Any] = json.loads(processes.ask(receiver, "take"))
        ages += attempts["ages"]
        if not attempts["ages"]:
            return ages
