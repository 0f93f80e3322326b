"""How old a message is when it reaches a stream consumer and a webhook receiver, and what they cost."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks import processes
from benchmarks.report import Cell, Section, median, percentile
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire

_SPREAD: Final = 64
_CONNECTIONS: Final = 16
_PAUSE_S: Final = 0.5
_DRAIN_S: Final = 60.0

_Ages = dict[str, list[float]]


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Latency at a steady rate; then the maximum rate of two servers in turn, one of them with readers."""
    with ExitStack() as stack:
        alone = stack.enter_context(deskwire(directory / "alone"))
        read = stack.enter_context(deskwire(directory / "read", allow_private_webhooks="true"))
        ids = {server.port: server.create(_SPREAD) for server in (alone, read)}
        observer = stack.enter_context(_observing(read))
        latency = _latency(scale, read, ids[read.port], observer)
        maximum = _maximum(scale, {"alone": alone, "read": read}, ids, observer)
    return [latency, maximum]


@contextmanager
def _observing(server: Server) -> Iterator[subprocess.Popen[str]]:
    arguments = (str(server.port), server.key, server.project, server.stream_key())
    process = processes.start("benchmarks.observer", *arguments, core=processes.LOAD)
    try:
        processes.line(process, "in place")
        yield process
    finally:
        processes.stop(process)


def _take(observer: subprocess.Popen[str]) -> _Ages:
    ages: _Ages = json.loads(processes.ask(observer, "take"))
    return ages


def _drain(observer: subprocess.Popen[str]) -> _Ages:
    """Wait until nothing more comes; all that has."""
    all_of_it: _Ages = {"frames": [], "webhooks": []}
    deadline = time.monotonic() + _DRAIN_S
    while time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
        ages = _take(observer)
        for way, found in ages.items():
            all_of_it[way] += found
        if not any(ages.values()):
            break
    return all_of_it


def _latency(scale: Scale, server: Server, ids: list[str], observer: subprocess.Popen[str]) -> Section:
    processes.load(server.posts(ids, connections=_CONNECTIONS, for_s=scale.load_s, rate=scale.rate))
    _drain(observer)
    job = server.posts(ids, connections=_CONNECTIONS, for_s=scale.rate_s, rate=scale.rate)
    answers = processes.load(job).latencies
    ages = _drain(observer)
    ways = {"answer": answers, "frame at a stream consumer": ages["frames"], "webhook": ages["webhooks"]}
    rows = [_ages_row(label, found) for label, found in ways.items()]
    title = f"POST until …, at {scale.rate} messages/s"
    return Section("latency", title, ("until", "messages", "p50 ms", "p99 ms", "most ms"), rows)


def _ages_row(label: str, found: list[float]) -> tuple[Cell, ...]:
    found.sort()
    return label, len(found), percentile(found, 0.5), percentile(found, 0.99), percentile(found, 1.0)


def _maximum(
    scale: Scale, servers: dict[str, Server], ids: dict[int, list[str]], observer: subprocess.Popen[str]
) -> Section:
    rates: dict[str, list[float]] = {name: [] for name in servers}
    during: list[tuple[float, float, float]] = []
    for _ in range(scale.rounds):
        for name, server in servers.items():
            job = server.posts(
                ids[server.port],
                connections=64,
                warm_s=scale.warm_s,
                for_s=max(scale.load_s, scale.rate_s / 2),
            )
            _drain(observer)
            began = time.monotonic()
            rates[name].append(processes.load(job).rate)
            elapsed, ages = time.monotonic() - began, _take(observer)
            if name == "read":
                late = percentile(sorted(ages["frames"]), 0.99)
                during.append((len(ages["frames"]) / elapsed, late, len(ages["webhooks"]) / elapsed))
    shares = [read / alone for read, alone in zip(rates["read"], rates["alone"], strict=True)]
    rows: list[tuple[Cell, ...]] = [
        ("nobody", median(rates["alone"]), 1.0, None, None, None),
        (
            "one consumer, one webhook",
            median(rates["read"]),
            median(shares),
            *map(median, zip(*during, strict=True)),
        ),
    ]
    columns = ("read by", "POST/s", "share", "frames/s", "frame p99 ms", "webhooks/s")
    return Section("maximum", "Maximum rate with and without readers, 64 connections", columns, rows)
